import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.architectures import ARCHITECTURES, KIB, architecture, present
from pytorch_to_triton.hardware.versions import Device


def device(capability: tuple[int, int]) -> Device:
    return Device(name="some GPU", capability=capability, memory_bytes=2**34)


def test_a_name_is_found_in_any_case() -> None:
    assert architecture(" SM_90 ").compiler_arch == 90
    assert architecture("GFX942").compiler_arch == "gfx942"


def test_a_product_is_found_by_its_name() -> None:
    for product, arch in [
        ("H100", "sm_90"),
        ("NVIDIA A100-SXM4-80GB", "sm_80"),
        ("RTX4090", "sm_89"),
        ("MI300X", "gfx942"),
        ("B300", "sm_103"),
        ("RX 7900 XTX", "gfx1100"),
    ]:
        assert architecture(product).name == arch


def test_a_product_that_is_none_of_these_is_refused() -> None:
    for product in ["NVIDIA", "RTX 1", "80GB", "T4", ""]:
        with pytest.raises(BadInput, match="such as H100"):
            architecture(product)


def test_an_unknown_name_is_refused_with_all_that_are_known() -> None:
    with pytest.raises(BadInput) as refusal:
        architecture("sm_35")
    assert "sm_35" in refusal.value.message
    assert all(name in refusal.value.hint for name in ARCHITECTURES)


def test_nvidias_table_is_met() -> None:
    for name, warps, registers, shared_kib in [
        ("sm_80", 64, 65536, 163),
        ("sm_86", 48, 65536, 99),
        ("sm_90", 64, 65536, 227),
        ("sm_100", 64, 65536, 227),
    ]:
        gpu = architecture(name)
        assert (gpu.warps, gpu.registers) == (warps, registers)
        assert gpu.shared_bytes_per_block == shared_kib * KIB


def test_a_cdna_compute_unit_has_512_kib_of_vector_registers() -> None:
    gpu = architecture("gfx942")
    assert 4 * gpu.registers == 512 * KIB
    assert gpu.warps == 32


def test_the_gpu_that_is_here_is_reported_by_its_capability() -> None:
    assert present([device((9, 0))], rocm=None) == architecture("sm_90")
    assert present([device((9, 4))], rocm="6.4") == architecture("gfx942")


def test_an_absent_or_unknown_gpu_is_none() -> None:
    assert present([], rocm=None) is None
    assert present([device((5, 2))], rocm=None) is None

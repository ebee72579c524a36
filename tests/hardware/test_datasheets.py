"""Data sheets are found by any usual spelling, and a GPU that is not known is never taken for another."""

import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.datasheets import NAMES, SHEETS, datasheet


def test_a_gpu_is_known_by_its_usual_names() -> None:
    for given, meant in [
        ("h200", "H200"),
        ("RTX4090", "RTX 4090"),
        ("4090", "RTX 4090"),
        ("A100 80 GB sxm", "A100 80GB SXM"),
        ("mi-300x", "MI300X"),
        ("a6000", "RTX A6000"),
        # As drivers name them.
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA GH200 480GB", "GH200 96GB"),
        ("Tesla V100-SXM2-16GB", "V100 SXM"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 5090", "RTX 5090"),
        ("AMD Instinct MI300X OAM", "MI300X"),
        *((name, name) for name in NAMES),
    ]:
        assert datasheet(given).name == meant


def test_a_relative_is_not_taken_for_a_gpu_that_is_known() -> None:
    for name in ["RTX 3090 Ti", "RTX 4090 D", "L40", "GB200", "H200 NVL", "A10G", "MI300A", ""]:
        with pytest.raises(BadInput) as refused:
            datasheet(name)
        assert f"no data sheet for {name!r}" in refused.value.message
        assert "H200" in refused.value.hint


@pytest.mark.parametrize(
    ("name", "variants"), [("H100", "H100 SXM or H100 PCIe"), ("gh200", "GH200 96GB or")]
)
def test_a_name_of_several_variants_is_refused_with_them(name: str, variants: str) -> None:
    with pytest.raises(BadInput, match=variants):
        datasheet(name)


def test_narrower_dtypes_are_at_least_as_fast() -> None:
    for sheet in SHEETS:
        order = ("float32", "tf32", "float16", "float8_e4m3fn")
        rates = [sheet.tflops[dtype] for dtype in order if dtype in sheet.tflops]
        assert rates == sorted(rates)
        half = sheet.tflops.get("float16")
        assert sheet.tflops.get("bfloat16", half) == half


def test_a_sheet_is_an_estimate_and_faster_than_a_measured_copy() -> None:
    ceilings = datasheet("H200").ceilings
    assert ceilings.provenance == "estimated"
    # One H200 copied 4,283 GB/s.
    assert ceilings.copy_gbytes_per_s > 4283
    assert (datasheet("H200").arch, datasheet("MI300X").arch) == ("sm_90", "gfx942")

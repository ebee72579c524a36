"""Figures as NVIDIA's occupancy calculator and LLVM's AMDGPU backend give them."""

from pytorch_to_triton.hardware.architectures import KIB, architecture
from pytorch_to_triton.inspect.occupancy import occupancy_of
from pytorch_to_triton.schema.compiled import Occupancy

from .compiled import resources


def occupancy(arch: str, registers: int, shared_bytes: int, num_warps: int) -> Occupancy:
    used = resources(registers=registers, shared_bytes=shared_bytes)
    return occupancy_of(used, num_warps, architecture(arch))


def test_the_binding_resource_says_how_many_blocks_stay() -> None:
    for arch, registers, shared_bytes, num_warps, blocks, binds in [
        ("sm_80", 32, 0, 4, 16, ("warps",)),
        ("sm_80", 33, 0, 4, 12, ("registers",)),
        ("sm_80", 255, 0, 8, 1, ("registers",)),
        ("sm_80", 16, 0, 1, 32, ("blocks",)),
        ("sm_80", 40, 48 * KIB, 4, 3, ("shared memory",)),
        ("sm_86", 40, 0, 4, 12, ("warps",)),
        ("sm_90", 90, 0, 4, 5, ("registers",)),
        ("sm_90", 40, 113 * KIB, 4, 2, ("shared memory",)),
        ("sm_90", 40, 227 * KIB, 4, 1, ("shared memory",)),
        ("sm_90", 96, 40 * KIB, 4, 5, ("registers", "shared memory")),
        ("sm_80", 64, 0, 1, 32, ("registers", "blocks")),
        ("gfx942", 128, 0, 4, 4, ("registers",)),
        ("gfx942", 129, 0, 4, 3, ("registers",)),
        ("gfx942", 40, 32 * KIB, 4, 2, ("shared memory",)),
        ("gfx950", 40, 160 * KIB, 4, 1, ("shared memory",)),
        ("gfx1100", 197, 0, 4, 7, ("registers",)),
        ("gfx1201", 96, 0, 4, 16, ("warps",)),
    ]:
        found = occupancy(arch, registers, shared_bytes, num_warps)
        assert (found.blocks, found.binds) == (blocks, binds)
        assert found.warps == blocks * num_warps
        assert found.share == found.warps / architecture(arch).warps


def test_a_block_over_the_limit_of_shared_memory_cannot_be_launched() -> None:
    found = occupancy("sm_90", 40, 227 * KIB + 1, 4)
    assert (found.blocks, found.share, found.binds) == (0, 0.0, ("shared memory",))


def test_every_resource_is_reported_with_what_it_alone_would_allow() -> None:
    found = occupancy("sm_90", 96, 40 * KIB, 4)
    assert found.blocks_by == {"registers": 5, "shared memory": 5, "warps": 16, "blocks": 32}

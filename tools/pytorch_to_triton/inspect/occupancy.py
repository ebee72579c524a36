"""How many blocks of a kernel stay on an SM at a time, and what limits them."""

from pytorch_to_triton.hardware.architectures import Architecture
from pytorch_to_triton.schema.compiled import Limit, Occupancy, ResourceUsage


def occupancy_of(resources: ResourceUsage, num_warps: int, gpu: Architecture) -> Occupancy:
    """The theoretical occupancy of a kernel whose blocks have `num_warps` warps.

    What the hardware reaches depends on the grid and on how blocks end; a profiler measures it.
    """
    by: dict[Limit, int] = {
        "registers": _warps_by_registers(resources.registers, gpu) // num_warps,
        "shared memory": _blocks_by_shared_memory(resources.shared_bytes, gpu),
        "warps": gpu.warps // num_warps,
        "blocks": gpu.blocks,
    }
    blocks = min(by.values())
    tied = tuple(limit for limit, allowed in by.items() if allowed == blocks)
    return Occupancy(
        blocks=blocks,
        warps=blocks * num_warps,
        most_warps=gpu.warps,
        share=blocks * num_warps / gpu.warps,
        # Where no warp is left, nothing that the kernel uses less of would help.
        binds=("warps",) if "warps" in tied else tied,
        blocks_by=by,
    )


def _warps_by_registers(registers: int, gpu: Architecture) -> int:
    allotted = _round_up(max(registers, 1), gpu.register_unit)
    return gpu.schedulers * min(gpu.registers_per_lane // allotted, gpu.warps_per_scheduler)


def _blocks_by_shared_memory(shared_bytes: int, gpu: Architecture) -> int:
    if shared_bytes > gpu.shared_bytes_per_block:
        return 0
    allotted = _round_up(shared_bytes + gpu.shared_reserved_bytes, gpu.shared_unit_bytes)
    return gpu.shared_bytes // allotted if allotted else gpu.blocks


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit

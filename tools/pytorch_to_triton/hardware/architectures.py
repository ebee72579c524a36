"""The GPUs that kernels are compiled for by name, and what occupancy needs to know of each.

NVIDIA: CUDA C++ Programming Guide, appendix Compute Capabilities, table Technical Specifications per Compute
Capability (docs.nvidia.com/cuda); the units in which registers and shared memory are allotted are those of
NVIDIA's occupancy calculator (Nsight Compute). Where NVIDIA's own libraries name another number of blocks
for 12.0 (CCCL: 32), the guide's smaller one stands. Lanes are those of the same guide's table Throughput of
Native Arithmetic Instructions; each scheduler issues one warp's instruction in a clock.
AMD: the ISA guides of CDNA2, CDNA3, CDNA4, RDNA3 and RDNA4 (gpuopen.com/amd-isa-documentation), AMD GPU
specifications (rocm.docs.amd.com), and LLVM's AMDGPU backend, whose assembly gives the occupancy that
registers allow.
SMs are those of one part, since wrappers ask for their number.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.datasheets import SHEETS, chip_of, datasheet, words_of
from pytorch_to_triton.hardware.versions import Device
from pytorch_to_triton.schema.value import Value

KIB = 1024
DEFAULT = "sm_90"


class Architecture(Value):
    """A kind of GPU. Registers hold 32 bits; memory sizes are in bytes.

    An SM is AMD's compute unit, on RDNA two of them (a work-group processor); a warp is a wave, a block a
    work-group, shared memory is LDS.
    """

    name: str
    backend: Literal["cuda", "hip"]
    capability: tuple[int, int]
    """As torch gives it, also for AMD's GPUs."""
    part: str
    """A GPU of this kind."""
    sms: int
    """Of that part."""
    warp_size: int
    schedulers: int
    """Of an SM (AMD: SIMDs), each with registers of its own."""
    warps_per_scheduler: int
    registers_per_lane: int
    """Of a scheduler, for each of a warp's threads."""
    register_unit: int
    """A thread's registers are allotted in multiples of it."""
    registers_per_thread: int
    """At most, without spilling."""
    blocks: int
    """At most resident on an SM."""
    shared_bytes: int
    """Of an SM."""
    shared_bytes_per_block: int
    """At most, for one block; on NVIDIA's GPUs more than 48 KiB must be asked for, as Triton does."""
    shared_reserved_bytes: int
    """That each block takes in addition to what it asks for."""
    shared_unit_bytes: int
    """Shared memory is allotted in multiples of it."""
    has_async_copies: bool
    """Copies from global to shared memory that Triton uses to prefetch in loops."""
    float32_lanes: int | None = None
    """Multiply-adds of float32 that an SM does in a clock; None: not known here."""
    special_lanes: int | None = None
    """Special functions (ex2, lg2, rcp, rsqrt, sin, cos, tanh) that an SM does in a clock, for that many
    threads."""

    @property
    def warps(self) -> int:
        """At most resident on an SM."""
        return self.schedulers * self.warps_per_scheduler

    @property
    def registers(self) -> int:
        """Of an SM."""
        return self.schedulers * self.registers_per_lane * self.warp_size

    @property
    def compiler_arch(self) -> int | str:
        """What Triton's GPUTarget takes: 90, or "gfx942"."""
        return int(self.name.removeprefix("sm_")) if self.backend == "cuda" else self.name


_NVIDIA: dict[str, Any] = {
    "backend": "cuda", "warp_size": 32, "schedulers": 4, "registers_per_lane": 65536 // 4 // 32,
    "register_unit": 8, "registers_per_thread": 255, "shared_reserved_bytes": KIB, "shared_unit_bytes": 128,
    "has_async_copies": True, "special_lanes": 16,
}  # fmt: skip
_AMD: dict[str, Any] = {
    "backend": "hip", "schedulers": 4, "shared_reserved_bytes": 0, "shared_unit_bytes": 512,
    "has_async_copies": False,
}  # fmt: skip
_CDNA = _AMD | {
    "warp_size": 64, "warps_per_scheduler": 8, "registers_per_lane": 512, "register_unit": 8,
    "registers_per_thread": 512, "blocks": 16,
}  # fmt: skip
_RDNA = _AMD | {
    "warp_size": 32, "warps_per_scheduler": 16, "registers_per_lane": 1536, "register_unit": 24,
    "registers_per_thread": 256, "blocks": 32, "shared_bytes": 128 * KIB, "shared_bytes_per_block": 64 * KIB,
}  # fmt: skip


def _nvidia(
    capability: tuple[int, int], part: tuple[str, int], warps: int, blocks: int, shared_kib: int
) -> Architecture:
    return Architecture(
        name=f"sm_{capability[0]}{capability[1]}",
        capability=capability,
        part=part[0],
        sms=part[1],
        warps_per_scheduler=warps // 4,
        blocks=blocks,
        shared_bytes=shared_kib * KIB,
        shared_bytes_per_block=(shared_kib - 1) * KIB,
        float32_lanes=64 if capability == (8, 0) else 128,
        **_NVIDIA,
    )


def _amd(name: str, capability: tuple[int, int], part: tuple[str, int], kind: dict[str, Any]) -> Architecture:
    return Architecture(name=name, capability=capability, part=part[0], sms=part[1], **kind)


def _cdna(shared_kib: int) -> dict[str, Any]:
    unit = 512 if shared_kib == 64 else 1280
    shared = shared_kib * KIB
    return _CDNA | {"shared_bytes": shared, "shared_bytes_per_block": shared, "shared_unit_bytes": unit}


ARCHITECTURES: dict[str, Architecture] = {
    architecture.name: architecture
    for architecture in (
        _nvidia((8, 0), ("A100 80GB SXM", 108), warps=64, blocks=32, shared_kib=164),
        _nvidia((8, 6), ("GeForce RTX 3090", 82), warps=48, blocks=16, shared_kib=100),
        _nvidia((8, 9), ("GeForce RTX 4090", 128), warps=48, blocks=24, shared_kib=100),
        _nvidia((9, 0), ("H100 SXM", 132), warps=64, blocks=32, shared_kib=228),
        _nvidia((10, 0), ("B200", 148), warps=64, blocks=32, shared_kib=228),
        _nvidia((10, 3), ("B300", 148), warps=64, blocks=32, shared_kib=228),
        _nvidia((12, 0), ("GeForce RTX 5090", 170), warps=48, blocks=24, shared_kib=100),
        _amd("gfx90a", (9, 0), ("MI250X, one of its two dies", 110), _cdna(64)),
        _amd("gfx942", (9, 4), ("MI300X", 304), _cdna(64)),
        _amd("gfx950", (9, 5), ("MI355X", 256), _cdna(160)),
        _amd("gfx1100", (11, 0), ("Radeon RX 7900 XTX", 48), _RDNA),
        _amd("gfx1201", (12, 0), ("Radeon RX 9070 XT", 32), _RDNA),
    )
}


def architecture(name: str) -> Architecture:
    """The architecture of that name, such as sm_90, gfx942, or a product's: H100, RTX 4090.

    Raises BadInput, which lists those known.
    """
    known = ARCHITECTURES.get(name.strip().lower()) or ARCHITECTURES.get(_arch_of_product(name))
    if known is None:
        raise BadInput(
            f"{name} is not a GPU that kernels can be inspected for.",
            f"Name one of {', '.join(ARCHITECTURES)}, or a GPU that is one of these, such as H100.",
        )
    return known


def _arch_of_product(name: str) -> str:
    """The architecture's name; empty where the product is not known."""
    try:
        return datasheet(name).arch
    except BadInput:
        # Variants of a chip have data sheets of their own, and one architecture.
        products = [(sheet.name, sheet.arch) for sheet in SHEETS]
        products += [(known.part, known.name) for known in ARCHITECTURES.values()]
        words = words_of(name)
        return next((arch for product, arch in products if chip_of(product) in words), "")


def present(devices: Sequence[Device], rocm: str | None) -> Architecture | None:
    """The first device's architecture; None without a device, or where it is not known here."""
    backend = "hip" if rocm else "cuda"
    return next(
        (
            known
            for known in ARCHITECTURES.values()
            if devices and (known.backend, known.capability) == (backend, tuple(devices[0].capability))
        ),
        None,
    )

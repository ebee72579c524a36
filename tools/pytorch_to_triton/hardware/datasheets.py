"""Rates of common GPUs from the makers' data sheets, for estimates without a device.

Rates are dense ones: where a sheet gives them with 2:4 sparsity, half of that. Products of 16 and 8 bits are
those that accumulate in float32, as torch's and Triton's do. `float32` is both the rate of products without
TF32 and that of the vector units. Bandwidth is what the memory's clock gives, which no copy reaches: an H200
copies at 89 % of it. So times that are estimated from a sheet are below those from measured ceilings. A rate
that could not be confirmed is left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.timing import Ceilings


@dataclass(frozen=True)
class DataSheet:
    """One GPU."""

    name: str
    arch: str
    """Triton's target: `sm_90`, `gfx942`."""
    gbytes_per_s: float
    """Of the memory."""
    tflops: Mapping[str, float]
    """Dense products by operand dtype; `tf32` is float32 with TF32 on."""
    also: tuple[str, ...] = ()
    """Words that drivers and shops add to its name."""

    @property
    def ceilings(self) -> Ceilings:
        """The sheet as ceilings, which are estimates."""
        return Ceilings(
            device=self.name,
            provenance="estimated",
            source=f"data sheet of {self.name}",
            copy_gbytes_per_s=self.gbytes_per_s,
            matmul_tflops=dict(self.tflops),
        )


def rates(
    float32: float,
    *,
    half: float | None = None,
    float16: float | None = None,
    tf32: float | None = None,
    float8: float | None = None,
    float64: float | None = None,
) -> dict[str, float]:
    """TFLOP/s by dtype; `half` is both float16 and bfloat16, `float16` that alone."""
    known = {
        "float64": float64,
        "float32": float32,
        "tf32": tf32,
        "bfloat16": half,
        "float16": half or float16,
        "float8_e4m3fn": float8,
    }
    return {dtype: rate for dtype, rate in known.items() if rate is not None}


# NVIDIA A100 data sheet (1758950): all variants have the same rates.
_A100 = rates(19.5, tf32=156.0, half=312.0, float64=19.5)
# NVIDIA H100 data sheet, whose 989.4, 1,978.9 and 3,957.8 are with sparsity; H200 and GH200 have its chip.
_HOPPER = rates(66.9, tf32=494.7, half=989.4, float8=1978.9, float64=66.9)
# The same sheet: 1,513 and 3,026 with sparsity.
_HOPPER_PCIE = rates(51.2, half=756.5, float8=1513.0, float64=51.2)
# AMD Instinct MI300X data sheet; that of MI325X has the same rates.
_CDNA3 = rates(163.4, tf32=653.7, half=1307.4, float8=2614.9, float64=163.4)

SHEETS = (
    # NVIDIA V100 data sheet (1165301).
    DataSheet("V100 SXM", "sm_70", 900, rates(15.7, float16=125.0, float64=7.8), ("16gb", "32gb")),
    DataSheet("V100 PCIe", "sm_70", 900, rates(14.0, float16=112.0, float64=7.0), ("16gb", "32gb")),
    # NVIDIA T4 data sheet (951643).
    DataSheet("T4", "sm_75", 320, rates(8.1, float16=65.0)),
    DataSheet("A100 40GB", "sm_80", 1555, _A100, ("sxm", "pcie")),
    DataSheet("A100 80GB SXM", "sm_80", 2039, _A100),
    DataSheet("A100 80GB PCIe", "sm_80", 1935, _A100),
    # NVIDIA A10 data sheet.
    DataSheet("A10", "sm_86", 600, rates(31.2, tf32=62.5, half=125.0), ("24gb", "pcie")),
    # NVIDIA RTX A6000 data sheet, 309.7 with sparsity.
    DataSheet("RTX A6000", "sm_86", 768, rates(38.7, half=154.8), ("48gb",)),
    # NVIDIA Ampere GA102 white paper: 142 accumulates in float16; in float32, GeForce has half of it.
    DataSheet("RTX 3090", "sm_86", 936, rates(35.6, half=71.0), ("24gb",)),
    # NVIDIA L4 data sheet: TF32 120, BF16 242, FP8 485 with sparsity.
    DataSheet("L4", "sm_89", 300, rates(30.3, tf32=60.0, half=121.0, float8=242.5), ("24gb",)),
    # NVIDIA L40S data sheet.
    DataSheet("L40S", "sm_89", 864, rates(91.6, tf32=183.0, half=362.05, float8=733.0), ("48gb",)),
    # NVIDIA Ada white paper: with accumulation in float32.
    DataSheet("RTX 4090", "sm_89", 1008, rates(82.6, tf32=82.6, half=165.2, float8=330.3), ("24gb",)),
    DataSheet("H100 SXM", "sm_90", 3350, _HOPPER, ("80gb", "hbm3")),
    DataSheet("H100 PCIe", "sm_90", 2000, _HOPPER_PCIE, ("80gb", "hbm2e")),
    # NVIDIA H200 data sheet.
    DataSheet("H200", "sm_90", 4800, _HOPPER, ("141gb", "sxm", "hbm3e")),
    # NVIDIA GH200 data sheet; the driver's name for the first has the 480 GB of its CPU.
    DataSheet("GH200 96GB", "sm_90", 4000, _HOPPER, ("480gb", "hbm3")),
    DataSheet("GH200 144GB", "sm_90", 4900, _HOPPER, ("hbm3e",)),
    # NVIDIA Blackwell architecture brief, HGX B200: with sparsity TF32 2,200, BF16 4,500, FP8 9,000.
    DataSheet(
        "B200", "sm_100", 8000, rates(80.0, tf32=1100.0, half=2250.0, float8=4500.0, float64=40.0),
        ("180gb", "192gb", "sxm", "hgx"),
    ),
    # NVIDIA RTX Blackwell white paper: with accumulation in float32, 838 with sparsity and float16.
    DataSheet("RTX 5090", "sm_120", 1792, rates(104.8, half=209.5), ("32gb",)),
    # AMD Instinct MI250X data sheet, halved: torch sees each of its two dies as a device.
    DataSheet("MI250X", "gfx90a", 1638.4, rates(47.9, half=191.5, float64=47.9), ("die", "gcd")),
    DataSheet("MI300X", "gfx942", 5300, _CDNA3, ("192gb", "oam")),
    DataSheet("MI325X", "gfx942", 6000, _CDNA3, ("256gb", "oam")),
    # AMD Instinct MI355X data sheet.
    DataSheet("MI355X", "gfx950", 8000, rates(157.3, half=2516.6, float8=5033.2), ("288gb", "oam")),
)  # fmt: skip

NAMES = tuple(sheet.name for sheet in SHEETS)
_MAKERS = frozenset({"nvidia", "amd", "geforce", "quadro", "tesla", "instinct", "radeon", "rtx", "gpu"})


def datasheet(name: str) -> DataSheet:
    """The sheet of the GPU that is meant: `h200`, `RTX4090`, `NVIDIA A100-SXM4-80GB`.

    Capitals, the maker and punctuation do not matter. Raises BadInput for one that is not known, and for one
    with several variants where the name leaves open which.
    """
    given = words_of(name)
    meant = [s for s in SHEETS if chip_of(s.name) in given and given <= words_of(s.name) | set(s.also)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        variants = " or ".join(sheet.name for sheet in meant)
        raise BadInput(f"{name!r} can mean {variants}, which differ.", "Name one of them in full.")
    raise BadInput(f"There is no data sheet for {name!r}.", f"Known GPUs: {', '.join(NAMES)}.")


def chip_of(product: str) -> str:
    """The word that names the chip: `a100`, `4090`."""
    words: list[str] = re.findall(r"[a-z0-9]+", product.lower())
    return next(word for word in words if any(map(str.isdigit, word)))


def words_of(name: str) -> set[str]:
    """Lower-case words without the maker; what is often written together is split."""
    text = re.sub(r"\bmi[- ]+(?=\d)", "mi", name.lower())
    text = re.sub(r"sxm\d(?!\d)", "sxm", re.sub(r"(\d) gb", r"\1gb", text))
    text = re.sub(r"(rtx|sxm|pcie|(?<!\d)\d+gb)", r" \1 ", text)
    return set(re.findall(r"[a-z0-9]+", text)) - _MAKERS

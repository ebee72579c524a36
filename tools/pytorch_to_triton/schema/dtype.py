"""The dtypes of tensors, and what a scalar may be."""

from typing import Literal, get_args

DType = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex32", "complex64", "complex128", "uint16", "uint32", "uint64",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
]  # fmt: skip
ITEM_BYTES: dict[DType, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
    "complex32": 4, "complex64": 8, "complex128": 16, "uint16": 2, "uint32": 4, "uint64": 8,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1,
}  # fmt: skip
OF_INPUTS: tuple[DType, ...] = (
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
)  # fmt: skip
"""Those that inputs may have; in the others a function may compute on its way."""
Scalar = bool | int | float | str | None
TORCH_DTYPES = frozenset(f"torch.{name}" for name in get_args(DType))
"""The texts that stand for dtypes where a value is passed."""


def source_of(value: object) -> str:
    """A value as Python has it; `torch.float32` is that dtype."""
    return value if isinstance(value, str) and value in TORCH_DTYPES else repr(value)

"""Cases of special values: magnitudes, signs, ties, zeros, and what is not finite."""

from collections.abc import Sequence

from pytorch_to_triton.inputs.case import Fill
from pytorch_to_triton.inputs.input_spec import INTEGERS, TensorSpec
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.validate.plan import Change, PlanBuilder

_FILLS: tuple[Fill, ...] = (
    "zeros", "ones", "equal_rows", "large", "small", "tiny", "denormal", "negative", "negative_zero",
    "alternating",
)  # fmt: skip
_NON_FINITE: tuple[Fill, ...] = ("inf", "nan")
_TENSORS_NON_FINITE = 2
"""Tensors that are given inf and NaN, one at a time: each further one costs two cases and finds little."""
_WITHOUT_INFINITY: tuple[DType, ...] = ("float8_e4m3fn",)


def add_specials(plan: PlanBuilder, base: Point) -> None:
    """Special values: in all floating tensors at once; inf and NaN also in one tensor at a time.

    Huge ones only in the first: the product of two huge tensors overflows whatever the kernel does next, and
    PyTorch's own results beyond that say little. Ties are given to integers too. A floating tensor whose
    range is declared has none of all this.
    """
    tensors = plan.declaration.tensors()
    free = free_tensors(plan)
    for name, spec in tensors.items():
        if is_floating(spec.dtypes[0]) and spec.low is not None:
            plan.leave_out(f"special values of {name}", f"its range is declared: {spec.low}..{spec.high}")
    for fill in _FILLS if free else ():
        plan.add("special", base, Change(fill.replace("_", " "), fills=dict.fromkeys(free, fill)))
    for name in list(free)[:1]:
        plan.add("special", base, Change(f"huge in {name}", fills={name: "huge"}))
        plan.add("special", base, Change(f"shifted {name}", fills={name: "shifted"}))
    tied = [name for name, spec in tensors.items() if name in free or spec.dtypes[0] in INTEGERS]
    if tied:
        plan.add("special", base, Change("ties", fills=dict.fromkeys(tied, "ties")))
    for name in list(free)[:_TENSORS_NON_FINITE]:
        add_non_finite(plan, base, name)
    for name in list(free)[_TENSORS_NON_FINITE:]:
        why = f"only {_TENSORS_NON_FINITE} tensors of a target are given them"
        plan.leave_out(f"inf and nan in {name}", why)
    _add_non_finite_together(plan, base, list(free))
    for name in list(free)[:1]:
        _add_where_infinite(plan, base, Change(f"minus inf row in {name}", fills={name: "minus_inf_row"}))


def add_non_finite(plan: PlanBuilder, base: Point, name: str, change: Change | None = None) -> None:
    """inf, then NaN, in the tensor `name`; `change` says in which dtypes, if not in the first ones."""
    change = change or Change()
    for fill in _NON_FINITE:
        label = " ".join(part for part in (change.label, f"{fill} in {name}") if part)
        _add_where_infinite(plan, base, Change(label, dtypes=change.dtypes, fills={name: fill}))


def add_magnitudes(plan: PlanBuilder, base: Point, change: Change) -> None:
    """Small values in all tensors of a further dtype, and huge ones in the first.

    Squares that overflow float16 alone, and an eps that is chosen by dtype, show nowhere else.
    """
    names = [name for name in change.dtypes if name in free_tensors(plan)]
    fills: dict[str, dict[str, Fill]] = {"small": dict.fromkeys(names, "small")}
    fills |= {f"huge in {name}": {name: "huge"} for name in names[:1]}
    for label, filled in fills.items() if names else ():
        plan.add("special", base, Change(f"{change.label} {label}", dtypes=change.dtypes, fills=filled))


def _add_non_finite_together(plan: PlanBuilder, base: Point, names: Sequence[str]) -> None:
    """inf, then NaN, in several tensors at once, so that they meet: inf - inf, inf + -inf, NaN and NaN."""
    infinite = [name for name in names if _dtype_of(plan, name) not in _WITHOUT_INFINITY]
    signs: tuple[Fill, Fill] = ("inf_ends", "inf_opposed")
    if len(infinite) > 1:
        fills = {name: signs[place % 2] for place, name in enumerate(infinite)}
        plan.add("special", base, Change("inf in all", fills=fills))
    if len(names) > 1:
        plan.add("special", base, Change("nan in all", fills=dict.fromkeys(names, "nan_ends")))


def _add_where_infinite(plan: PlanBuilder, base: Point, change: Change) -> None:
    """Adds the case unless it asks for infinities of a dtype that has none."""
    for name, fill in change.fills.items():
        dtype = change.dtypes.get(name, _dtype_of(plan, name))
        if fill != "nan" and dtype in _WITHOUT_INFINITY:
            plan.leave_out(change.label, f"{dtype} has no infinity")
            return
    plan.add("special", base, change)


def _dtype_of(plan: PlanBuilder, name: str) -> DType:
    return plan.declaration.tensors()[name].dtypes[0]


def free_tensors(plan: PlanBuilder) -> dict[str, TensorSpec]:
    """The floating tensors that may hold any value, by name."""
    tensors = plan.declaration.tensors().items()
    return {name: spec for name, spec in tensors if is_floating(spec.dtypes[0]) and spec.low is None}


def is_floating(dtype: DType) -> bool:
    return dtype.startswith(("float", "bfloat"))

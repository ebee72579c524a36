"""What the cases of a validation combine: sizes, dtypes, layouts, values and configurations, by levels.

A level stands for whichever of its alternatives fits, or is next: `ragged` for several sizes that fill no
block, `small` for subnormal numbers and for 1e-4.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice, product
from random import Random

from pytorch_to_triton.inputs.case import Fill, Layout
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import names_in
from pytorch_to_triton.inputs.input_spec import INTEGERS, ConstantSpec, TensorSpec
from pytorch_to_triton.inputs.sizes import smallest_point
from pytorch_to_triton.schema.dtype import DType, Scalar
from pytorch_to_triton.validate.host_code import MOST_SWITCHES
from pytorch_to_triton.validate.plan import NO_CHANGE, Change, PlanBuilder

ALL = "all"
"""The holder of values that every tensor is given."""
FIRST = "first"
"""The level of the dtypes that are declared first."""
RANDOM = "random"
"""The level of values that are nothing special."""
CONTIGUOUS, EXPANDED = "contiguous", "expanded"
"""Levels of a layout."""
LONG = "long"
"""The level of sizes past all declared ones, or past one at which the code takes another way."""
PRIME = 13
"""An odd size below most blocks."""
RANDOM_SIZES = 3
"""Sizes at random for each dim: a kernel made for the planned ones cannot know them."""
ROUND_STEPS = (16, 128)
"""Tried past a size where requirements ask for multiples."""
MANY_PROGRAMS = 1_024
"""Sizes that are no row's are larger than this in few cases: each is a program or more, and the interpreter
takes them one by one."""
PAST_A_SWITCH = 2
"""Where the code takes another way at a size of no row, up to so many times as many programs."""
LONGEST = 2**16
"""Where larger sizes are declared, a row past them shows no more."""
_STEPS_TRIED = 1_024
SizeLevels = Mapping[str, Mapping[str, tuple[int, ...]]]
"""By dim and level, the sizes that may stand for it."""


Fills = tuple[Fill, ...]
VALUES: dict[str, tuple[Fills, Fills]] = {
    "negative": (("negative",), ()),
    "positive": (("positive",), ()),
    "nan": (("nan_ends",), ("nan",)),
    "inf": (("inf_ends",), ("inf",)),
    # The product of two huge tensors overflows whatever the kernel does next.
    "large": (("large",), ("huge",)),
    "minus inf": ((), ("minus_inf_row", "minus_inf_column")),
    "plus inf": ((), ("plus_inf_row", "plus_inf_column")),
    "small": (("small",), ("faint_rows",)),
    "equal": (("zeros", "equal_rows", "ones"), ()),
    "signs": (("ties", "alternating", "negative_zero"), ()),
    "shifted": ((), ("shifted",)),
}
"""By level, the most telling first: fills that are alike, given to all tensors at once, and to one alone."""
GROWING = ("negative", "positive")
"""Values that grow in size along every dimension: whatever misses the last of many rows shows in them."""
EVERY_HOLDER = ("nan", "inf")
"""Values that each tensor is to hold in some case; the holders of the others take turns."""
_LAYOUTS: dict[str, tuple[Layout, ...]] = {
    CONTIGUOUS: ("contiguous",),
    "transposed": ("transposed",),
    EXPANDED: ("expanded",),
    "apart": ("sliced", "offset"),
}
_OF_VECTORS = (CONTIGUOUS, "apart")
"""A vector has no transpose."""
_WITHOUT_INFINITY: tuple[DType, ...] = ("float8_e4m3fn",)


def free_tensors(declaration: Declaration) -> dict[str, TensorSpec]:
    """The floating tensors that may hold any value, by name."""
    tensors = declaration.tensors().items()
    return {name: spec for name, spec in tensors if is_floating(spec.dtypes[0]) and spec.low is None}


def is_floating(dtype: DType) -> bool:
    return dtype.startswith(("float", "bfloat"))


def value_changes(declaration: Declaration) -> dict[tuple[str, str], tuple[Change, ...]]:
    """By level and holder, the alternatives; a single tensor holds what all hold too."""
    free = list(free_tensors(declaration))
    tied = [name for name, spec in declaration.tensors().items() if spec.dtypes[0] in INTEGERS]
    changes: dict[tuple[str, str], tuple[Change, ...]] = {(RANDOM, ALL): (NO_CHANGE,)}
    for level, (of_all_tensors, of_each) in VALUES.items() if free else ():
        of_all = [fill for fill in of_all_tensors if len(free) > 1 or not fill.endswith("_ends")]
        if of_all:
            changes[level, ALL] = tuple(_in_all(fill, free, tied) for fill in of_all)
        for name in free if of_each else ():
            changes[level, name] = tuple(
                Change(f"{_words(fill)} in {name}", fills={name: fill}) for fill in of_each
            )
    if tied and not free:
        changes["signs", ALL] = (Change("ties", fills=dict.fromkeys(tied, "ties")),)
    return changes


def edge_changes(declaration: Declaration) -> Iterator[Change]:
    """Values at the edge of what is declared: everywhere else they would hide what is wrong beside them."""
    tensors = declaration.tensors()
    integers = {name: spec for name, spec in tensors.items() if spec.dtypes[0] in INTEGERS}
    masks = [name for name, spec in tensors.items() if spec.dtypes[0] == "bool"]
    edges: tuple[tuple[str, Fill, Sequence[str]], ...] = (
        ("ends of ranges", "ends", [name for name in with_kinks(tensors) if tensors[name].low is not None]),
        ("integer extremes", "extremes", [n for n, s in integers.items() if s.low is None]),
        ("all outside", "outside", [n for n, s in integers.items() if s.outside is not None]),
        ("all false", "zeros", masks),
        ("all true", "ones", masks),
    )
    for label, fill, names in edges:
        if names:
            yield Change(label, fills=dict.fromkeys(names, fill))


def threshold_change(declaration: Declaration, written: Iterable[float]) -> Change:
    """The float options and numbers that are written in the reference, and their negatives, among the values
    of free tensors: `>=` in place of `>` shows nowhere else. No change where there are none.
    """
    constants = (spec.value for spec in declaration.inputs.values() if isinstance(spec, ConstantSpec))
    options = (value for value in constants if isinstance(value, float))
    numbers = tuple(dict.fromkeys(each for n in (*options, *written) if n for each in (n, -n)))
    holders = with_kinks(free_tensors(declaration))
    return Change("thresholds", among=dict.fromkeys(holders, numbers)) if numbers and holders else NO_CHANGE


def with_kinks(tensors: Mapping[str, TensorSpec]) -> list[str]:
    """The floating tensors that may lie where a function has a kink: finite differences, which are taken in
    float64, are no derivatives there.
    """
    return [
        name for name, spec in tensors.items() if is_floating(spec.dtypes[0]) and spec.dtypes[0] != "float64"
    ]


def _in_all(fill: Fill, free: Sequence[str], tied: Sequence[str]) -> Change:
    """A fill of all free tensors; ties are given to integers too, and infinities meet their opposites."""
    fills: dict[str, Fill] = dict.fromkeys(free, fill)
    if fill == "inf_ends":
        fills = {name: ("inf_ends", "inf_opposed")[place % 2] for place, name in enumerate(free)}
    if fill == "ties":
        fills |= dict.fromkeys(tied, fill)
    label = {"inf_ends": "inf in all", "nan_ends": "nan in all"}.get(fill, _words(fill))
    return Change(label, fills=fills)


def _words(fill: Fill) -> str:
    return fill.replace("_", " ")


def has_infinity(declaration: Declaration, change: Change) -> bool:
    """Whether the dtypes can hold what the fills ask for: some float8 have NaN but no infinity."""
    tensors = declaration.tensors()
    dtypes = {name: change.dtypes.get(name, tensors[name].dtypes[0]) for name in change.fills}
    return not any("inf" in fill and dtypes[name] in _WITHOUT_INFINITY for name, fill in change.fills.items())


def layout_changes(declaration: Declaration) -> dict[str, dict[str, tuple[Change, ...]]]:
    """By tensor and level, the alternatives."""
    return {
        name: {
            level: tuple(
                NO_CHANGE if level == CONTIGUOUS else Change(f"{name} {layout}", layouts={name: layout})
                for layout in layouts
            )
            for level, layouts in _LAYOUTS.items()
            if len(spec.shape) > 1 or level in _OF_VECTORS
        }
        for name, spec in declaration.tensors().items()
        if spec.shape
    }


def dtype_changes(declaration: Declaration) -> dict[str, Change]:
    """By level, each further declared dtype; tensors that declare the same dtypes change together."""
    by_dtypes: dict[tuple[DType, ...], list[str]] = {}
    for name, tensor in declaration.tensors().items():
        by_dtypes.setdefault(tensor.dtypes, []).append(name)
    several = {dtypes: names for dtypes, names in by_dtypes.items() if len(dtypes) > 1}
    changes = (
        Change(
            dtype if len(several) == 1 else f"{dtype} {','.join(names)}", dtypes=dict.fromkeys(names, dtype)
        )
        for dtypes, names in several.items()
        for dtype in dtypes[1:]
    )
    return {change.label: change for change in changes}


def constant_changes(declaration: Declaration) -> dict[str, dict[str, Change]]:
    """By constant of which several values are declared and by level, each of them; the first is no change."""
    return {
        name: {
            shown: Change(f"{name} {shown}", constants={name: value}) if value != values[0] else NO_CHANGE
            for shown, value in zip(_shown(values), values, strict=True)
        }
        for name, values in declaration.listed().items()
    }


def _shown(values: Sequence[Scalar]) -> list[str]:
    """Each value as a label has it; by its number where a label would be read otherwise."""
    return [
        str(value) if re.fullmatch(r"[\w.+-]+", str(value)) else f"number {number}"
        for number, value in enumerate(values, 1)
    ]


def value_combinations(declaration: Declaration) -> Iterator[Change]:
    """All values together, each with each, but for the first ones."""
    changes = constant_changes(declaration).values()
    joined = (
        reduce(Change.joined, each) for each in product(*(levels.values() for levels in changes)) if each
    )
    return (change for change in joined if change.label)


def size_levels(plan: PlanBuilder, seed: int | None) -> SizeLevels:
    return {name: _levels_of(plan, name, seed) for name in plan.base}


def _levels_of(plan: PlanBuilder, name: str, seed: int | None) -> dict[str, tuple[int, ...]]:
    declared, base = plan.declaration.dims[name], plan.base
    smallest = smallest_point(plan.declaration.dims)
    around = _sizes_at_switches(plan, name)
    at_switches = tuple(size for size in around if plan.fits({**smallest, name: size}))
    sizes = dict.fromkeys(
        (
            *_uneven_sizes(plan, name),
            *_random_sizes(name, declared, seed),
            *declared,
            *map(_near_power_of_two, (base[name], max(declared))),
            *at_switches,
        )
    )
    most = math.inf if name in row_dims(plan.declaration) else max(MANY_PROGRAMS, base[name])
    # What is declared to be this long is long already.
    beyond = tuple(_sizes_beyond(plan, name)) if max(declared) < min(LONGEST, most) else ()
    at_switches = tuple(size for size in at_switches if size <= PAST_A_SWITCH * most)
    allowed = [size for size in sizes if size > 1 and (size <= most or size in at_switches)]
    levels = {
        "ragged": tuple(size for size in allowed if is_ragged(size) and size <= max(declared)),
        "aligned": tuple(size for size in allowed if not is_ragged(size)),
        # Where the code takes another way for long rows, long ones are those that take it.
        LONG: tuple(
            size for size in at_switches if size in allowed and size > max(declared) and is_ragged(size)
        )
        or beyond,
        "one": (1,),
    }
    return {level: sizes for level, sizes in levels.items() if sizes}


def fills_no_block(size: int) -> bool:
    """Whether a block, which is a power of two, has lanes past the end."""
    return size == 1 or is_ragged(size)


def is_ragged(size: int) -> bool:
    return size.bit_count() > 1


def _uneven_sizes(plan: PlanBuilder, name: str) -> Iterator[int]:
    """Odd sizes near the base and tiny ones; where requirements allow none, the next that fills no block."""
    size, largest = plan.base[name], max(plan.declaration.dims[name])
    powers = [_near_power_of_two(size), _near_power_of_two(largest)]
    near = (size + 1 + size % 2, PRIME, 3, *(power + step for power in powers for step in (-1, 1)))
    yield from (odd for odd in near if odd <= largest)
    if any(name in names_in(text) for text in plan.declaration.requires):
        candidates = (c for c in range(size + 1, size + _STEPS_TRIED + 1) if is_ragged(c))
        yield from islice((c for c in candidates if plan.problem({**plan.base, name: c}) is None), 1)


def _random_sizes(name: str, declared: Sequence[int], seed: int | None) -> Iterator[int]:
    """Odd sizes, log-uniform between 3 and the largest declared one."""
    random = Random(f"sizes {name} {seed}")
    largest = max(declared)
    for _ in range(RANDOM_SIZES if seed is not None and largest > 3 else 0):
        yield min(int(math.exp(random.uniform(math.log(3), math.log(largest)))) | 1, largest)


def _sizes_beyond(plan: PlanBuilder, name: str) -> Iterator[int]:
    """The next odd size, and past twice the power of two that holds the largest."""
    declared = plan.declaration.dims[name]
    if not plan.declaration.inputs:
        return
    yield max(declared) + 1 + max(declared) % 2
    yield from _just_past(plan, name, 2 << (max(declared) - 1).bit_length())


def _sizes_at_switches(plan: PlanBuilder, name: str) -> Iterator[int]:
    """Each side of each size at which the candidate takes another way."""
    for size in plan.switches_of(name)[:MOST_SWITCHES]:
        yield size
        yield from _just_past(plan, name, size, *ROUND_STEPS)


def _just_past(plan: PlanBuilder, name: str, size: int, *further_steps: int) -> list[int]:
    """The nearest allowed size that is 1, the declared sizes' common factor or a further step larger."""
    common = math.gcd(*plan.declaration.dims[name]) or 1
    larger = (size + step for step in (1, common, *further_steps))
    return [*islice((s for s in larger if not plan.declaration.violated({**plan.base, name: s})), 1)]


def _near_power_of_two(size: int) -> int:
    """The power of two nearest to the size, 2 at least; the lower of two."""
    below = max(2, 1 << (size.bit_length() - 1)) if size else 2
    return min((below, 2 * below), key=lambda power: abs(power - size))


def row_dims(declaration: Declaration) -> frozenset[str]:
    """The dims that the last size of a tensor of the most dimensions names."""
    shapes = [tensor.shape for tensor in declaration.tensors().values() if tensor.shape]
    most = max(map(len, shapes), default=0)
    return frozenset[str]().union(*(names_in(shape[-1]) for shape in shapes if len(shape) == most))

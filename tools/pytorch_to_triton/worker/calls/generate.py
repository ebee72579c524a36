"""Generating a case's arguments: each from its own seed, in the fills and layouts of inputs/case.py."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..wire.packing import packing_of

NON_FINITE_SHARE = 64
"""The fills inf and nan replace one element in this many, and at least one."""
HUGE_SHORT = 16.0
HUGE_WIDE = 2.0**-10
"""Scales of the fill huge, in square roots of the dtype's maximum: float16 and float8, and all others."""
TIES = 5
"""Distinct values of the fill ties."""
LARGE_OFFSET = 2**31
"""Elements; the last row of a tensor with large strides starts beyond it."""
ROW_ALIGNMENT = 16
"""Elements; such rows keep the alignment that kernels are specialized for."""
DEFAULT_INTEGERS = (-100, 101)
OUTSIDE_SHARE = 0.125
NUMBERS_SHARE, ENDS_SHARE = 8, 4
"""One element in so many is one of given numbers, or an end of its range."""
NOT_HELD = (2**24, 2**31, 2**53)
"""From here on float32, int32 and float64 do not hold each integer."""
LARGE_MEAN = 1000.0
"""In units of the spread around it."""
PERTURBATION = 0.25
"""How much a module's initial state is changed, in units of its own spread."""

Spec = Mapping[str, Any]


def generate_arguments(case: Spec, seed: int, device: str = "cpu") -> dict[str, Any]:
    """The case's arguments by name, tensors on the device, and for what is packed its Packing.

    On the CPU they are the same for the same seed on every machine; a GPU draws gigabytes in no time.
    """
    return {
        argument["name"]: generate_argument(case["name"], argument, seed, device)
        for argument in case["arguments"]
    }


def generate_argument(case_name: str, argument: Spec, seed: int, device: str = "cpu") -> Any:
    if argument["form"] == "tensor":
        return generate_tensor(argument, generator(seed, case_name, argument["name"], device=device))
    return packing_of(argument["packing"]) if argument["form"] == "packed" else argument["value"]


def generator(seed: int, *names: str, device: str = "cpu") -> torch.Generator:
    """A random generator whose seed depends on each of the names; what it draws is on the device."""
    digest = hashlib.sha256("\0".join([str(seed), *names]).encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def generate_tensor(spec: Spec, random: torch.Generator) -> torch.Tensor:
    """A tensor of the spec's dtype, shape, fill, range and layout, on the generator's device.

    The layout `large_stride` stays contiguous.
    """
    dtype: torch.dtype = getattr(torch, spec["dtype"])
    if dtype.is_complex:
        parts = generate_floats({**spec, "shape": [*spec["shape"], 2]}, dtype.to_real(), random)
        return laid_out(torch.view_as_complex(parts), spec["layout"])
    values = (
        generate_floats(spec, dtype, random)
        if dtype.is_floating_point
        else generate_integers(spec, dtype, random)
    )
    return laid_out(values, spec["layout"])


def generate_floats(spec: Spec, dtype: torch.dtype, random: torch.Generator) -> torch.Tensor:
    shape, low, high = tuple(spec["shape"]), spec["low"], spec["high"]
    precise = torch.float64 if dtype == torch.float64 else torch.float32
    if low is None or high is None:
        fill, limits = FILLS[spec["fill"]], torch.finfo(dtype)
        values = fill(signed(shape, precise, random), limits, random)
        numbers = [number for number in spec.get("among", ()) if abs(number) <= limits.max]
        return with_numbers(values, numbers, NUMBERS_SHARE, random).to(dtype)
    values = (
        low + (high - low) * torch.rand(shape, generator=random, device=random.device, dtype=precise)
    ).to(dtype)
    # Rounding to a short dtype may reach `high`, which the range excludes.
    wide = values.to(precise)
    wide = torch.where(wide < high, wide, torch.full_like(wide, low))
    ends = [low, max(low, largest_below(high, dtype))] if spec["fill"] == "ends" else []
    return with_numbers(wide, ends, ENDS_SHARE, random).to(dtype)


def with_numbers(
    values: torch.Tensor, numbers: Sequence[float], share: int, random: torch.Generator
) -> torch.Tensor:
    """One element in `share`, and at least one, is one of the numbers, each in turn."""
    count = -(-values.numel() // share) if numbers else 0
    places = torch.randperm(values.numel(), generator=random, device=random.device)[:count]
    turns = torch.arange(count, device=values.device) % max(len(numbers), 1)
    values.view(-1)[places] = torch.tensor(numbers, device=values.device, dtype=values.dtype)[turns]
    return values


def largest_below(end: float, dtype: torch.dtype) -> float:
    """The largest number of the dtype below the end of a range, of below zero the largest normal one."""
    limits = torch.finfo(dtype)
    steps = (0.0, abs(end) * limits.eps / 2, abs(end) * limits.eps, limits.tiny)
    near = (torch.tensor(end - step, dtype=torch.float64).to(dtype).item() for step in steps)
    return max(number for number in near if number < end)


def signed(shape: tuple[int, ...], dtype: torch.dtype, random: torch.Generator) -> torch.Tensor:
    """Normal numbers of both signs; each row (last dimension) has a scale in 0.5..2, an offset in -1..1."""
    rows = (*shape[:-1], 1) if shape else ()
    scale = 0.5 + 1.5 * torch.rand(rows, generator=random, device=random.device, dtype=dtype)
    offset = 2 * torch.rand(rows, generator=random, device=random.device, dtype=dtype) - 1
    return torch.randn(shape, generator=random, device=random.device, dtype=dtype) * scale + offset


Fill = Callable[[torch.Tensor, torch.finfo, torch.Generator], torch.Tensor]


def huge(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
    """Every second row; of a single row every second element: the others stay judgeable whatever overflows.

    Squares overflow dtypes whose kernels compute in a wider one. Where float32 or float64 itself is the
    arithmetic, sums of squares just fit and cubes overflow: past that, PyTorch's own variances are wrong.
    """
    rows = values.shape[:-1]
    places = (*rows, 1) if math.prod(rows) > 1 else tuple(values.shape)
    number = torch.arange(math.prod(places), device=values.device).view(places)
    # The first row is all that the layout `expanded` shows.
    chosen = (number % 2 == 0) & (number < max(number.numel() - 1, 1))
    computed_wider = limits.max < math.sqrt(torch.finfo(torch.float32).max)
    scale = math.sqrt(limits.max) * (HUGE_SHORT if computed_wider else HUGE_WIDE)
    # Half of the maximum leaves room to round.
    raised = (values * scale).clamp(-limits.max / 2, limits.max / 2)
    return torch.where(chosen, raised, values)


def faint_rows(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
    """Subnormal numbers, numbers whose squares are barely normal, and small ones: a row of each in turn."""
    # float8_e5m2 has three subnormal numbers: at 1/4, 1/2 and 3/4 of its smallest normal one.
    share = 0.25 + 0.5 * torch.rand(values.shape, generator=random, device=random.device, dtype=values.dtype)
    denormal = torch.copysign(share * limits.tiny, values)
    tiny = torch.copysign(4 * math.sqrt(limits.tiny) * (1 + values.abs()), values)
    rows = (*values.shape[:-1], 1) if values.ndim else ()
    turn = torch.arange(math.prod(rows), device=values.device).view(rows) % 3
    return torch.where(turn == 0, denormal, torch.where(turn == 1, tiny, small(values, limits, random)))


def small(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
    return values * max(1e-4, math.sqrt(limits.tiny) * 2)


def ties(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
    """Halves around zero, exact in every dtype."""
    steps = torch.randint(TIES, values.shape, generator=random, device=random.device) - TIES // 2
    return steps.to(values.dtype) / 2


def negative_zero(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
    chosen = torch.rand(values.shape, generator=random, device=random.device) < 0.5
    chosen.view(-1)[:1] = True
    return torch.where(chosen, torch.full_like(values, -0.0), values)


def alternating(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
    odd = torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    for dimension, size in enumerate(values.shape):
        odd += torch.arange(size, device=values.device).view(-1, *[1] * (values.ndim - dimension - 1))
    magnitude = values.abs().add(0.1)
    return torch.where(odd % 2 == 1, -magnitude, magnitude)


def with_inf(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
    places = some_places(values, random)
    values.view(-1)[places[0::2]] = torch.inf
    values.view(-1)[places[1::2]] = -torch.inf
    return values


def with_nan(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
    values.view(-1)[some_places(values, random)] = torch.nan
    return values


def with_ends(first: float, last: float) -> Fill:
    """Random but for the first and last element: tensors that are combined have theirs in the same places."""

    def fill(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
        values.view(-1)[-1:] = last
        values.view(-1)[:1] = first
        return values

    return fill


def growing(values: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Positive numbers that grow along every dimension, but shrink along every second row.

    A maximum that misses the last block then shows, however short that is. A row's ends stand out by a factor
    of two, so that the largest is the only one of its size in any dtype.
    """
    scale = 0.5 + torch.rand((), generator=random, device=random.device, dtype=values.dtype)
    total = torch.full(values.shape, 0.1, device=values.device, dtype=values.dtype)
    for dimension, size in enumerate(values.shape):
        steps = torch.arange(1, size + 1, device=values.device, dtype=values.dtype) / max(size, 1)
        total += steps.view(-1, *[1] * (values.ndim - dimension - 1))
    if values.ndim:
        total[..., :1] /= 2
        total[..., -1:] *= 2
    if values.ndim > 1:
        total[..., 1::2, :] = total[..., 1::2, :].flip(-1)
    return scale * total


def with_corners(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
    """The first, the middle and the last element are always the same: a key made of them tells nothing."""
    if values.numel():
        values[tuple(size // 2 for size in values.shape)] = 0.5
        values.view(-1)[:: max(values.numel() // 2, 1)] = 0.5
        values.view(-1)[-1] = 0.5
    return values


def with_row(value: float) -> Fill:
    """A first row of nothing but this value, such as the minus infinity of a mask; a scalar as a whole."""

    def fill(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
        values.view(-1)[: values.shape[-1] if values.ndim else 1] = value
        return values

    return fill


def with_column(value: float) -> Fill:
    """The first element of each row is this value; a scalar as a whole."""

    def fill(values: torch.Tensor, limits: torch.finfo, random: torch.Generator) -> torch.Tensor:
        (values if values.ndim else values.view(1))[..., :1] = value
        return values

    return fill


def some_places(values: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Places in flattened order, the first of them in the first row: the layout `expanded` shows no other."""
    count = -(-values.numel() // NON_FINITE_SHARE)
    places = torch.randint(max(values.numel(), 1), (count,), generator=random)
    places[:1] %= max(values.shape[-1:].numel(), 1)
    return places


FILLS: dict[str, Fill] = {
    "random": lambda values, limits, random: values,
    # No element has a range where there is none.
    "ends": lambda values, limits, random: values,
    "zeros": lambda values, limits, random: torch.zeros_like(values),
    "ones": lambda values, limits, random: torch.ones_like(values),
    "equal_rows": lambda values, limits, random: (
        values[..., :1].expand_as(values).clone() if values.ndim else values
    ),
    "ties": ties,
    "large": lambda values, limits, random: values * min(1e4, math.sqrt(limits.max) / 4),
    "huge": huge,
    "small": small,
    "faint_rows": faint_rows,
    # The largest is last here too: beside it a maximum meets what pads the last block.
    "negative": lambda values, limits, random: growing(values, random).flip(tuple(range(values.ndim))).neg(),
    "positive": lambda values, limits, random: growing(values, random),
    "negative_zero": negative_zero,
    "alternating": alternating,
    # E[x^2] - E[x]^2 has nothing left of such values; x - E[x] has.
    "same_corners": with_corners,
    "shifted": lambda values, limits, random: values + min(LARGE_MEAN, 0.1 / limits.eps),
    "inf": with_inf,
    "inf_ends": with_ends(math.inf, math.inf),
    "inf_opposed": with_ends(math.inf, -math.inf),
    "minus_inf_row": with_row(-math.inf),
    "minus_inf_column": with_column(-math.inf),
    "plus_inf_row": with_row(math.inf),
    "plus_inf_column": with_column(math.inf),
    "nan": with_nan,
    "nan_ends": with_ends(math.nan, -math.nan),
}


def generate_integers(spec: Spec, dtype: torch.dtype, random: torch.Generator) -> torch.Tensor:
    """Uniform in low..high, of which both ends occur: offsets are largest there; one in eight is `outside`.

    Fills other than zeros, ones, ties, extremes and outside mean nothing to integers.
    """
    shape, fill = tuple(spec["shape"]), spec["fill"]
    if fill in ("zeros", "ones", "outside"):
        number = int(spec["outside"] if fill == "outside" else fill == "ones")
        return torch.full(shape, number, dtype=torch.int64, device=random.device).to(dtype)
    if dtype == torch.bool:
        return torch.rand(shape, generator=random, device=random.device) < 0.5
    low = DEFAULT_INTEGERS[0] if spec["low"] is None else int(spec["low"])
    high = DEFAULT_INTEGERS[1] if spec["high"] is None else int(spec["high"])
    low = max(low, torch.iinfo(dtype).min)
    if fill == "ties":
        low += max(high - low - TIES, 0) // 2
        high = min(high, low + TIES)
    values = torch.randint(low, high, shape, generator=random, device=random.device)
    if values.numel() > 1 and fill != "ties":
        places = torch.randperm(values.numel(), generator=random, device=random.device)[:2]
        values.view(-1)[places] = torch.tensor([high - 1, low], device=random.device)
    if spec.get("outside") is not None and fill != "ties":
        chosen = torch.rand(shape, generator=random, device=random.device) < OUTSIDE_SHARE
        values[chosen] = int(spec["outside"])
    return (extremes(values, torch.iinfo(dtype), random) if fill == "extremes" else values).to(dtype)


def extremes(values: torch.Tensor, limits: torch.iinfo, random: torch.Generator) -> torch.Tensor:
    """Half of the elements are one of two neighbours that a narrower dtype, or a float, does not tell apart.

    Rows, and of a single row the elements, take turns with which: the largest of a row is one of two.
    """
    past = ((number, number + 1) for number in NOT_HELD if number < limits.max)
    pairs = torch.tensor(
        [(limits.max - 1, limits.max), *past, (limits.min, limits.min + 1)], device=values.device
    )
    rows = values.shape[:-1]
    places = (*rows, 1) if math.prod(rows) > 1 else tuple(values.shape)
    turn = torch.arange(math.prod(places), device=values.device).view(places) % len(pairs)
    which, chosen = (torch.randint(2, values.shape, generator=random, device=random.device) for _ in range(2))
    return torch.where(chosen == 1, pairs[turn, which], values)


def laid_out(values: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values elsewhere in memory; as they are where the shape has no room for the layout.

    The layout `large_stride` needs gigabytes: here it stays contiguous, and gets its large_strides() later.
    """
    if layout == "transposed" and values.ndim >= 2:
        return values.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "expanded" and values.ndim >= 2:
        return values[:1].expand(values.shape)
    if layout == "sliced" and values.ndim:
        # What lies between differs from the tensor's own, so that a kernel that ignores strides fails.
        wide = torch.stack([values, torch.ones_like(values)], dim=-1).flatten(-2)
        return wide[..., ::2]
    if layout == "offset":
        storage = torch.cat([values.new_ones(1), values.reshape(-1)])
        return storage[1:].view(values.shape)
    return values


def large_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, that put the last row past an offset of 2^31; the others as if it were not there.

    A row is one index of the first dimension of three elements or more: the stride itself then fits 32 bits
    and its products do not, which is what breaks kernels. Without one, of the first dimension of two. Raises
    ValueError where no dimension has two elements.
    """
    long = [dimension for least in (3, 2) for dimension, size in enumerate(shape) if size >= least]
    if not long or 0 in shape:
        raise ValueError(f"a tensor of shape {list(shape)} has no two rows to move apart")
    strides, step = [0] * len(shape), 1
    for dimension in reversed(range(len(shape))):
        if dimension != long[0]:
            strides[dimension] = step
            step *= shape[dimension]
    large = LARGE_OFFSET // (shape[long[0]] - 1) + 1
    strides[long[0]] = -(-max(step, large) // ROW_ALIGNMENT) * ROW_ALIGNMENT
    return tuple(strides)


def perturbed_state(
    state: Mapping[str, torch.Tensor], parameters: set[str], seed: int
) -> dict[str, torch.Tensor]:
    """A module's state with noise added: weights of one and biases of zero would hide mistakes.

    Buffers that are positive (a running variance) stay positive; those that are neither positive nor zero
    (a mask, a table) stay as they are.
    """
    return {
        key: perturbed(value, key in parameters, generator(seed, "state", key))
        for key, value in state.items()
    }


def perturbed(value: torch.Tensor, is_parameter: bool, random: torch.Generator) -> torch.Tensor:  # noqa: FBT001
    if not value.is_floating_point() or value.numel() == 0:
        return value.clone()
    noise = PERTURBATION * torch.randn(value.shape, generator=random, device=random.device).to(value)
    if not is_parameter and bool((value > 0).all()):
        return value * noise.exp()
    if is_parameter or not bool(value.any()):
        spread = float(value.float().std(correction=0)) or float(value.float().abs().mean()) or 1.0
        return value + spread * noise
    return value.clone()

"""What can be reduced and scanned. What a monoid is stands here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from pytorch_to_triton.draft.ir.values import Axis, Const, Monoid, Number, Reduce, Value, op

LARGEST = 2**63 - 1
Fields = tuple[Value, ...]
Steps = tuple[tuple[int, Value], ...]


def _plain(name: str, identity: Number, fn: str) -> Monoid:
    return Monoid(name, (identity,), lift=lambda x: (x,), combine=lambda a, b: (op(fn, a[0], b[0]),))


SUM = _plain("sum", 0.0, "add")
PROD = _plain("prod", 1.0, "mul")
MAX = _plain("max", -inf, "maximum")
"""NaN wins, as in torch.amax."""
MIN = _plain("min", inf, "minimum")
ONE = Const(1.0)
PEAK = _plain("peak", -inf, "larger")
"""The maximum that a softmax subtracts: a NaN shows in the sum anyway."""


def identities(monoid: Monoid, kind: str) -> tuple[Number, ...]:
    """The identity in the kind of value that is reduced."""
    if kind == "float":
        return monoid.identity
    return tuple(int(max(-LARGEST - 1, min(LARGEST, i))) for i in monoid.identity)


def _is_low(x: Value) -> Value:
    return op("eq", x, -inf)


def _online(
    name: str,
    is_infinite: Callable[[Value], Value],
    lift: Callable[..., Fields],
    spans: tuple[tuple[int, ...], ...],
) -> Monoid:
    """Maximum and sum of exponentials below it, with sums that these weight.

    Where the maximum is infinite, 0 is subtracted in its place: exp(-inf - -inf) would be NaN, and later
    elements could not fix it.
    """

    def shift_of(top: Value, name: str | None = None) -> Value:
        return op("where", is_infinite(top), 0.0, top, name=name)

    def combine(a: Fields, b: Fields) -> Fields:
        top = op("larger", a[0], b[0])
        of_a, of_b = (op("exp", side[0] - shift_of(top)) for side in (a, b))
        pairs = zip(a[1:], b[1:], strict=True)
        return (top, *(x * of_a + y * of_b for x, y in pairs))

    def step(carry: Fields, args: Fields, axes: tuple[Axis, ...]) -> Steps:
        """The tile is taken at the new maximum at once, so that only the carry is rescaled."""
        x, *weights = lift(*args)
        new_max = op("larger", carry[0], Reduce(PEAK, (x,), axes), name="new_max")
        shift = shift_of(new_max, "shift")
        share = op("exp", x - shift, name="p")
        rescale = op("exp", carry[0] - shift, name="rescale")
        taken = (Reduce(SUM, (share if w == ONE else share * w,), axes) for w in weights)
        sums = ((i, carry[i] * rescale + t) for i, t in enumerate(taken, start=1))
        return (*sums, (0, new_max))

    return Monoid(
        name,
        (-inf, *(0.0 for _ in spans[1:])),
        lift=lift,
        combine=combine,
        step=step,
        fields=("max", "sum", "acc")[: len(spans)],
        spans=spans,
    )


def _of_elements(x: Value, *weights: Value) -> Fields:
    return (x, ONE, *weights)


def _of_parts(*fields: Value) -> Fields:
    return fields


def _is_infinite(x: Value) -> Value:
    return op("is_inf", x)


ONLINE_SOFTMAX = _online("online_softmax", _is_low, _of_elements, ((0,), (0,)))
WEIGHTED_SOFTMAX = _online("weighted_softmax", _is_low, _of_elements, ((0,), (0,), (0, 1)))
ONLINE_LOG_SUM_EXP = _online("online_log_sum_exp", _is_infinite, _of_elements, ((0,), (0,)))
"""An infinite maximum gives an infinite sum here, where a softmax gives NaN."""
MERGES: dict[Monoid, Monoid] = {
    ONLINE_SOFTMAX: _online("merged_softmax", _is_low, _of_parts, ((0,), (0, 1))),
    ONLINE_LOG_SUM_EXP: _online("merged_log_sum_exp", _is_infinite, _of_parts, ((0,), (0, 1))),
}
"""What puts the fields of parts together."""


def _welford_combine(a: Fields, b: Fields) -> Fields:
    n = a[0] + b[0]
    delta = b[1] - a[1]
    share = b[0] / op("larger", n, 1.0)
    mean = a[1] + delta * share
    squares = a[2] + b[2] + op("square", delta) * a[0] * share
    return n, mean, squares


def _welford_step(carry: Fields, args: Fields, axes: tuple[Axis, ...]) -> Steps:
    """The tile's own mean first: what deviates is taken from that."""
    (x,) = args
    tile_n = Reduce(SUM, (Const(1.0),), axes, name="tile_n")
    tile_mean = op("div", Reduce(SUM, (x,), axes), tile_n, name="tile_mean")
    tile_squares = Reduce(SUM, (op("square", op("sub", x, tile_mean, name="deviation")),), axes)
    delta = op("sub", tile_mean, carry[1], name="delta")
    share = op("div", tile_n, carry[0] + tile_n, name="share")
    squares = tile_squares + op("square", delta) * carry[0] * share
    return (
        (2, carry[2] + squares),
        (1, carry[1] + delta * share),
        (0, carry[0] + tile_n),
    )


WELFORD = Monoid(
    "welford",
    (0.0, 0.0, 0.0),
    lift=lambda x: (Const(1.0), x, Const(0.0)),
    combine=_welford_combine,
    step=_welford_step,
    fields=("count", "mean", "squares"),
    spans=((0,), (0,), (0,)),
)


def _best(name: str, better: str, of_equals: str) -> Monoid:
    """The best value and where it stands; NaN is best, as in torch.argmax."""

    def combine(a: Fields, b: Fields) -> Fields:
        a_nan, b_nan = (op("ne", x[0], x[0]) for x in (a, b))
        later = (op(better, b[0], a[0]) | b_nan) & op("not", a_nan)
        tied = op("eq", a[0], b[0]) | (a_nan & b_nan)
        take = op("or", later, tied & op(of_equals, b[1], a[1]), name="take_b")
        return op("where", take, b[0], a[0]), op("where", take, b[1], a[1])

    worst = -inf if better == "gt" else inf
    return Monoid(
        name,
        (worst, LARGEST if of_equals == "lt" else -1),
        lift=lambda x, at: (x, at),
        combine=combine,
        fields=("best", "at"),
        spans=((0,), (0, 1)),
    )


ARGMAX = _best("argmax", "gt", of_equals="lt")
"""The first of several."""
ARGMIN = _best("argmin", "lt", of_equals="lt")
LAST_ARGMAX = _best("last_argmax", "gt", of_equals="gt")
"""The last of several, as torch.cummax has it."""
LAST_ARGMIN = _best("last_argmin", "lt", of_equals="gt")
WITHOUT_POSITION = {ARGMAX: MAX, ARGMIN: MIN}
"""What gives the best value alone."""


def _log_sum_exp_combine(a: Fields, b: Fields) -> Fields:
    """log(exp(a) + exp(b)) without overflow."""
    top, low = op("maximum", a[0], b[0]), op("minimum", a[0], b[0])
    apart = op("log1p", op("exp", low - top))
    return (op("where", op("eq", a[0], b[0]), a[0] + 0.6931471805599453, top + apart),)


LOG_SUM_EXP = Monoid("log_sum_exp", (-inf,), lift=lambda x: (x,), combine=_log_sum_exp_combine)

ALL: Sequence[Monoid] = (
    SUM, PROD, MAX, MIN, PEAK, ONLINE_SOFTMAX, WEIGHTED_SOFTMAX, ONLINE_LOG_SUM_EXP, *MERGES.values(),
    WELFORD, ARGMAX, ARGMIN, LAST_ARGMAX, LAST_ARGMIN, LOG_SUM_EXP,
)  # fmt: skip

"""Special functions, by the formulas of PyTorch's own kernels, which are those of the Cephes library.

Each is approximated on a few intervals, by quotients of polynomials or by Chebyshev series.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

from pytorch_to_triton.draft.ir.values import Const, Value, op
from pytorch_to_triton.draft.lower import cephes
from pytorch_to_triton.draft.lower.row import (
    Context,
    Refused,
    RowFunction,
    mapped,
    register_formulas,
    row,
    where,
)
from pytorch_to_triton.draft.lower.tensor import Tensor

UNSEEN = 1e-9
"""Terms of a Chebyshev series so small do not show in float32."""
Series = Callable[[Value, Sequence[float]], Value]
"""A Chebyshev series of a value, by its coefficients, as precise as the result."""


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule, the highest power's coefficient first."""
    first, *rest = coefficients
    total: Value = Const(first)
    for c in rest:
        total = plus_number(total * x, c)
    return total


def plus_number(x: Value, number: float) -> Value:
    """The sum, written as one would: `x - 2.0` for -2."""
    return x - -number if number < 0 else x + number


def quotient(x: Value, coefficients: cephes.Quotient) -> Value:
    """One polynomial by another."""
    above, below = coefficients
    return polynomial(x, above) / polynomial(x, below)


def chebyshev(x: Value, coefficients: Sequence[float]) -> Value:
    """Half the sum of c T(x / 2) over Chebyshev's polynomials, the highest first, by Clenshaw's rule."""
    first, second, *rest = coefficients
    last: Value = Const(0.0)
    before: Value = Const(first)
    total = plus_number(x * first, second)
    for c in rest:
        last, before = before, total
        total = plus_number(x * before - last, c)
    return 0.5 * (total - last)


def _shortened(x: Value, coefficients: Sequence[float]) -> Value:
    """The series without the terms that float32 does not show."""
    return chebyshev(x, [c for c in coefficients if abs(c) > UNSEEN])


def _odd(x: Value, of_magnitude: Value) -> Value:
    """An odd function, of what it is of |x|."""
    return where(x < 0.0, -of_magnitude, of_magnitude)


# Bessel functions of the first and second kind: beyond 5 a wave, whose phase and height are quotients.


def _wave(x: Value, order: int) -> tuple[Value, Value]:
    """What J and Y of this order are beyond 5: the cosine and the sine of one wave."""
    in_phase, across = cephes.WAVE[order]
    angle = x - (0.25 + 0.5 * order) * math.pi
    part = 5.0 / x
    p, q = quotient(part * part, in_phase), part * quotient(part * part, across)
    height = math.sqrt(2 / math.pi) / op("sqrt", x)
    cosine, sine = op("cos", angle), op("sin", angle)
    return (p * cosine - q * sine) * height, (p * sine + q * cosine) * height


def bessel_j(x: Value, order: int) -> Value:
    """Between its zeros near 0, and as a wave."""
    magnitude = op("abs", x)
    squared = magnitude * magnitude
    one, other = cephes.J_ZEROS[order]
    near = (squared - one) * (squared - other) * quotient(squared, cephes.J_NEAR[order])
    if order:
        near = near * magnitude
    found = where(magnitude <= 5.0, near, _wave(magnitude, order)[0])
    return _odd(x, found) if order else found


def bessel_y(x: Value, order: int) -> Value:
    """With a logarithm near 0, where it is -inf, and no number before."""
    squared = x * x
    rest = quotient(squared, cephes.Y_NEAR[order])
    log = bessel_j(x, order) * op("log", x)
    near = rest + 2 / math.pi * log
    if order:
        near = rest * x + 2 / math.pi * (log - 1.0 / x)
    return where(op("eq", x, 0.0), -math.inf, where(x <= 5.0, near, _wave(x, order)[1]))


# Modified ones, times what they grow or fall by.


def scaled_i(x: Value, order: int, series: Series) -> Value:
    """exp(-|x|) I(x)."""
    magnitude = op("abs", x)
    near, far = cephes.I_SERIES[order]
    small = series(magnitude / 2.0 - 2.0, near)
    if order:
        small = small * magnitude
    large = series(32.0 / magnitude - 2.0, far) / op("sqrt", magnitude)
    found = where(magnitude <= 8.0, small, large)
    return _odd(x, found) if order else found


def bessel_i(x: Value, order: int, series: Series) -> Value:
    """I(x), which overflows where exp does."""
    return op("exp", op("abs", x)) * scaled_i(x, order, series)


def bessel_k(x: Value, order: int, series: Series, *, scaled: bool) -> Value:
    """K(x), or exp(x) K(x): infinite at 0, and no number before."""
    near, far = cephes.K_SERIES[order]
    log = op("log", 0.5 * x) * bessel_i(x, order, series)
    part = series(x * x - 2.0, near)
    small = log + part / x if order else part - log
    large = series(8.0 / x - 2.0, far) / op("sqrt", x)
    if scaled:
        small = small * op("exp", x)
    else:
        large = large * op("exp", -x)
    return where(op("eq", x, 0.0), math.inf, where(x <= 2.0, small, large))


SERIES: Mapping[str, Callable[[Value, Series], Value]] = {
    "i0e": lambda x, series: scaled_i(x, 0, series),
    "i1": lambda x, series: bessel_i(x, 1, series),
    "i1e": lambda x, series: scaled_i(x, 1, series),
    "modified_bessel_i0": lambda x, series: bessel_i(x, 0, series),
    "modified_bessel_i1": lambda x, series: bessel_i(x, 1, series),
    "modified_bessel_k0": lambda x, series: bessel_k(x, 0, series, scaled=False),
    "modified_bessel_k1": lambda x, series: bessel_k(x, 1, series, scaled=False),
}
"""Functions that are Chebyshev series."""


def _precise(ctx: Context, formula: Callable[[Value, Series], Value], x: Tensor) -> Tensor:
    series = chebyshev if ctx.dtype == "float64" else _shortened
    return mapped(ctx, lambda value: formula(value, series), x)


def _of_series(formula: Callable[[Value, Series], Value]) -> RowFunction:
    return lambda ctx, input: _precise(ctx, formula, input)


for _name, _formula in SERIES.items():
    row(f"aten.special_{_name}.default")(_of_series(_formula))


@row("aten.special_scaled_modified_bessel_k0.default")
def scaled_k0(ctx: Context, x: Tensor) -> Tensor:
    return _precise(ctx, lambda value, series: bessel_k(value, 0, series, scaled=True), x)


@row("aten.special_scaled_modified_bessel_k1.default")
def scaled_k1(ctx: Context, x: Tensor) -> Tensor:
    return _precise(ctx, lambda value, series: bessel_k(value, 1, series, scaled=True), x)


# Airy's function


def _powers(steps: int, of_first: Callable[[int], int]) -> tuple[float, ...]:
    """The coefficients of a solution of y'' = x y, in powers of x cubed, the highest first."""
    found = [1.0]
    for k in range(1, steps + 1):
        found.append(found[-1] / of_first(k))
    return tuple(reversed(found))


AIRY_EVEN, AIRY_ODD = _powers(14, lambda k: (3 * k - 1) * 3 * k), _powers(14, lambda k: 3 * k * (3 * k + 1))
AIRY_AT_0, AIRY_SLOPE = 0.355028053887817239260, 0.258819403792806798405


def airy(x: Value) -> Value:
    """A wave before -2.09, a power series up to 2.09, then a decay."""
    root = op("sqrt", op("abs", x))
    zeta = 2.0 * op("abs", x) * root / 3.0
    inverse = 1.0 / zeta
    height = 1 / math.sqrt(math.pi) / op("sqrt", root)
    angle = zeta + 0.25 * math.pi
    squared = inverse * inverse
    sine = op("sin", angle) * (1.0 + squared * quotient(squared, cephes.AIRY_SINE))
    wave = height * (sine - op("cos", angle) * (inverse * quotient(squared, cephes.AIRY_COSINE)))
    decay = height * quotient(inverse, cephes.AIRY_DECAY) / (2.0 * op("exp", zeta))
    cube = x * x * x
    near = AIRY_AT_0 * polynomial(cube, AIRY_EVEN) - AIRY_SLOPE * (x * polynomial(cube, AIRY_ODD))
    found = where(x < -2.09, wave, where(x >= 2.09, decay, near))
    return where(op("is_inf", x), math.nan, found)


def _sine_by_angle(x: Value) -> Value:
    """sin(x) / x, from the first terms of its series near 0."""
    terms = [(-1) ** k / math.factorial(2 * k + 1) for k in range(6, -1, -1)]
    found = where(op("abs", x) < 0.5, polynomial(x * x, terms), op("sin", x) / x)
    return where(op("is_inf", x), 0.0, found)


# The gamma function's derivatives


def _cotangent(x: Value) -> Value:
    """cot(pi x), by the distance to the nearest whole number, or to the nearest zero between two of them."""
    rest = x - op("trunc", x)
    distance = op("abs", rest)
    near_zero = op("tan", math.pi * (0.5 - distance))
    found = where(distance > 0.25, near_zero, 1.0 / op("tan", math.pi * distance))
    return _odd(rest, found)


DIGAMMA = (
    8.33333333333333333333e-2, -2.10927960927960927961e-2, 7.57575757575757575758e-3,
    -4.16666666666666666667e-3, 3.96825396825396825397e-3, -8.33333333333333333333e-3,
    8.33333333333333333333e-2,
)  # fmt: skip
"""Of the powers of 1 / x^2 by which digamma differs from a logarithm."""
STEPS = 10
"""So far smaller arguments are moved, to where these series hold."""


def digamma(input: Value) -> Value:
    """By reflection before 0, and from 10 on by an asymptotic series."""
    x = where(input < 0.0, 1.0 - input, input)
    is_small = x < float(STEPS)
    steps = reduce(lambda total, k: total + 1.0 / (x + float(k)), range(1, STEPS), 1.0 / x)
    far = where(is_small, x + float(STEPS), x)
    squared = 1.0 / (far * far)
    found = op("log", far) - 0.5 / far - squared * polynomial(squared, DIGAMMA)
    found = found - where(is_small, steps, 0.0)
    reflected = found - math.pi * _cotangent(input)
    is_pole = (input < 0.0) & op("eq", input, op("trunc", input))
    before = where(is_pole, math.nan, reflected)
    return where(op("eq", input, 0.0), -op("copysign", math.inf, input), where(input < 0.0, before, found))


ZETA = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10,
    -2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15,
    1.8152105401943546773e17, -7.1661652561756670113e18,
)  # fmt: skip
"""Factorials by Bernoulli's numbers: of the terms of Euler and Maclaurin."""


ORDERS = 20
"""Of polygamma: up to this its factor, a factorial, leaves room in float32."""


def zeta_tail(a: Value, s: int) -> Value:
    """The sum of 1 / (a + k)^s over k = 0, 1, ..., where a is at least 9: Euler's and Maclaurin's."""
    inverse = 1.0 / a
    terms = [math.prod(range(s, s + 2 * i + 1)) / below for i, below in enumerate(ZETA)]
    rest = inverse * polynomial(inverse * inverse, terms[::-1])
    return op("pow", inverse, float(s - 1)) * (1.0 / (s - 1) + inverse * (0.5 + rest))


def cotangent_derivative(order: int) -> tuple[float, ...]:
    """The derivative of cot(pi x) by pi^order, in powers of the cotangent, the highest first."""
    found = [1, 0]
    for _ in range(order):
        power = len(found) - 1
        slope = [c * (power - i) for i, c in enumerate(found[:-1])]
        # The cotangent's own slope is -(1 + cot^2).
        found = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return tuple(map(float, found))


def polygamma(input: Value, n: int) -> Value:
    """By reflection up to 0, else a sum of powers."""
    is_reflected = input <= 0.0
    x = where(is_reflected, 1.0 - input, input)
    powers = (op("pow", x + float(k) if k else x, -float(n + 1)) for k in range(STEPS - 1))
    total = reduce(operator.add, powers) + zeta_tail(x + float(STEPS - 1), n + 1)
    found = (-1.0) ** (n + 1) * math.factorial(n) * total
    reflected = (found if n % 2 == 0 else -found) - _cotangent_slope(input, n)
    return at_poles(input, where(is_reflected, reflected, found), n)


def _cotangent_slope(x: Value, n: int) -> Value:
    """pi times the derivative of this order of cot(pi x)."""
    if n == 1:  # As PyTorch computes it: not quite infinite at whole numbers.
        return -op("square", math.pi / op("sin", math.pi * x))
    return math.pi ** (n + 1) * polynomial(_cotangent(x), cotangent_derivative(n))


def at_poles(input: Value, found: Value, n: int) -> Value:
    """The function with what PyTorch gives at whole numbers up to 0 and at infinity."""
    if n == 1:
        return found
    is_pole = (input <= 0.0) & op("eq", input, op("trunc", input))
    pole = math.inf if n % 2 else -math.inf
    return where(is_pole, pole, where(op("eq", input, math.inf), math.nan, found))


@row("aten.polygamma.default")
def polygamma_(ctx: Context, n: int, input: Tensor) -> Tensor:
    if n > ORDERS:
        raise Refused(f"its order is above {ORDERS}")
    return mapped(ctx, digamma if n == 0 else partial(polygamma, n=n), input)


register_formulas({
    "special_bessel_j0.default": lambda input: bessel_j(input, 0),
    "special_bessel_j1.default": lambda input: bessel_j(input, 1),
    "special_bessel_y0.default": lambda input: bessel_y(input, 0),
    "special_bessel_y1.default": lambda input: bessel_y(input, 1),
    "special_spherical_bessel_j0.default": lambda x: _sine_by_angle(x),
    "special_airy_ai.default": lambda x: airy(x),
    "digamma.default": lambda input: digamma(input),
})  # fmt: skip

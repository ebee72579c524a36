"""What torch's operators mean to the drafter: which reduce, which normalise, which work element by element.

Adding an operator is adding a row here, and one in arguments.py where it takes more than its operands; how it
is written in Triton stands in convert/draft/expressions.py.
"""

from collections.abc import Mapping

REDUCTIONS: Mapping[str, str] = {
    "aten.sum.default": "sum",
    "aten.sum.dim_IntList": "sum",
    "aten.mean.default": "mean",
    "aten.mean.dim": "mean",
    "aten.prod.default": "prod",
    "aten.prod.dim_int": "prod",
    "aten.amax.default": "max",
    "aten.amin.default": "min",
    "aten.max.default": "max",
    "aten.min.default": "min",
    "aten.max.dim": "max",
    "aten.min.dim": "min",
    "aten.var.correction": "var",
    "aten.logsumexp.default": "logsumexp",
}
"""max.dim and min.dim return (values, indices); only the values are understood."""

NORMALISATIONS: Mapping[str, str] = {
    "aten.softmax.int": "softmax",
    "aten._softmax.default": "softmax",
    "aten.log_softmax.int": "log_softmax",
    "aten._log_softmax.default": "log_softmax",
    "aten.layer_norm.default": "layer_norm",
}
"""Operators that reduce rows and give back a tensor of the input's shape."""

POINTWISE: Mapping[str, str] = {
    "aten.abs.default": "abs",
    "aten.add.Scalar": "add",
    "aten.add.Tensor": "add",
    "aten.bitwise_and.Tensor": "and",
    "aten.bitwise_not.default": "not",
    "aten.bitwise_or.Tensor": "or",
    "aten.ceil.default": "ceil",
    "aten.clamp.default": "clamp",
    "aten.clamp_max.default": "clamp_max",
    "aten.clamp_min.default": "clamp_min",
    "aten.cos.default": "cos",
    "aten.div.Scalar": "div",
    "aten.div.Tensor": "div",
    "aten.elu.default": "elu",
    "aten.eq.Scalar": "eq",
    "aten.eq.Tensor": "eq",
    "aten.erf.default": "erf",
    "aten.exp.default": "exp",
    "aten.exp2.default": "exp2",
    "aten.expm1.default": "expm1",
    "aten.floor.default": "floor",
    "aten.ge.Scalar": "ge",
    "aten.ge.Tensor": "ge",
    "aten.gelu.default": "gelu",
    "aten.gt.Scalar": "gt",
    "aten.gt.Tensor": "gt",
    "aten.hardsigmoid.default": "hardsigmoid",
    "aten.hardswish.default": "hardswish",
    "aten.hardtanh.default": "clamp",
    "aten.le.Scalar": "le",
    "aten.le.Tensor": "le",
    "aten.leaky_relu.default": "leaky_relu",
    "aten.log.default": "log",
    "aten.log1p.default": "log1p",
    "aten.log2.default": "log2",
    "aten.logical_and.default": "and",
    "aten.logical_not.default": "not",
    "aten.logical_or.default": "or",
    "aten.lt.Scalar": "lt",
    "aten.lt.Tensor": "lt",
    "aten.masked_fill.Scalar": "masked_fill",
    "aten.maximum.default": "maximum",
    "aten.minimum.default": "minimum",
    "aten.mish.default": "mish",
    "aten.mul.Scalar": "mul",
    "aten.mul.Tensor": "mul",
    "aten.ne.Scalar": "ne",
    "aten.ne.Tensor": "ne",
    "aten.neg.default": "neg",
    "aten.pow.Tensor_Scalar": "pow",
    "aten.pow.Tensor_Tensor": "pow",
    "aten.reciprocal.default": "reciprocal",
    "aten.relu.default": "relu",
    "aten.rsqrt.default": "rsqrt",
    "aten.rsub.Scalar": "rsub",
    "aten.sigmoid.default": "sigmoid",
    "aten.sign.default": "sign",
    "aten.silu.default": "silu",
    "aten.sin.default": "sin",
    "aten.softplus.default": "softplus",
    "aten.sqrt.default": "sqrt",
    "aten.square.default": "square",
    "aten.sub.Scalar": "sub",
    "aten.sub.Tensor": "sub",
    "aten.tanh.default": "tanh",
    "aten.where.self": "where",
    "aten._to_copy.default": "cast",
    "aten.to.dtype": "cast",
}

KEPT = tuple(
    sorted(
        (REDUCTIONS.keys() | NORMALISATIONS.keys() | POINTWISE.keys())
        # Whole, these two would hide sizes or casts that the drafter wants to see.
        - {"aten.to.dtype", "aten.var.correction"}
    )
)
"""Operators that the trace must not decompose."""

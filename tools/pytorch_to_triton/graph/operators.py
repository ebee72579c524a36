"""Operators that the trace keeps whole: taken apart, they would hide what they mean."""

NAMES = (
    "_log_softmax.default", "_softmax.default", "_to_copy.default", "abs.default",
    "adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default",
    "adaptive_max_pool1d.default", "adaptive_max_pool2d.default", "adaptive_max_pool3d.default",
    "addmm.default", "amax.default", "amin.default", "any.default", "any.dim", "argmax.default",
    "argmin.default", "avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default",
    "baddbmm.default", "bmm.default", "celu.default", "clamp.default", "clamp_max.default",
    "clamp_min.default", "cos.default", "cumprod.default", "cumsum.default", "elu.default",
    "embedding.default", "erf.default", "exp.default", "exp2.default", "expm1.default", "flip.default",
    "gelu.default", "glu.default", "group_norm.default", "gru.input", "hardsigmoid.default",
    "hardswish.default", "hardtanh.default", "instance_norm.default", "layer_norm.default",
    "leaky_relu.default", "lerp.Scalar", "lerp.Tensor", "linalg_vector_norm.default", "linear.default",
    "log.default", "log1p.default", "log2.default", "log_sigmoid.default", "log_softmax.int",
    "logcumsumexp.default", "logical_and.default", "logical_not.default", "logical_or.default",
    "logsumexp.default", "lstm.input", "masked_fill.Scalar", "max.default", "max.dim",
    "max_pool1d.default", "max_pool2d.default", "max_pool3d.default", "maximum.default", "mean.default",
    "mean.dim", "min.default", "min.dim", "minimum.default", "mish.default", "mm.default",
    "nan_to_num.default", "native_group_norm.default", "native_layer_norm.default", "one_hot.default",
    "pixel_shuffle.default", "pixel_unshuffle.default", "pow.Tensor_Scalar", "pow.Tensor_Tensor",
    "prelu.default", "prod.default", "prod.dim_int", "reciprocal.default", "relu.default",
    "relu6.default", "rms_norm.default", "rnn_relu.input", "rnn_tanh.input", "roll.default",
    "rsqrt.default", "rsub.Scalar", "scaled_dot_product_attention.default", "selu.default",
    "sigmoid.default", "sign.default", "silu.default", "sin.default", "softmax.int", "softplus.default",
    "sqrt.default", "square.default", "sum.default", "sum.dim_IntList", "tanh.default", "tril.default",
    "triu.default", "upsample_bilinear2d.vec", "upsample_nearest2d.vec", "where.self",
)  # fmt: skip
GRADIENTS = (
    "_log_softmax_backward_data", "_softmax_backward_data", "avg_pool2d_backward",
    "binary_cross_entropy_backward", "diagonal_backward", "elu_backward", "gelu_backward", "glu_backward",
    "hardshrink_backward", "hardsigmoid_backward", "hardswish_backward", "hardtanh_backward",
    "huber_loss_backward", "leaky_relu_backward", "log_sigmoid_backward", "logit_backward", "mish_backward",
    "mse_loss_backward", "native_batch_norm_backward", "native_dropout_backward",
    "native_group_norm_backward", "native_layer_norm_backward", "nll_loss2d_backward", "nll_loss_backward",
    "select_backward", "sigmoid_backward", "silu_backward", "slice_backward", "smooth_l1_loss_backward",
    "softplus_backward", "softshrink_backward", "tanh_backward", "threshold_backward",
)  # fmt: skip
"""Those that only backward graphs hold."""
KEPT: tuple[str, ...] = tuple(f"aten.{n}" for n in (*NAMES, *(f"{name}.default" for name in GRADIENTS)))

"""Operators that the trace keeps whole: taken apart, they would hide what they mean."""

NAMES = (
    "adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default",
    "adaptive_max_pool1d.default", "avg_pool1d.default", "baddbmm.default", "group_norm.default",
    "gru.input", "instance_norm.default", "layer_norm.default", "lerp.Scalar", "lerp.Tensor",
    "linear.default", "log_sigmoid.default", "log_softmax.int", "logsumexp.default", "lstm.input",
    "masked_fill.Scalar", "max_pool1d.default", "max_pool2d.default", "max_pool3d.default",
    "mish.default", "nan_to_num.default", "one_hot.default", "rms_norm.default", "rnn_relu.input",
    "rnn_tanh.input", "roll.default", "scaled_dot_product_attention.default", "silu.default",
    "softmax.int", "softplus.default", "square.default", "sum.default", "tril.default", "triu.default",
)  # fmt: skip
GRADIENTS = (
    "_log_softmax_backward_data", "_softmax_backward_data", "diagonal_backward", "gelu_backward",
    "glu_backward", "hardsigmoid_backward", "hardtanh_backward", "huber_loss_backward",
    "leaky_relu_backward", "log_sigmoid_backward", "mish_backward", "mse_loss_backward",
    "native_batch_norm_backward", "native_dropout_backward", "native_group_norm_backward",
    "native_layer_norm_backward", "nll_loss2d_backward", "nll_loss_backward", "select_backward",
    "sigmoid_backward", "slice_backward", "smooth_l1_loss_backward", "softplus_backward",
)  # fmt: skip
"""Those that only backward graphs hold."""
KEPT: tuple[str, ...] = tuple(f"aten.{n}" for n in (*NAMES, *(f"{name}.default" for name in GRADIENTS)))

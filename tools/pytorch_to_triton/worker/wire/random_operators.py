"""Operators of PyTorch that draw random numbers, by their names."""

DRAWING = frozenset((
    "alpha_dropout", "bernoulli", "binomial", "cauchy", "dropout", "exponential", "feature_alpha_dropout",
    "feature_dropout", "geometric", "log_normal", "multinomial", "native_dropout", "normal",
    "normal_functional", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "random", "randperm", "rrelu", "rrelu_with_noise", "rrelu_with_noise_functional", "uniform",
))  # fmt: skip


def draws(operator: str) -> bool:
    """Whether an operator, such as `aten.bernoulli_.float`, draws random numbers."""
    name = operator.replace("::", ".").partition(".")[2]
    return name.partition(".")[0].rstrip("_") in DRAWING

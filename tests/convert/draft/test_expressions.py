"""What is written for an operator gives what PyTorch gives."""

import pytest
import torch

from pytorch_to_triton.convert.draft.expressions import POWERS, TEMPLATES

UNARY = [
    *("abs", "ceil", "cos", "erf", "exp", "exp2", "expm1", "floor", "log", "log1p", "log2", "neg"),
    *("reciprocal", "rsqrt", "sigmoid", "sign", "sin", "sqrt", "square", "tanh"),
]
X = torch.linspace(0.25, 3.0, 12, dtype=torch.float64)


def value_of(template: str) -> torch.Tensor:
    """The functions of one operand are named alike in torch and in triton.language."""
    value: torch.Tensor = eval(template, {"tl": torch, "libdevice": torch, "_0": X})
    return value.double()


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_operand_is_written_as_itself(name: str) -> None:
    torch.testing.assert_close(value_of(TEMPLATES[name]), getattr(torch, name)(X))


@pytest.mark.parametrize("exponent", POWERS)
def test_a_power_with_a_constant_exponent_is_that_power(exponent: float) -> None:
    torch.testing.assert_close(value_of(POWERS[exponent]), X**exponent)

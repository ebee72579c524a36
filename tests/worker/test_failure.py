"""An exception is described with the statement of the user's, or of Triton's, that raised it."""

from collections.abc import Callable

import pytest
import torch
import triton.language as tl

from pytorch_to_triton.worker.failure import describe_failure


def refuses(x: torch.Tensor) -> None:
    if x.numel() > 0:
        raise ValueError("too many")


def asserts(x: torch.Tensor) -> None:
    assert x.stride(0) == 1


def from_another(x: torch.Tensor) -> None:
    try:
        x.view(7)
    except RuntimeError as error:
        raise TypeError("not seven") from error


def of_pytorch(x: torch.Tensor) -> None:
    x.view(7)


def of_python(x: torch.Tensor) -> None:
    x.numel() // 0


def of_triton(x: torch.Tensor) -> None:
    tl.arange(0, x.numel())


REFUSALS: list[tuple[Callable[[torch.Tensor], None], str]] = [
    (refuses, 'raise ValueError("too many")'),
    (asserts, "assert x.stride(0) == 1"),
    (of_pytorch, ""),
    (of_python, ""),
    (from_another, 'raise TypeError("not seven") from error'),
]


def test_a_statement_of_tritons_refuses_too() -> None:
    with pytest.raises(ValueError, match=r"triton\.jit") as raised:
        of_triton(torch.ones(2, 2))
    assert describe_failure(raised.value, "call").statement.startswith("raise ValueError(")


@pytest.mark.parametrize(("call", "statement"), REFUSALS, ids=[call.__name__ for call, _ in REFUSALS])
def test_a_statement_that_refuses_is_reported_from_what_merely_went_wrong(
    call: Callable[[torch.Tensor], None], statement: str
) -> None:
    kinds = (ValueError, AssertionError, RuntimeError, ZeroDivisionError, TypeError)
    with pytest.raises(kinds) as raised:
        call(torch.ones(2, 2))
    assert describe_failure(raised.value, "call").statement == statement

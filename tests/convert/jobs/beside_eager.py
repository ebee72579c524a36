"""Drafted files beside eager PyTorch, in every call that they are given."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ..calls.call_inputs import generated_state
from ..calls.exchange import state_like_input
from ..calls.generate import generate_arguments
from ..calls.tensors import leaves
from ..interpreter.memory_guard import MemoryGuard
from ..loading.target import Loaded, load

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
SEED = 11


def work(report: Any, drafts: list[dict[str, Any]]) -> dict[str, list[str]]:
    """For each draft what differs, by its name: the call and the first words of the difference.

    A draft has the JSON of its `target`, the paths of its `files`, and `calls`: the `arguments` of a case,
    their `scale`, and whether eager PyTorch `may_refuse` them.
    """
    return {draft["name"]: list(differences(draft)) for draft in drafts}


def differences(draft: dict[str, Any]) -> Iterator[str]:
    try:
        yield from beside_eager(draft)
    except Exception as error:
        yield f"raised {error!r}"


def beside_eager(draft: dict[str, Any]) -> Iterator[str]:
    eager = load(draft["target"], "reference")
    runs = [load({"path": file, "name": None}, "candidate") for file in draft["files"]]
    state = generated_state(eager, SEED)
    for call in draft["calls"]:
        given = generated(call)
        followed = state_like_input(state, given)
        after = copied({**given, **followed})
        try:
            expected = eager({n: after[n] for n in given}, {n: after[n] for n in followed})
        except RuntimeError as error:
            if not call["may_refuse"]:
                yield f"{call['name']}: eager PyTorch raised {error!r}"
            continue
        for run in runs:
            yield from compared(run, copied((given, followed)), (expected, after), call["name"])


def generated(call: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name; floats without a declared range, scaled."""
    arguments = generate_arguments(call, SEED)
    free = {a["name"] for a in call["arguments"] if a["form"] == "tensor" and a["low"] is None}
    return {n: scaled(v, call["scale"]) if n in free else v for n, v in arguments.items()}


def copied(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments in memory of their own: a function may write to them."""
    return tree_map_only(torch.Tensor, torch.clone, given)


def scaled(tensor: torch.Tensor, scale: float) -> torch.Tensor:
    return (tensor.double() * scale).to(tensor.dtype) if tensor.is_floating_point() else tensor


def compared(
    run: Loaded, given: tuple[dict[str, Any], ...], expected: tuple[Any, Any], what: str
) -> Iterator[str]:
    """`expected` are the results, and the arguments after the call."""
    try:
        with MemoryGuard(tuple).watching():  # Lanes that a load masks without `other` hold NaN.
            found = run(*given)
    except AssertionError as refusal:
        if "drafted for" not in str(refusal):
            yield f"{what}: {refusal}"
        return
    values = [*given[0].values(), *given[1].values(), *dict(leaves(expected[0])).values()]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    short = max(TOLERANCE.get(str(t.dtype)[6:], 0.0) for t in tensors)
    try:
        assert_close(found, expected[0], short)
        assert_close({**given[0], **given[1]}, expected[1], short)
    except AssertionError as difference:
        yield f"{what}: {difference}"


def assert_close(ours: Any, theirs: Any, tolerance: float) -> None:
    """Values in the same structures: text and None the same, numbers and tensors nearly."""
    found, expected = dict(leaves(ours)), dict(leaves(theirs))
    words = [{p: v for p, v in values.items() if isinstance(v, str | None)} for values in (found, expected)]
    assert words[0] == words[1], f"{words[0]} in place of {words[1]}"
    numbers = [{p: v for p, v in values.items() if p not in words[0]} for values in (found, expected)]
    torch.testing.assert_close(*numbers, rtol=tolerance, atol=tolerance, equal_nan=True)

"""A function and its gradients apart: what is saved may have any name in the function's half."""

from pytorch_to_triton.graph.joint import with_names
from pytorch_to_triton.graph.skeleton import operands

from .conftest import TracingText

PRODUCT = (
    'INPUTS = {"x": "float32[M, K]", "w": "float32[K, N]"}\nDIMS = {"M": [5], "K": [7], "N": [9]}\n\n\n'
    "def f(x, w):\n    return torch.tanh(x.sin() @ w)\n"
)


async def test_a_saved_value_that_gets_a_steps_name_is_not_taken_for_that_step(traced: TracingText) -> None:
    """Seen with a gated MLP: the factor of a product that was computed again was replaced by another."""
    backward = (await traced(PRODUCT, backward=True)).backward
    assert backward is not None
    before = backward.graph
    names = dict.fromkeys(backward.saved, "") | {backward.saved[0]: before.nodes[0].name}
    names |= dict.fromkeys(backward.cotangents, before.nodes[1].name)
    found = with_names(backward, {name: new or name for name, new in names.items()})
    after = {
        **{old.name: new.name for old, new in zip(before.inputs, found.graph.inputs, strict=True)},
        **{old.name: new.name for old, new in zip(before.nodes, found.graph.nodes, strict=True)},
    }
    assert len(set(after.values())) == len(before.inputs) + len(before.nodes)
    assert after[backward.saved[0]] == before.nodes[0].name
    for old, new in zip(before.nodes, found.graph.nodes, strict=True):
        assert operands(new) == [after[name] for name in operands(old)]
    assert found.saved == tuple(after[name] for name in backward.saved)
    assert set(found.cotangents) == {after[name] for name in backward.cotangents}

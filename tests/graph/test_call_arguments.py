"""No row ignores an argument of its operator: all are used, or held to the values at which that is right."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.draft.cells import SPECIAL
from pytorch_to_triton.convert.draft.expressions import TEMPLATES
from pytorch_to_triton.graph.call_arguments import Default, bound, signature_of
from pytorch_to_triton.graph.obstacles import obstacle_of
from pytorch_to_triton.graph.operators import NORMALISATIONS, POINTWISE, REDUCTIONS
from pytorch_to_triton.graph.views import SPLIT, VIEWS
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    ScalarRef,
    Shape,
    SizeRef,
)
from pytorch_to_triton.schema.job import Job, Runtime

SCHEMAS = Path(__file__).parent / "jobs" / "operator_schemas.py"
ROWS = (*POINTWISE, *REDUCTIONS, *NORMALISATIONS, *VIEWS, *SPLIT)
LOOKED_UP = {"approximate", "correction", "dim", "dtype", "keepdim"}
"""The options that the drafter asks for by name."""
X = NodeRef(name="x")


def spelled(value: Default) -> str:
    return repr(float(value)) if isinstance(value, int | float) else str(value)


def default_text(default: NodeArgument | None) -> str:
    match default:
        case None:
            return "no default"
        case Literal_(value=value):
            return spelled(value)
    assert default == ArgumentList(items=())
    return "[]"


def call(op: str, *args: NodeArgument, **kwargs: NodeArgument) -> Node:
    shape = Shape(expressions=("M", "N"), traced=(11, 13))
    return Node(name="y", op=f"aten.{op}", args=args, kwargs=kwargs, shape=shape, dtype="float32", line=3)


@pytest.mark.anyio
async def test_every_row_knows_all_arguments_of_its_operators_schema(
    worker: WorkerClient, interpreter: Runtime
) -> None:
    outcome = await worker.ask(
        Job(kind=str(SCHEMAS), arguments={"operators": list(ROWS)}), interpreter, seconds=120.0
    )
    assert outcome.answer is not None, outcome.detail
    for op in ROWS:
        row = signature_of(op)
        known = {name: default_text(default) for name, default in (row.operands | row.options).items()}
        known |= {name: spelled(values[0]) for name, values in row.unused.items()}
        schema = dict(outcome.answer[op])
        # The one argument without a default that makes no difference to what is computed.
        schema.update({"half_to_float": "0.0"} if "half_to_float" in schema else {})
        assert list(known) == list(schema), op
        assert known == schema, op


def test_a_template_has_a_place_for_every_operand() -> None:
    for op in [op for op, kind in POINTWISE.items() if kind not in SPECIAL and kind != "cast"]:
        places = [f"_{i}" for i, _ in enumerate(signature_of(op).operands)]
        template = TEMPLATES[POINTWISE[op]]
        assert all(place in template for place in places)
        assert f"_{len(places)}" not in template


def test_options_are_those_that_the_drafter_looks_up() -> None:
    assert {name for op in ROWS for name in signature_of(op).options} <= LOOKED_UP


def test_what_a_row_does_not_use_is_refused_by_name() -> None:
    for node, reason in [
        (
            call("clone.default", X, memory_format=Literal_(value="channels_last")),
            "memory_format=channels_last",
        ),
        (call("abs.default", X, Literal_(value=2)), "argument 2=2"),
        (call("abs.default", X, fast=Literal_(value=True)), "fast=True"),
        (call("sum.default", X, dtype=Literal_(value="float64")), "dtype=float64"),
        (call("softmax.int", X, Literal_(value=-1), Literal_(value="float16")), "dtype=float16"),
        (call("gelu.default", X, approximate=Literal_(value="other")), "approximate=other"),
        (call("var.correction", X, correction=ScalarRef(name="c")), "correction=c"),
        (call("expand.default", X, ArgumentList(items=()), implicit=Literal_(value=True)), "implicit=True"),
    ]:
        obstacle = obstacle_of(node, "float32")
        assert obstacle is not None
        assert obstacle.reason == f"{reason} is not drafted"
        assert obstacle.line == 3


def test_what_makes_no_difference_is_not_refused() -> None:
    for node, source in [
        (call("clone.default", X, memory_format=Literal_(value="contiguous_format")), "float32"),
        (call("sum.default", X, dtype=Literal_(value="float32")), "bfloat16"),
        (call("sum.default", X, dtype=Literal_(value="float64")), "float64"),
        (call("_softmax.default", X, Literal_(value=-1), Literal_(value=True)), "float16"),
        (call("add.Tensor", X, X, alpha=SizeRef(expression="N", traced=13)), "float32"),
    ]:
        assert obstacle_of(node, source) is None


def test_arguments_are_found_by_name_whether_given_by_place_by_keyword_or_not_at_all() -> None:
    selu = bound(call("elu.default", X, Literal_(value=1.67), Literal_(value=1.05)))
    assert selu.operands == (X, Literal_(value=1.67), Literal_(value=1.05), Literal_(value=1.0))
    added = bound(call("add.Tensor", X, X, alpha=Literal_(value=2)))
    assert added.operands == (X, X, Literal_(value=2))
    assert bound(call("mean.dim", X, ArgumentList(items=()))).options["keepdim"] == Literal_(value=False)

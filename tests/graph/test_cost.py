"""What a graph must do: inputs moved once, outputs once, and its operations, at the dims and dtypes that are
asked about."""

from pathlib import Path

import pytest

from pytorch_to_triton.graph.cost import (
    bytes_moved,
    elements_read,
    flops,
    gradient_bytes,
    largest_value_bytes,
    product_flops,
    vector_flops,
)
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.graph import (
    Graph,
    GraphOutput,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    Shape,
    TensorInput,
)
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.worker.wire.packing import Packing

from .conftest import TracingText

pytestmark = pytest.mark.anyio
COUNT_FLOPS = Path(__file__).parent / "jobs" / "count_flops.py"

# Inputs of one function, what it returns, and sizes that differ from those of the trace.
INPUTS = {
    "a": "M, K",
    "b": "K, N",
    "d": "B, H, M, K",
    "e": "B, H, K, 6",
    "f": "B, M, K",
    "w": "7, K",
    "c": "7",
    "g": "B, 7, K",
    "h": "B, M, 7",
    "i": "B, K, 7",
    "j": "B, C, I, J",
    "k": "4, C, 3, 3",
    "l": "B, 8, L",
    "m": "12, 2, 3",
    "n": "B, C, L",
    "o": "C, 4, 3",
    "q": "B, H, S, 8",
    "r": "B, H, T, 8",
    "v": "B, H, T, 8",
}
PRODUCTS = """(
        a @ b,
        d @ e,
        F.linear(f, w, c),
        torch.einsum("bmk,bnk->bmn", f, g),
        torch.baddbmm(h, f, i),
        F.conv2d(j, k, stride=2, padding=1),
        F.conv1d(l, m, groups=4),
        F.conv_transpose1d(n, o, stride=2),
        F.scaled_dot_product_attention(q, r, v),
    )"""
SIZES = {"M": 3, "K": 5, "N": 7, "B": 2, "H": 3, "C": 3, "I": 9, "J": 12, "L": 9, "S": 4, "T": 5}

LOOKUP = """INPUTS = {{"table": "float32[V, N]", "index": "int64[M] in 0..V"}}
DIMS = {{"V": [32], "N": [8], "M": [5]}}


def f(table, index):
    return {body}
"""

WIDE = Shape(expressions=("M", "N"), traced=(11, 13))
ROW = Shape(expressions=("M",), traced=(11,))


def computed(name: str, op: str, shape: Shape, dtype: DType) -> Node:
    return Node(name=name, op=op, args=(NodeRef(name="x"),), kwargs={}, shape=shape, dtype=dtype)


def row_sum() -> Graph:
    """x: float32[M, N] -> float32[M], and a mask bool[M, N]."""
    return Graph(
        function="f",
        parameters=("x",),
        inputs=(TensorInput(name="x", shape=WIDE, dtype="float32"),),
        state={},
        constants={},
        fixed=(),
        nodes=(
            computed("s", "aten.sum.dim_IntList", ROW, "float32"),
            computed("m", "aten.gt.Scalar", WIDE, "bool"),
        ),
        outputs=(GraphOutput(path="out[0]", name="s"), GraphOutput(path="out[1]", name="m")),
        result=Packing(kind="tuple", items=("out[0]", "out[1]")),
        dims={"M": 11, "N": 13},
        guards=(),
    )


@pytest.mark.parametrize(
    ("n", "dtypes", "moved"),
    [
        (100, {}, 2 * 100 * 4 + 2 * 4 + 2 * 100),
        (100, {"x": "bfloat16"}, 2 * 100 * 2 + 2 * 2 + 2 * 100),
        (0, {}, 8),
    ],
    ids=["once each", "an output follows the dtype of the first input", "an empty size"],
)
def test_inputs_and_outputs_count_once_each(n: int, dtypes: dict[str, str], moved: int) -> None:
    assert bytes_moved(row_sum(), {"M": 2, "N": n}, dtypes) == moved


def test_the_largest_value_may_be_an_input_or_a_result() -> None:
    assert largest_value_bytes(row_sum(), {"M": 2, "N": 100}) == 2 * 100 * 4
    assert largest_value_bytes(row_sum(), {"M": 2, "N": 0}) == 2 * 4


@pytest.mark.parametrize(
    ("body", "held"),
    [
        ("torch.logsumexp(x @ x.t(), 1)", 4 * 100 * 100),
        ("torch.softmax(x, -1)", 4 * 100 * 3),
    ],
)
async def test_what_is_computed_on_the_way_counts_among_the_values(
    body: str, held: int, traced: TracingText
) -> None:
    graph = (await traced(function({"x": "M, N"}, body))).graph
    assert largest_value_bytes(graph, {"M": 100, "N": 3}) == held


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("x + 1", 100 * 50),
        ("x[:, :10] + 1", 100 * 10),
        ("x[:, :10] * x[:, -10:]", 100 * 20),
        ("torch.cat([a * 2 for a in x.chunk(2, dim=-1)], -1)", 100 * 50),
        ("x.t()[3:5].expand(7, 2, -1) + 1", 100 * 2),
        ("x.sum() + x[:, :10]", 100 * 50),
    ],
)
async def test_what_is_cut_out_of_an_input_is_all_that_is_read_of_it(
    body: str, read: int, traced: TracingText
) -> None:
    graph = (await traced(function({"x": "M, N"}, body))).graph
    assert elements_read(graph, {"M": 100, "N": 50})["x"] == read


@pytest.mark.parametrize(
    ("body", "rows"),
    [("F.embedding(index, table)", 5), ("table.index_select(0, index)", 5), ("table[index]", 5)],
)
async def test_of_a_table_the_rows_that_are_looked_up_are_read(
    body: str, rows: int, traced: TracingText
) -> None:
    graph = (await traced(LOOKUP.format(body=body))).graph
    moved = bytes_moved(graph, {"V": 1000, "N": 8, "M": rows}, {})
    assert moved == 2 * rows * 8 * 4 + rows * 8
    whole = bytes_moved(graph, {"V": 3, "N": 8, "M": rows}, {})
    assert whole == 3 * 8 * 4 + rows * 8 * 4 + rows * 8


@pytest.mark.parametrize(
    ("inputs", "body", "moved"),
    [
        ({"x": "M, N"}, "torch.sin(x)", {"x": 1, "grad_out": 1, "grad_x": 1}),
        ({"x": "M, N"}, "x * 2", {"grad_out": 1, "grad_x": 1}),
        (
            {"x": "M, N", "y": "M, N"},
            "torch.sin(x + y)",
            {"x": 1, "y": 1, "grad_out": 1, "both gradients": 1},
        ),
        ({"x": "M, N", "y": "M, N"}, "x * y.detach()", {"y": 1, "grad_out": 1, "grad_x": 1}),
        ({"x": "M, N"}, "torch.softmax(x, -1)", {"out": 1, "grad_out": 1, "grad_x": 1}),
        ({"x": "M, N"}, "torch.sin(x[:, : x.shape[1] // 2])", {"x": 0.5, "grad_out": 0.5, "grad_x": 1}),
    ],
)
async def test_a_backward_pass_reads_what_its_gradients_need(
    inputs: dict[str, str], body: str, moved: dict[str, float], traced: TracingText
) -> None:
    joint = (await traced(function(inputs, body), backward=True)).joint
    assert joint is not None
    dims = {"M": 10, "N": 40}
    assert gradient_bytes(joint, dims, {}) == sum(moved.values()) * 400 * 4
    assert gradient_bytes(joint, dims, dict.fromkeys(inputs, "bfloat16")) == sum(moved.values()) * 400 * 2


def function(inputs: dict[str, str], body: str) -> str:
    """A file that declares its inputs and `f`; the names in the shapes are its dims."""
    declared = {name: f"float32[{shape}]" for name, shape in inputs.items()}
    names = {size for shape in inputs.values() for size in shape.split(", ") if not size.isdigit()}
    dims = {name: [32] for name in sorted(names)}
    return f"INPUTS = {declared}\nDIMS = {dims}\n\n\ndef f({', '.join(inputs)}):\n    return {body}\n"


async def test_products_cost_what_torch_counts(
    tmp_path: Path, traced: TracingText, worker: WorkerClient, interpreter: Runtime
) -> None:
    path, graph = tmp_path / "target.py", (await traced(function(INPUTS, PRODUCTS))).graph
    shapes = [[SIZES.get(size) or int(size) for size in shape.split(", ")] for shape in INPUTS.values()]
    job = Job(kind=str(COUNT_FLOPS), arguments={"calls": {str(path): shapes}})
    outcome = await worker.ask(job, interpreter, seconds=60)
    assert outcome.answer is not None, outcome.detail
    assert product_flops(graph, SIZES, {}) == {"float32": outcome.answer[str(path)]}


def test_other_operators_cost_so_much_for_each_element_of_their_input() -> None:
    for op, count in [
        ("aten.exp.default", 1),
        ("aten.where.self", 1),
        ("aten.sum.dim_IntList", 1),
        ("aten.max.dim", 1),
        ("aten.cumsum.default", 1),
        ("aten.linalg_vector_norm.default", 2),
        ("aten.logsumexp.default", 4),
        ("aten.var.correction", 4),
        ("aten.softmax.int", 5),
        ("aten.layer_norm.default", 7),
        ("aten.permute.default", 0),
        ("aten.cat.default", 0),
        ("aten._to_copy.default", 0),
        ("getitem", 0),
        ("mylib.scan.default", 1),
    ]:
        graph = row_sum().model_copy(update={"nodes": (computed("s", op, WIDE, "float32"),)})
        assert vector_flops(graph, {"M": 2, "N": 100}) == count * 200


async def test_what_is_computed_with_integers_is_no_floating_point_operation(traced: TracingText) -> None:
    """A random generator's state, say: on a GPU integers have units of their own."""
    text = function({"x": "M"}, "torch.where((torch.arange(x.shape[0]) * 3 ^ 7) % 4 > 0, x * 2, 0.0)")
    graph = (await traced(text)).graph
    assert vector_flops(graph, {"M": 100}) == 2 * 100


async def test_products_count_by_operand_dtype_and_all_else_as_float32(traced: TracingText) -> None:
    text = function({"x": "M, K", "y": "K, N"}, "torch.relu(x @ y)")
    graph = (await traced(text)).graph
    dims = {"M": 2, "K": 3, "N": 5}
    assert flops(graph, dims, {}) == {"float32": 2 * 30 + 10}
    assert flops(graph, dims, {"x": "bfloat16", "y": "bfloat16"}) == {"bfloat16": 2 * 30, "float32": 10}
    assert flops(graph, {**dims, "M": 0}, {}) == {}


def attention(op: str, *flags: bool | None) -> Graph:
    """q: [M, N] against itself, as [1, M, N], in one operator that returns a tuple."""
    shape = Shape(expressions=("1", "M", "N"), traced=(1, 11, 13))
    args: tuple[NodeArgument, ...] = (*3 * (NodeRef(name="q"),), *(Literal_(value=flag) for flag in flags))
    return row_sum().model_copy(
        update={
            "inputs": (TensorInput(name="q", shape=shape, dtype="bfloat16"),),
            "nodes": (Node(name="a", op=op, args=args, kwargs={}, shape=None, dtype=None),),
            "outputs": (),
        }
    )


def test_attention_that_stays_whole_has_two_products_and_a_softmax() -> None:
    whole = attention("aten._scaled_dot_product_flash_attention.default", None, False)
    assert product_flops(whole, {"M": 10, "N": 4}, {}) == {"bfloat16": 2 * 10 * 10 * (4 + 4)}
    assert vector_flops(whole, {"M": 10, "N": 4}) == 5 * 10 * 10


def test_causal_attention_needs_the_scores_up_to_the_diagonal() -> None:
    causal = attention("aten.scaled_dot_product_attention.default", None, None, True)
    assert product_flops(causal, {"M": 10, "N": 4}, {}) == {"bfloat16": 2 * 55 * (4 + 4)}


def test_causal_queries_past_the_last_key_need_the_scores_of_all_keys() -> None:
    causal = attention("aten.scaled_dot_product_attention.default", None, None, True)
    (call,), (queries,) = causal.nodes, causal.inputs
    keys = Shape(expressions=("1", "K", "N"), traced=(1, 5, 13))
    crossed = causal.model_copy(
        update={
            "inputs": (queries, TensorInput(name="k", shape=keys, dtype="bfloat16")),
            "nodes": (
                call.model_copy(update={"args": (call.args[0], *2 * (NodeRef(name="k"),), *call.args[3:])}),
            ),
        }
    )
    scores = 1 + 2 + 3 + 4 + 6 * 4
    assert product_flops(crossed, {"M": 10, "K": 4, "N": 8}, {}) == {"bfloat16": 2 * scores * (8 + 8)}


def test_an_operator_that_is_not_known_costs_its_result_and_a_reduction_what_it_reads() -> None:
    nodes = {op: (computed("s", op, ROW, "float32"),) for op in ("mylib.pool.default", "aten.amax.default")}
    graphs = {op: row_sum().model_copy(update={"nodes": node}) for op, node in nodes.items()}
    assert vector_flops(graphs["mylib.pool.default"], {"M": 2, "N": 100}) == 2
    assert vector_flops(graphs["aten.amax.default"], {"M": 2, "N": 100}) == 200

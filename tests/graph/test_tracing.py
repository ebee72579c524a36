"""The graph speaks the caller's own words, and what cannot be traced is refused with a way out."""

import re

import pytest

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.tracing import trace_dims
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.schema.graph import Graph, Literal_, NodeRef, NonFinite, ScalarRef

from .conftest import TracingText

pytestmark = pytest.mark.anyio

DECLARED = 'INPUTS = {"x": "float32[M, N]"}\nDIMS = {"M": [5], "N": [9]}\n\n\n'
WITH_EPS = DECLARED.replace('"}', '", "eps": 1e-5}', 1)
DIVISION_OF_TORCH_2_11 = """def div_rtn(x, y):
    q = x // y
    r = x % y
    if r != 0 and (bool(r < 0) != bool(y < 0)):
        q -= 1
    return q


torch._meta_registrations.div_rtn = div_rtn


"""
"""By which it computes the sizes of pools."""


def arguments_of(graph: Graph, op: str) -> list[object]:
    return [argument for node in graph.nodes if node.op == op for argument in node.args]


async def test_values_bear_the_names_of_the_callers_variables(traced: TracingText) -> None:
    body = (
        "def f(x):\n    scaled = x * 2.0\n    low, high = scaled.sin(), scaled.cos()\n    return low + high\n"
    )
    graph = (await traced(DECLARED + body)).graph
    names = {node.op: node.source_name for node in graph.nodes}
    assert names["aten.mul.Tensor"] == "scaled"
    assert {node.line for node in graph.nodes if node.op == "aten.mul.Tensor"} == {9}


async def test_an_input_named_like_an_operator_is_not_taken_for_its_result(traced: TracingText) -> None:
    inputs = 'INPUTS = {"sin": "float32[M]", "sin_1": "float32[M]"}\nDIMS = {"M": [5]}\n\n\n'
    graph = (await traced(f"{inputs}def f(sin, sin_1):\n    return sin.sin() + sin * sin_1\n")).graph
    computed = {node.op: node.name for node in graph.nodes}
    assert len({"sin", "sin_1", *computed.values()}) == 5
    assert arguments_of(graph, "aten.sin.default") == [NodeRef(name="sin")]
    assert arguments_of(graph, "aten.mul.Tensor") == [NodeRef(name="sin"), NodeRef(name="sin_1")]
    assert arguments_of(graph, "aten.add.Tensor") == [
        NodeRef(name=computed["aten.sin.default"]),
        NodeRef(name=computed["aten.mul.Tensor"]),
    ]


async def test_a_scalar_argument_keeps_its_name_beside_an_equal_literal(traced: TracingText) -> None:
    body = "def f(x, eps=1e-5):\n    return (x + eps) * 1e-5\n"
    graph = (await traced(WITH_EPS + body)).graph
    assert arguments_of(graph, "aten.add.Tensor")[1] == ScalarRef(name="eps")
    assert arguments_of(graph, "aten.mul.Tensor")[1] == Literal_(value=1e-5)
    assert graph.fixed == ()


@pytest.mark.parametrize(
    ("body", "source"),
    [
        ("x + eps ** 2", "eps ** 2"),
        ("x + (1 - eps)", "1 - eps"),
        ("x.add(x.exp(), alpha=-eps)", "-eps"),
        ("x + (2 / eps + 1) * 3.5", "(2 / eps + 1) * 3.5"),
    ],
)
async def test_what_python_computes_of_a_scalar_is_known_by_its_source(
    body: str, source: str, traced: TracingText
) -> None:
    graph = (await traced(WITH_EPS + f"def f(x, eps=1e-5):\n    return {body}\n")).graph
    (node,) = (n for n in graph.nodes if n.op == "aten.add.Tensor")
    assert ScalarRef(name=source) in [*node.args, *node.kwargs.values()]
    assert graph.fixed == ()


@pytest.mark.parametrize(
    "body",
    [
        "return x.exp() if eps > 0.1 else x.sin()",
        "return x.exp() if eps > 0 else x.sin()",
        "return x + abs(eps)",
    ],
)
async def test_a_scalar_that_shapes_the_computation_is_fixed_at_its_value(
    body: str, traced: TracingText
) -> None:
    graph = (await traced(WITH_EPS + f"def f(x, eps=1e-5):\n    {body}\n")).graph
    assert graph.fixed == ("eps",)


async def test_a_branch_on_a_size_becomes_a_guard(traced: TracingText) -> None:
    body = "def f(x):\n    return x * 2.0 if x.shape[0] > 100 else x * 3.0\n"
    graph = (await traced(DECLARED + body)).graph
    assert graph.guards == ("M <= 100",)


async def test_an_infinite_constant_and_a_plain_number_in_where_are_traced(traced: TracingText) -> None:
    body = "def f(x):\n    return torch.where(x > 0.0, x.masked_fill(x > 1.0, float('-inf')), 0.0)\n"
    graph = (await traced(DECLARED + body)).graph
    assert arguments_of(graph, "aten.masked_fill.Scalar")[2] == NonFinite(value="-inf")
    assert arguments_of(graph, "aten.where.self")[2] == Literal_(value=0.0)


async def test_a_flag_fixes_the_trace(traced: TracingText) -> None:
    declared = DECLARED.replace('"}', '", "inverse": True}', 1)
    body = "def f(x, inverse=True):\n    return 1.0 / x if inverse else x * 2.0\n"
    assert (await traced(declared + body)).graph.fixed == ("inverse",)


async def test_the_value_of_an_argument_after_the_call_is_an_output(traced: TracingText) -> None:
    graph = (await traced(DECLARED + "def f(x):\n    x.add_(1.0)\n    return x * 2.0\n")).graph
    assert [output.path for output in graph.outputs] == ["out", "x after the call"]
    assert graph.written == {"x": "x after the call"}


async def test_a_dim_that_export_fixed_is_a_guard(traced: TracingText) -> None:
    body = "def f(x):\n    assert x.shape[1] == 13\n    return x * 2.0\n"
    graph = (await traced(DECLARED + body)).graph
    assert graph.guards == ("N == 13",)


async def test_the_sizes_of_a_pool_are_free_where_torch_asks_for_a_remainder(traced: TracingText) -> None:
    declared = DECLARED.replace("[M", "[2, 3, M") + DIVISION_OF_TORCH_2_11
    body = "def f(x):\n    return F.silu(F.max_pool2d(x, 3, 2, 1))\n"
    assert (await traced(declared + body, backward=True)).graph.guards == ()


async def test_the_sizes_of_a_pool_over_all_of_them_are_free(traced: TracingText) -> None:
    declared = DECLARED.replace("[M", "[2, 3, M")
    windows = {
        "F.avg_pool2d(x, x.shape[2:])": "mean",
        "F.avg_pool2d(x, (x.size(2), x.size(3)), stride=(x.size(2), x.size(3)))": "mean",
        "nn.MaxPool2d(x.size()[2:])(x)": "max",
        "F.max_pool1d(x.flatten(2), x.size(2) * x.size(3))": "max",
    }
    for pool, operator in windows.items():
        body = f"from torch import nn\n\n\ndef f(x):\n    return {pool} * 2.0\n"
        graph = (await traced(declared + body, backward=True)).graph
        assert graph.guards == (), pool
        assert [node.op for node in graph.nodes if f".{operator}." in node.op], pool


async def test_an_output_follows_the_dtype_of_its_input(traced: TracingText) -> None:
    declared = DECLARED.replace("float32", "float32|bfloat16")
    found = await traced(declared + "def f(x):\n    return x * 2.0, x.float().sum(-1)\n")
    assert found.output_dtypes == {"out[0]": "x.dtype", "out[1]": "torch.float32"}


SHORT_TOO = DECLARED.replace("float32", "float32|float16")


TWO_INPUTS = SHORT_TOO.replace("[M, N]", '[M, N]", "w": "float32|float16[N]', 1)
REFUSED = {
    "a size that the target fixes is to be declared as a number": (
        DECLARED.replace('"N": [9]', '"N": [33]') + "def f(x):\n    return x * torch.ones(33)\n",
        ("cannot be traced", r"--input x=float32\[M,33\]"),
    ),
    "a result that is no tensor": (
        DECLARED + "def f(x):\n    return x + 1.0, {1}\n",
        (
            r"cannot be traced: out\[1\] is a set, not a tensor\.\n",
            "^Return tensors",
        ),
    ),
    "control flow that depends on values": (
        DECLARED + "def f(x):\n    return x if x.sum() > 0 else -x\n",
        (r"traced: line \d+ needs the values of a tensor\.\n", "no data-dependent control flow"),
    ),
    "a size that depends on values": (
        DECLARED + "def f(x):\n    return x[x > 0].sum()\n",
        ("the size of a result depends on values", "torch.where"),
    ),
    "a constant tensor made inside": (
        DECLARED + "TABLE = torch.rand(99)\n\n\ndef f(x):\n    return x * TABLE[:1]\n",
        ("constant tensor", "^Pass the tensor as an argument.$"),
    ),
    "a program that no single dtype decides": (
        TWO_INPUTS + "def f(x, w):\n    if x.dtype == torch.float16 and w.dtype == torch.float32:\n"
        "        return (x * w).sin()\n    return x * w\n",
        (r"float16 x and float32 w than in float32 \(line 10, `sin`\)", "once for each"),
    ),
    "a dtype that the function does not take": (
        SHORT_TOO + "def f(x):\n    if x.dtype == torch.float16:\n        raise TypeError('no float16')\n"
        "    return x * 2.0\n",
        ("cannot be traced in float16: no float16", "only dtypes that the function takes"),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_cannot_be_traced_is_refused_with_a_way_out(what: str, traced: TracingText) -> None:
    text, (message, hint) = REFUSED[what]
    with pytest.raises(NotConvertible, match=message) as refusal:
        await traced(text)
    assert re.search(hint, refusal.value.hint)


async def test_one_program_in_all_dtypes_is_traced_as_one(traced: TracingText) -> None:
    body = "def f(x):\n    h = x.float().exp()\n    return h.to(x.dtype) * x\n"
    found = await traced(SHORT_TOO + body)
    assert found.branches == ()
    assert found.graph.inputs[0].dtypes == ("float32", "float16")


async def test_a_program_of_one_dtype_is_a_branch_that_its_dtype_decides(traced: TracingText) -> None:
    body = (
        "def f(x, eps=1e-5):\n    h = x + eps\n    if h.dtype == torch.float16:\n        h = h.clamp(-9, 9)\n"
        "    return h\n"
    )
    declared = WITH_EPS.replace("float32", "float32|float16")
    (branch,) = (await traced(declared + body)).branches
    assert (str(branch.rule), branch.dtypes) == ("x.dtype", ("float16",))
    assert "aten.clamp.default" in [node.op for node in branch.graph.nodes]
    assert arguments_of(branch.graph, "aten.add.Tensor")[1] == ScalarRef(name="eps")


async def test_a_number_that_follows_a_dtype_is_a_choice(traced: TracingText) -> None:
    body = "def f(x):\n    return x + (1e-3 if x.dtype == torch.float16 else 1e-6)\n"
    found = await traced(SHORT_TOO + body)
    assert found.branches == ()
    (choice,) = found.graph.choices
    assert (choice.tensors, choice.values) == (("x",), {"float32": 1e-6, "float16": 1e-3})
    assert arguments_of(found.graph, "aten.add.Tensor")[1] == ScalarRef(name=choice.name)


async def test_a_number_that_may_be_an_argument_is_no_choice(traced: TracingText) -> None:
    body = "def f(x, eps=1e-5):\n    return x + (1e-3 if x.dtype == torch.float16 else eps)\n"
    found = await traced(WITH_EPS.replace("float32", "float32|float16") + body)
    assert found.graph.choices == ()
    assert arguments_of(found.graph, "aten.add.Tensor")[1] == ScalarRef(name="eps")
    (branch,) = found.branches
    assert arguments_of(branch.graph, "aten.add.Tensor")[1] == Literal_(value=1e-3)


async def test_a_rounding_to_an_inputs_dtype_is_left_out_and_one_of_its_own_kept(traced: TracingText) -> None:
    declared = DECLARED.replace("float32", "bfloat16|float16")
    body = (
        "def f(x):\n    own = x.float().sin().to(torch.float16)\n    return own.float().cos().to(x.dtype)\n"
    )
    graph = (await traced(declared + body)).graph
    casts = [node.dtype for node in graph.nodes if node.op == "aten._to_copy.default"]
    assert casts == ["float16", "float32"]


def test_sizes_of_a_trace_are_distinct() -> None:
    declaration = parse_declaration({"x": "float32[M, N]"}, {"M": [4], "N": [16]}, ["N % 16 == 0"])
    dims = trace_dims(declaration)
    assert len(set(dims.values())) == 2
    assert dims["N"] % 16 == 0
    assert min(dims.values()) >= 11


def test_requirements_of_multiples_and_of_small_sizes_find_sizes_to_trace_at() -> None:
    for requires in [
        ["D % 2 == 0"],
        ["D % 3 == 0"],
        ["D % 100 == 0"],
        ["D % H == 0", "D // H % 2 == 0"],
        ["D == 2 * H"],
        ["D <= 8"],
        ["D % 7 == 0", "D < 10"],
        ["D % (3 * H) == 0"],
    ]:
        sizes = {"D": list(range(1, 400)), "H": [1, 2, 3, 4, 5, 7]}
        dims = trace_dims(parse_declaration({"x": "float32[D, H]"}, sizes, requires))
        assert len(set(dims.values())) == 2


def test_many_dims_of_which_some_divide_others_find_sizes_to_trace_at() -> None:
    shapes = {"q": "float32[B, H, M, D]", "k": "float32[B, G, N, D]"}
    requires = ["H % G == 0", "D % 8 == 0", "D <= 256", "N >= M", "B >= 1"]
    declaration = parse_declaration(shapes, {name: [8] for name in "BHGMND"}, requires)
    dims = trace_dims(declaration)
    assert len(set(dims.values())) == 6
    assert declaration.violated(dims) is None


def test_dims_that_must_be_equal_are_refused_with_a_hint() -> None:
    declaration = parse_declaration({"x": "float32[M, N]"}, {"M": [4], "N": [4]}, ["M == N"])
    with pytest.raises(NotConvertible, match="meet M == N") as refusal:
        trace_dims(declaration)
    assert "write M for N in the inputs" in refusal.value.hint
    declaration = parse_declaration({"x": "float32[M, N]"}, {"M": [4], "N": [4]}, ["M <= N", "N <= M"])
    with pytest.raises(NotConvertible, match="meet M <= N, N <= M") as refusal:
        trace_dims(declaration)
    assert "REQUIRES" in refusal.value.hint

"""The least time for some work: memory or compute binds, and what a kernel file declares goes first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_to_triton.benchmark.roofline import DeclaredWork, declared_count, limit_of, work_of
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.graph import Graph, GraphOutput, Node, NodeRef, Shape, TensorInput
from pytorch_to_triton.schema.timing import Ceilings, MinimalWork

from .sweeps import H200

COUNTS = st.integers(min_value=0, max_value=10**15)
SQUARE = Shape(expressions=("N", "N"), traced=(11, 11))


def work(bytes_moved: int = 0, vector: int = 0, **flops: int) -> MinimalWork:
    total = {**flops, "float32": flops.get("float32", 0) + vector}
    return MinimalWork(bytes_moved=bytes_moved, flops=total, vector_flops=vector, provenance="made up")


def product_and_exp() -> Graph:
    """exp(x @ y) of float32[N, N]."""
    names = ("x", "y")
    steps = (("p", "aten.mm.default", names), ("e", "aten.exp.default", ("p",)))
    return Graph(
        function="f",
        parameters=names,
        inputs=tuple(TensorInput(name=n, shape=SQUARE, dtype="float32") for n in names),
        state={},
        constants={},
        fixed=(),
        nodes=tuple(
            Node(
                name=name,
                op=op,
                args=tuple(NodeRef(name=argument) for argument in arguments),
                kwargs={},
                shape=SQUARE,
                dtype="float32",
            )
            for name, op, arguments in steps
        ),
        outputs=(GraphOutput(path="out", name="e"),),
        dims={"N": 11},
        guards=(),
    )


def test_a_large_copy_is_bound_by_memory_and_a_large_product_by_compute() -> None:
    limit = limit_of(work(4_283_000_000, vector=1), H200, tf32=False)
    assert limit is not None
    assert (limit.ms, limit.binds, limit.provenance) == (pytest.approx(1.0), "memory", "measured")
    limit = limit_of(work(4_283_000, bfloat16=712 * 10**9), H200, tf32=False)
    assert limit is not None
    assert (limit.ms, limit.binds) == (pytest.approx(1.0), "compute")
    assert limit.bytes_ms == pytest.approx(0.001)


def test_tf32_speeds_up_products_of_float32_and_nothing_else() -> None:
    mixed = work(vector=516 * 10**8, float32=370 * 10**9)
    slow, fast = limit_of(mixed, H200, tf32=False), limit_of(mixed, H200, tf32=True)
    assert slow is not None
    assert fast is not None
    assert slow.ms == pytest.approx(370 / 51.6 + 1)
    assert fast.ms == pytest.approx(1.0)


def test_units_work_at_the_same_time_and_both_formats_of_eight_bits_have_one_rate() -> None:
    limit = limit_of(work(vector=516 * 10**8, bfloat16=2 * 712 * 10**9), H200, tf32=False)
    assert limit is not None
    assert limit.flops_ms == pytest.approx(2.0)
    ceilings = H200.model_copy(update={"matmul_tflops": {"float8_e4m3fn": 1000.0}})
    limit = limit_of(work(float8_e5m2=10**12), ceilings, tf32=False)
    assert limit is not None
    assert limit.ms == pytest.approx(1.0)


def test_no_limit_is_reported_where_a_rate_is_not_known_or_nothing_is_to_do() -> None:
    assert limit_of(work(10**9, float64=1), H200, tf32=False) is None
    no_rates = H200.model_copy(update={"matmul_tflops": {}})
    assert limit_of(work(10**9, vector=1), no_rates, tf32=False) is None
    assert limit_of(work(10**9), no_rates, tf32=False) is not None
    assert limit_of(work(), H200, tf32=False) is None


@given(COUNTS, COUNTS, COUNTS, st.floats(1.5, 100.0))
def test_the_limit_is_the_longer_time_and_shrinks_on_a_faster_device(
    moved: int, vector: int, products: int, faster: float
) -> None:
    task = work(moved, vector=vector, bfloat16=products)
    limit = limit_of(task, H200, tf32=False)
    if limit is None:
        assert moved + vector + products == 0
        return
    assert limit.ms == max(limit.bytes_ms, limit.flops_ms)
    assert (limit.binds == "memory") == (limit.bytes_ms >= limit.flops_ms)
    rates = {dtype: rate * faster for dtype, rate in H200.matmul_tflops.items()}
    device = Ceilings(
        device="faster",
        provenance="measured",
        source="",
        copy_gbytes_per_s=4283 * faster,
        matmul_tflops=rates,
    )
    better = limit_of(task, device, tf32=False)
    assert better is not None
    assert better.ms == pytest.approx(limit.ms / faster)


def test_a_graph_is_counted_in_the_dtypes_of_the_case() -> None:
    counted = work_of(product_and_exp(), {"N": 100}, {"x": "bfloat16", "y": "bfloat16"}, None)
    assert counted is not None
    assert counted.bytes_moved == 3 * 100 * 100 * 2
    assert counted.flops == {"bfloat16": 2 * 100**3, "float32": 100**2}
    assert (counted.vector_flops, counted.provenance) == (100**2, "counted in the traced graph")


def test_what_is_declared_goes_before_what_is_counted() -> None:
    declared = DeclaredWork(source="k.py", bytes_moved="N * itemsize")
    found = work_of(product_and_exp(), {"N": 100}, {"x": "float16"}, declared)
    assert found is not None
    assert found.bytes_moved == 200
    assert found.flops["float16"] == 2 * 100**3
    assert found.provenance == "bytes declared in k.py, the rest counted in the traced graph"
    declared = DeclaredWork(source="k.py", flops="N * N * N")
    found = work_of(product_and_exp(), {"N": 100}, {"x": "bfloat16"}, declared)
    assert found is not None
    assert (found.flops, found.vector_flops) == ({"bfloat16": 100**3}, 0)
    graph = product_and_exp()
    pointwise = graph.model_copy(
        update={"nodes": (graph.nodes[1].model_copy(update={"args": (NodeRef(name="x"),)}),)}
    )
    found = work_of(pointwise, {"N": 100}, {"x": "bfloat16"}, DeclaredWork(source="k.py", flops="7 * N * N"))
    assert found is not None
    assert (found.flops, found.vector_flops) == ({"float32": 70_000}, 70_000)


def test_a_kernel_that_cannot_be_traced_is_known_by_its_declaration_alone() -> None:
    both = DeclaredWork(source="k.py", bytes_moved="2 * N * itemsize", flops="4 * N")
    found = work_of(None, {"N": 100}, {"index": "int64", "x": "bfloat16"}, both)
    assert found is not None
    assert (found.bytes_moved, found.flops) == (1600, {"bfloat16": 400})
    assert found.provenance == "bytes and operations declared in k.py"
    assert work_of(None, {"N": 100}, {"x": "bfloat16"}, DeclaredWork(source="k.py", flops="4 * N")) is None
    assert work_of(None, {"N": 100}, {"x": "bfloat16"}, None) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("4 * M", "no dimension 'M' is declared"),
        ("1.5 * N", "1.5 is not an integer"),
        ("N / 2", "/ does not give an integer"),
        ("N - 200", "FLOPS: N - 200 is -100 at N=100"),
        ("N // (N - 100)", "divides by zero at"),
        ("", "an expression is missing here"),
    ],
)
def test_a_declaration_that_cannot_be_used_is_refused_where_it_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(BadInput) as refused:
        declared_count("FLOPS", text, {"N": 100}, {"x": "float32"})
    assert problem in refused.value.message
    assert refused.value.hint

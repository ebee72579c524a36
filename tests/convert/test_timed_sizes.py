"""What is measured at several sizes decides together: who computes what, and in which configuration."""

import pytest

from pytorch_to_triton.convert.compiled_figures import figure_lines
from pytorch_to_triton.convert.work import ConfigChoice, ranked_by, renamed
from pytorch_to_triton.draft.file.launches import Variant
from pytorch_to_triton.draft.library import PURE, Ways
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.declaration import parse_points
from pytorch_to_triton.schema.finding import CompiledFigures
from pytorch_to_triton.schema.timing import Timing, TimingTable

from ..conftest import Written
from .conftest import Resolving

LIBRARY = Ways(products="library")
CONFIGS = {"f 0": {"BLOCK": 64, "num_warps": 4}, "f 1": {"BLOCK": 1024, "num_warps": 8}}
CHOICE = ConfigChoice(Variant("f", tuple(CONFIGS.values()), "N <= 8192"), dict(CONFIGS))


def at(rows: int, columns: int = 128, **medians: float) -> TimingTable:
    """What was timed at one size; an underscore of a label is a space."""
    return TimingTable(
        device="NVIDIA H200",
        dims={"M": rows, "N": columns},
        dtypes={"x": "float32"},
        bytes_moved=8_000_000,
        timings=tuple(
            Timing(label=name.replace("_", " "), low_ms=ms, median_ms=ms, high_ms=ms, calls=60)
            for name, ms in medians.items()
        ),
        failed={},
    )


def test_the_configuration_is_the_fastest_over_all_sizes_and_it_is_said_where_another_is() -> None:
    tables = (at(16, f_0=1.0, f_1=1.5), at(8192, f_0=9.0, f_1=3.0))
    assert CHOICE.best(tables) == "f 1"
    said = CHOICE.others_best(tables)
    assert said.startswith("f is launched with BLOCK=1024 num_warps=8, the fastest over all timed sizes; ")
    assert said.endswith("; at M=16 N=128 BLOCK=64 num_warps=4 is faster.")
    assert CHOICE.others_best(tables[1:]) == ""


def test_sizes_at_which_a_kernel_is_not_launched_do_not_choose_its_configuration() -> None:
    elsewhere = at(16, 65536, f_0=9.0, f_1=1.0)
    assert CHOICE.best((at(16, f_0=1.0, f_1=1.1), elsewhere)) == "f 0"
    assert CHOICE.best((elsewhere,)) == "f 0"


def test_a_configuration_that_could_not_be_timed_at_each_size_is_not_taken() -> None:
    assert CHOICE.best((at(16, f_0=1.0, f_1=1.5), at(8192, f_1=3.0))) == "f 1"
    assert CHOICE.best((at(16), at(8192))) == "f 0"


def test_the_winner_takes_the_last_stage_s_place_beside_the_others() -> None:
    table = renamed(at(16, stage_1=2.0, f_0=1.0, f_1=1.5), "f 0", "stage 3")
    assert [(timing.label, timing.median_ms) for timing in table.timings] == [
        ("stage 1", 2.0),
        ("stage 3", 1.0),
    ]


def test_the_ways_are_ranked_by_their_times_over_all_sizes() -> None:
    drafts = {"way 0": LIBRARY, "way 1": PURE}
    ranked = ranked_by(drafts, (at(16, way_0=0.5, way_1=0.25), at(8192, way_0=2.0, way_1=3.0)))
    assert ranked.ways == (PURE, LIBRARY)
    assert ranked.notes == (
        "Fastest on NVIDIA H200 at M=16 N=128: own kernels, 0.250 ms; then products by library, 0.500 ms.",
        "Fastest on NVIDIA H200 at M=8192 N=128: products by library, 2.000 ms; then own kernels, 3.000 ms.",
    )
    assert ranked_by(drafts, (at(16, way_0=0.5),)).fastest == LIBRARY
    assert ranked_by(drafts, ()).ways == (LIBRARY, PURE)


def test_what_was_compiled_is_a_line_for_each_gpu_and_size() -> None:
    def row(where: str, registers: int, bits: int | None) -> CompiledFigures:
        return CompiledFigures(
            kernel="f", where=where, registers=registers, spill_bytes=0, shared_bytes=64, occupancy=1.0,
            widest_load_bits=bits, widest_store_bits=128,
        )  # fmt: skip

    rows = [
        row("sm_90 at M=16 N=128, BLOCK=64", 32, 128),
        row("sm_90 at M=16 N=128, BLOCK=1024", 96, 32),
        row("gfx942 at M=16 N=128, BLOCK=64", 40, None),
    ]
    assert figure_lines(rows) == (
        "sm_90 at M=16 N=128: f 32 to 96 registers, 0 B spilled, 64 B shared, loads 32 to 128 bit, "
        "stores 128 bit",
        "gfx942 at M=16 N=128: f 40 registers, 0 B spilled, 64 B shared, stores 128 bit",
    )


BRANCHING = """
INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [3, 7], "N": [40]}


def f(x):
    return x.softmax(-1) if x.shape[0] <= 64 else x.cos()
"""


@pytest.mark.anyio
async def test_the_program_of_the_largest_named_size_is_the_one_that_is_tuned(
    resolved: Resolving, written: Written
) -> None:
    target = await resolved(written(BRANCHING), points=parse_points(["M=8192", "M=5"]))
    assert target.graph is not None
    assert [case.dims for case in target.timing_cases()] == [{"M": 5, "N": 40}, {"M": 8192, "N": 40}]
    assert any(node.op.startswith("aten.cos") for node in target.graph.nodes)
    assert target.whole is not None
    assert [branch.sizes for branch in target.whole.traced.branches] == [("M <= 64",)]


IN_PARTS = """
INPUTS = {"a": "float32[N, 64]", "b": "float32[N, 64]"}
DIMS = {"N": [3, 8]}


def f(a, b):
    logits = a @ b.t()
    if logits.sum().item() > 0:
        return logits * 2.0
    return logits.cos()
"""


@pytest.mark.anyio
async def test_sizes_grow_until_the_largest_value_of_a_part_fills_a_gpu(
    resolved: Resolving, written: Written
) -> None:
    target = await resolved(written(IN_PARTS))
    (case,) = target.timing_cases()
    assert 4 * case.dims["N"] ** 2 == 2**28
    assert target.timed_points == (case.dims,)


LOOPING = """
INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [7], "N": [3]}


def f(x):
    y = x[:, 0]
    for t in range(1, x.shape[1]):
        y = 0.5 * y + x[:, t]
    return y
"""


@pytest.mark.anyio
async def test_another_size_of_a_dim_that_shapes_the_program_has_to_be_declared(
    resolved: Resolving, written: Written
) -> None:
    target = await resolved(written(LOOPING), points=parse_points(["M=8192"]))
    assert (target.fixed, target.request.points) == ({"N": 3}, ({"M": 8192},))
    with pytest.raises(BadInput, match="N shapes the program, and 3 is declared, not 5"):
        await resolved(target.target, points=parse_points(["M=8192,N=5"]))

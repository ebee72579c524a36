"""Every row names a kernel, sizes and peers that there are; results become a table."""

import ast
from pathlib import Path

import pytest
import torch

from kernelbench.command import start
from pytorch_to_triton import places
from pytorch_to_triton.inputs.declaration import parse_declaration, parse_options, parse_points
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.timing import Timing, TimingTable
from reference_benchmarks.rows import Row, rows
from reference_benchmarks.run import PEERS, arguments, installed, request_of, run
from reference_benchmarks.table import rows_csv, table_of

ROWS = rows()


def functions_in(file: Path) -> dict[str, str]:
    """The arguments of each function, and of each name that is another one."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = {
        node.name: ", ".join(arg.arg for arg in [*node.args.args, *node.args.kwonlyargs])
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in found:
            found[ast.unparse(node.targets[0])] = found[node.value.id]
    return found


def assigned_in(file: Path) -> dict[str, object]:
    """The literals that a kernel file declares."""
    found: dict[str, object] = {"REQUIRES": []}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
        if isinstance(node, ast.Assign) and name in ("INPUTS", "DIMS", "REQUIRES"):
            found[name] = ast.literal_eval(node.value)
    return found


def test_each_reference_kernel_is_timed_and_each_row_has_a_name_of_its_own() -> None:
    kernels = {file.stem for file in places.shipped("reference_kernels").glob("*.py")}
    assert {row.kernel for row in ROWS} == kernels, "a kernel wants a Row in reference_benchmarks/rows.py"
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_fits_the_declaration_of_its_kernel(row: Row) -> None:
    file = places.shipped("reference_kernels") / f"{row.kernel}.py"
    declared = assigned_in(file)
    inputs, dims = declared["INPUTS"], declared["DIMS"]
    assert isinstance(inputs, dict)
    assert isinstance(dims, dict)
    points = parse_points(row.sizes)
    options = parse_options(row.inputs, ()).at(points)
    assert options.inputs.keys() <= inputs.keys()
    assert all(point.keys() == dims.keys() for point in points)
    declaration = parse_declaration(inputs | dict(options.inputs), options.dims, declared["REQUIRES"])  # type: ignore[arg-type]
    assert declaration.inputs


@pytest.mark.parametrize("peer", sorted({peer for row in ROWS for peer in row.peers}))
def test_a_peer_has_a_function_with_the_kernels_arguments(peer: str) -> None:
    theirs = functions_in(PEERS / f"{peer}.py")
    for kernel in {row.kernel for row in ROWS if peer in row.peers}:
        ours = functions_in(places.shipped("reference_kernels") / f"{kernel}.py")
        assert theirs[kernel] == ours["reference"], kernel


def timing(label: str, ms: float) -> Timing:
    return Timing(
        label=label, median_ms=ms, low_ms=ms, high_ms=ms, calls=9, gbytes_per_s=3000, share_of_limit=0.9
    )


def test_table_and_csv_compare_with_the_best_of_all_others() -> None:
    table = TimingTable(
        device="H200",
        dims={"M": 8192, "N": 4096},
        dtypes={"x": "bfloat16"},
        bytes_moved=1,
        timings=(timing("kernel", 1.0), timing("eager", 3.0), timing("compile", 1.5), timing("peer", 1.2)),
        failed={},
    )
    result = Benchmark(
        summary="", next_step="", verdict="faster", kernel="softmax", device="H200, torch 2.11",
        passes="forward", precision="", provenance="measured", tables=(table,), flags=(), ceilings=None,
        conditions=None,
    )  # fmt: skip
    row = next(row for row in ROWS if row.kernel == "softmax")
    text = table_of([(row, result)])
    assert rows_csv([(row, result)]).splitlines() == [
        "# H200, torch 2.11",
        "kernel,pass,size,ms,best_other,best_other_ms,times_as_fast,times_as_fast_as_eager",
        "softmax,forward,8192 x 4096 bfloat16,1.0000,peer,1.2000,1.20,3.00",
    ]
    assert text.startswith("H200, torch 2.11")
    line = [cell.strip() for cell in text.splitlines()[4].split("|")[1:-1]]
    expected = [
        "`softmax`",
        "forward",
        "8192 x 4096 bfloat16",
        "1.0000",
        "3000 GB/s",
        "90%",
        "peer 1.2000",
        "1.20",
    ]
    assert line == [*expected, "3.00"]
    assert "forward: 1.20 times as fast" in text


def test_a_row_asks_for_what_it_names_and_for_peers_that_are_installed(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.name == "softmax-backward-bfloat16")
    request = request_of(row, tmp_path)
    assert request.passes == "backward"
    assert {"M": 8192, "N": 4096} in request.points
    assert len(request.against) == len(installed(row.peers))
    assert request.into == tmp_path / row.name


def test_without_a_gpu_nothing_is_kept_and_the_reason_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], cache: Path
) -> None:
    if torch.cuda.is_available():
        pytest.skip("with a GPU, this would be a benchmark")
    assert start(arguments(["softmax-*", "--out", str(tmp_path)]), run, {}) == 3
    assert "no GPU" in capfd.readouterr().err
    assert not (tmp_path / "table.md").exists()


def test_the_rows_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert start(arguments(["--list", "softmax-*"]), run, {}) == 0
    assert "softmax-backward-bfloat16" in capfd.readouterr().out.splitlines()

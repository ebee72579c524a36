"""Rules on compiled and measured evidence: each finds its BAD files and is silent on its GOOD ones."""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from pytorch_to_triton.audit.analysis.diagnosis import VIOLATIONS, Diagnosis
from pytorch_to_triton.audit.evidence import CompiledCode, Evidence, MeasuredTarget, TimedTarget
from pytorch_to_triton.audit.examples import LANES, declared, jit
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.rule import PREAMBLE, Rule, RuleCheck
from pytorch_to_triton.audit.source import parse
from pytorch_to_triton.benchmark.flags import add_flags
from pytorch_to_triton.benchmark.verdict import verdict_of
from pytorch_to_triton.hardware.architectures import architecture
from pytorch_to_triton.inspect.inspect import InspectionRequest as Inspecting
from pytorch_to_triton.inspect.inspect import inspect
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.benchmark import Benchmark, TunedConfig
from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.finding import Finding
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import Roofline, Timing, TimingTable
from pytorch_to_triton.schema.verdict import (
    Behavior,
    CaseResult,
    CaseStatus,
    Kind,
    Mismatch,
    Verdict,
    Violation,
    ViolationKind,
    Where,
)
from pytorch_to_triton.validate.conclusion import WRONG
from pytorch_to_triton.validate.request import ValidationRequest as Validating
from pytorch_to_triton.validate.validate import validate

pytestmark = pytest.mark.anyio
ARCH = "sm_90"
FEW_ELEMENTS = 2**11
PACK = """
import importlib.util

INPUTS = {inputs}


def run({parameters}):
    given = {{{given}}}
    for path, arguments in {calls}:
        spec = importlib.util.spec_from_file_location("kernel", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.run(**{{name: given[whole] for name, whole in arguments.items()}})
"""
"""One file that runs others: compiled at once, they cost one process."""
TIMED = parse(
    Path("kernel.py"),
    f"{PREAMBLE}@triton.jit\ndef kernel(x_ptr): ...\n\ndef run(x):\n    kernel[(1,)](x)\n".encode(),
)

HONEST = (
    'CASES = ("N=40",)\n'
    + declared(
        jit(LANES, "tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)"),
        "kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), B=16)",
        x="float32[N]",
        N=40,
    )
    + "\ndef reference(x):\n    return x * 2\n"
)

CompiledFiles = Mapping[str, list[CompiledCode]]
Measuring = Callable[[str], Awaitable[MeasuredTarget]]


def checks(evidence: type[Evidence]) -> list[tuple[Rule, RuleCheck]]:
    """Each check of such evidence, with its rule."""
    return [(rule, check) for rule in all_rules() for check in rule.checks if check.needs is evidence]


def each_check(evidence: type[Evidence]) -> pytest.MarkDecorator:
    """A case for each check of such evidence, with all its examples."""
    cases = [pytest.param(rule, check, id=rule.name) for rule, check in checks(evidence)]
    return pytest.mark.parametrize(("rule", "check"), cases)


def literals(source: str) -> dict[str, Any]:
    """What a file assigns as a literal: INPUTS, DIMS, and perhaps CASES (of the cases) or ARCH."""
    assigned = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return {ast.unparse(node.targets[0]): ast.literal_eval(node.value) for node in assigned}


@pytest.fixture(scope="module")
async def compiled(
    worker: WorkerClient, interpreter: Runtime, tmp_path_factory: pytest.TempPathFactory
) -> CompiledFiles:
    """The kernels of each file of the rules on compiled code."""
    packs: defaultdict[tuple[str, bool], dict[Path, str]] = defaultdict(dict)
    folder = tmp_path_factory.mktemp("compiled")
    for source in {source: None for _, check in checks(CompiledCode) for source in check.bad + check.good}:
        # Triton compiles kernels of one text once, and names the lines of whichever file came first.
        path = folder / str(len(list(folder.iterdir()))) / "kernel.py"
        path.parent.mkdir()
        path.write_text(PREAMBLE + source, encoding="utf-8")
        # Each further configuration of an autotuner runs the whole pack again.
        packs[literals(source).get("ARCH", ARCH), "triton.autotune" in source][path] = source
    found: defaultdict[str, list[CompiledCode]] = defaultdict(list)
    for (arch, _), sources in packs.items():
        pack = tmp_path_factory.mktemp("pack") / "pack.py"
        pack.write_text(packed(sources), encoding="utf-8")
        inspection = await inspect(worker, Inspecting(candidate=Target(path=pack), arch=arch), interpreter)
        for kernel in inspection.kernels:
            path = kernel.compiled.file
            code = CompiledCode(kernel, architecture(arch), parse(path, path.read_bytes()))
            found[sources[path]].append(code)
    return found


def packed(sources: Mapping[Path, str]) -> str:
    """A file whose `run` runs each of these."""
    inputs: dict[str, str] = {}
    calls: list[tuple[str, dict[str, str]]] = []
    for number, (path, source) in enumerate(sources.items()):
        known = literals(source)
        for name, spec in known["INPUTS"].items():
            for dim, sizes in known["DIMS"].items():
                spec = re.sub(rf"\b{dim}\b", str(sizes[0]), spec)
            inputs[f"{name}_{number}"] = spec
        calls.append((str(path), {name: f"{name}_{number}" for name in known["INPUTS"]}))
    given = ", ".join(f"{name!r}: {name}" for name in inputs)
    return PACK.format(inputs=inputs, parameters=", ".join(inputs), given=given, calls=calls)


@pytest.fixture(scope="module")
def measuring(
    worker: WorkerClient, interpreter: Runtime, tmp_path_factory: pytest.TempPathFactory
) -> Measuring:
    """Validates a file on the cases that it names in CASES, else on all; each file once."""
    known: dict[str, MeasuredTarget] = {}

    async def measuring(source: str) -> MeasuredTarget:
        if source not in known:
            path = tmp_path_factory.mktemp("measured") / "kernel.py"
            path.write_text(PREAMBLE + source, encoding="utf-8")
            request = Validating(
                candidate=Target(path=path),
                seed=7,
                limit_elements=FEW_ELEMENTS,
                cases=literals(source).get("CASES", ()),
            )
            verdict = await validate(worker, request, interpreter)
            known[source] = MeasuredTarget(request.candidate, parse(path, path.read_bytes()), verdict)
        return known[source]

    return measuring


def timed(figures: str) -> TimedTarget:
    """A benchmark with these figures, its flags and its verdict as the benchmark itself makes them."""
    sizes = json.loads(figures)
    tables = add_flags([table_of(size, number) for number, size in enumerate(sizes)])
    result = Benchmark(
        summary="",
        next_step="",
        verdict=verdict_of(tables, []),
        kernel="kernel.py",
        device="H200",
        passes="forward",
        precision="",
        provenance="measured",
        tables=tables,
        flags=(),
        ceilings=None,
        conditions=None,
        tuned=(TunedConfig(kernel="kernel", key={}, config={}),) * any("tuned" in size for size in sizes),
    )
    return TimedTarget(Target(path=TIMED.path), TIMED, result)


def table_of(size: dict[str, Any], number: int) -> TimingTable:
    limit_ms = size.get("limit_ms")
    timings = []
    for label, figures in size["timings"].items():
        spread = {"low_ms": 0.98 * figures["median_ms"], "high_ms": 1.02 * figures["median_ms"], "calls": 100}
        timings.append(Timing(label=label, **spread, **figures))
    return TimingTable(
        device="H200",
        dims={"N": 1024 << number},
        dtypes={},
        bytes_moved=2**20 << number,
        timings=tuple(timings),
        failed={},
        limit=limit_ms
        and Roofline(ms=limit_ms, binds="memory", bytes_ms=limit_ms, flops_ms=0.0, provenance="measured"),
    )


def findings(rule: Rule, evidence: Iterable[Evidence]) -> list[Finding]:
    return [finding for piece in evidence for finding in rule.find(piece)]


@each_check(CompiledCode)
def test_a_rule_finds_its_bad_kernels_and_no_good_one(
    rule: Rule, check: RuleCheck, compiled: CompiledFiles
) -> None:
    for source in check.bad:
        found = findings(rule, compiled[source])
        assert found, source
        assert all("Compiled for" in finding.proof for finding in found), source
    for source in check.good:
        assert compiled[source]
        assert findings(rule, compiled[source]) == [], source


@each_check(MeasuredTarget)
async def test_a_rule_finds_its_bad_runs_and_no_good_one(
    rule: Rule, check: RuleCheck, measuring: Measuring
) -> None:
    for source in check.bad:
        found = findings(rule, [await measuring(source)])
        assert found, source
        assert all(finding.proof for finding in found), source
    for source in check.good:
        assert findings(rule, [await measuring(source)]) == [], source


async def test_nothing_is_found_in_an_honest_run(measuring: Measuring) -> None:
    assert found_by(await measuring(HONEST)) == []


@each_check(TimedTarget)
def test_a_rule_finds_its_bad_timings_and_no_good_ones(rule: Rule, check: RuleCheck) -> None:
    for figures in check.bad:
        (finding,) = findings(rule, [timed(figures)])
        assert (finding.line, finding.evidence) == (6, "measured"), figures
        assert "N=" in finding.proof, figures
    for figures in check.good:
        assert findings(rule, [timed(figures)]) == [], figures


def case(**changed: Any) -> CaseResult:
    """A failed case of which nothing else is known."""
    return CaseResult(**{"name": "N=40", "group": "declared", "status": "failed", "why": "wrong", **changed})


def measured_as(*cases: CaseResult, **changed: Any) -> MeasuredTarget:
    """A failed verdict of these cases on TIMED's file."""
    whole: dict[str, Any] = {
        "summary": "",
        "next_step": "",
        "verdict": "failed",
        "replay": "",
        "seed": 7,
        "candidate": "",
        "reference": "",
        "skipped": (),
        "device": "",
        "provenance": "",
        **changed,
    }
    verdict = Verdict(cases=cases, behavior=Behavior(kernels={"kernel": 1}, operators={}), **whole)
    return MeasuredTarget(Target(path=TIMED.path), TIMED, verdict)


def mismatch(kind: Kind, where: Where | None = None) -> Mismatch:
    return Mismatch(output="out", kind=kind, where=where, message="wrong", causes=("It is.",), first=None)


def wrong(kind: Kind, where: Where | None = None, **changed: Any) -> CaseResult:
    return case(mismatches=(mismatch(kind, where),), **changed)


def violation(kind: ViolationKind) -> Violation:
    return Violation(kind=kind, message=f"It {kind}.", suggestion="Do not.")


def found_by(measured: MeasuredTarget) -> list[str]:
    return [finding.rule for rule in all_rules() for finding in rule.find(measured)]


def test_every_diagnosis_has_a_rule_of_its_name_and_every_violation_a_diagnosis() -> None:
    of_wrong_runs = {rule.name for rule, _ in checks(MeasuredTarget)} - {"strided_lanes"}
    assert set(get_args(Diagnosis)) == of_wrong_runs
    assert VIOLATIONS.keys() == {*get_args(ViolationKind)}


def test_every_mismatch_is_reported_by_just_one_rule() -> None:
    for kind, group in product(get_args(Kind), get_args(Group)):
        wrong = case(group=group, mismatches=(mismatch(kind),))
        assert len(found_by(measured_as(wrong))) == 1, (kind, group)
        assert len(found_by(measured_as(case(status="passed"), wrong))) == 1, (kind, group)


def test_every_violation_is_reported_by_just_one_rule() -> None:
    for kind in get_args(ViolationKind):
        assert found_by(measured_as(case(violations=(violation(kind),)))) == [VIOLATIONS[kind]]
        assert found_by(measured_as(violations=(violation(kind),))) == [VIOLATIONS[kind]]


def test_every_call_that_did_not_return_is_reported_by_just_one_rule() -> None:
    for status, group in product({*WRONG} - {"failed"}, get_args(Group)):
        assert len(found_by(measured_as(case(status=status, group=group)))) == 1, (status, group)


RIGHT = case(status="passed")
REPORTED_AS = {
    "wrong_results": [wrong("values")],
    "low_precision_results": [wrong("low_precision")],
    "unwritten_output": [wrong("unwritten", group="odd")],
    "tail_wrong": [wrong("values", where="tail")],
    "unstable_results": [RIGHT, wrong("nan_only", group="special")],
    "layout_ignored": [RIGHT, wrong("values", group="layout")],
    "input_changed": [wrong("mutates_input")],
    "size_refused": [RIGHT, case(status="raised", group="empty")],
    "offset_overflow": [RIGHT, case(status="crashed", group="large_stride")],
    "crashes": [
        # It ended before it could launch its kernel.
        case(status="raised", violations=(violation("no_triton_kernel"),)),
        # It crashes at plain sizes as well.
        case(name="N=40 far", status="crashed", group="large_stride"),
    ],
    # What lies outside is poisoned, so that values are wrong, too.
    "out_of_bounds": [wrong("values", violations=(violation("load_outside"),))],
}


@pytest.mark.parametrize("rule", REPORTED_AS)
def test_what_went_wrong_in_which_case_names_the_rule(rule: str) -> None:
    assert found_by(measured_as(*REPORTED_AS[rule])) == [rule]


def test_odd_sizes_alone_tell_that_the_tail_is_wrong() -> None:
    assert found_by(measured_as(RIGHT, wrong("values", group="odd"))) == ["tail_wrong"]


def test_what_passed_or_was_skipped_is_not_reported() -> None:
    cases = [case(status=status) for status in get_args(CaseStatus) if status not in WRONG]
    assert found_by(measured_as(*cases, verdict="undecided")) == []

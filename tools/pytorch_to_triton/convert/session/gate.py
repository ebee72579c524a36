"""What the gate of a stage asks, out of what other tools found: pure functions, a condition each."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.benchmark.tuning.freeze import autotuned_kernels
from pytorch_to_triton.convert import gates
from pytorch_to_triton.convert.compiled_figures import figure_lines
from pytorch_to_triton.convert.gates import speed_of
from pytorch_to_triton.convert.work import Tables
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.schema.finding import SEVERITIES, AuditReport, Finding
from pytorch_to_triton.schema.session import Condition, Stage
from pytorch_to_triton.schema.timing import TimingTable
from pytorch_to_triton.schema.verdict import Verdict

GRAVE = ("critical", "high")
SUBMITTED, PREVIOUS = "submitted", "stage before"
SPEED = "not slower than the stage before"
"""The condition that may be accepted with a reason."""
NEAR_THE_LIMIT = 0.9
"""A share of the device's limit at which a stage need not be faster than the one before."""

COMPILES = frozenset({"compiler_refuses", "shared_memory_over_limit"})
UNCOALESCED = frozenset({"strided_access", "strided_lanes"})
BLOCKS = frozenset({"block_not_power_of_two", "warps_not_power_of_two"})
UNTUNED = frozenset(
    {"autotune_missing", "single_configuration", "autotune_key_misses_size", "parameter_mismatch"}
)
"""Rules of the audit that each condition of a gate is about."""
LEFT_TO_PYTORCH = frozenset({"torch_operator", "no_triton_kernel", "output_without_kernel"})
IN_KERNELS = "Compute it in a kernel: in a session PyTorch does only what the draft has left to it."


@dataclass(frozen=True)
class Evidence:
    """What was found out about one submitted file."""

    file: Path
    text: str
    triton: str
    """The installed version."""
    verdict: Verdict | None = None
    """None where the file uses names that do not exist: it was not run."""
    audit: AuditReport | None = None
    """None where the file was not run."""
    tables: Tables = ()
    """Empty without a device, and where the file is wrong."""
    refusal: BadInput | None = None
    """Why it could not even be loaded or called."""
    has_previous: bool = False
    """Whether an earlier stage's gate has opened."""
    judged_with: str = ""
    """The torch, Triton and runtime that it was run with."""


def conditions(stage: Stage, evidence: Evidence) -> tuple[Condition, ...]:
    """All that the stage's gate asks, what is wrong before what is slow."""
    result = [known_names(evidence), right(evidence.verdict, evidence.refusal)]
    if evidence.audit is None:
        return tuple(result)
    result += [
        without("compiles", evidence.audit, COMPILES, compiled(evidence.audit)),
        no_grave_finding(evidence.audit),
    ]
    if stage >= 2:
        result += [
            without("coalesced", evidence.audit, UNCOALESCED, "every access that was compiled is coalesced"),
            without("blocks of powers of two", evidence.audit, BLOCKS, "all blocks and warps are"),
            autotuned(stage, evidence),
            speed(evidence),
        ]
    if stage == 3:
        result.append(beside_others(evidence.tables))
    return tuple(result)


def opens(conditions: Sequence[Condition], accepted: str) -> bool:
    """Whether no condition is unmet, but for the one that the caller may accept with a reason."""
    return {c.name for c in conditions if c.met == "not met"} <= ({SPEED} if accepted else set())


def known_names(evidence: Evidence) -> Condition:
    """No name or argument that the installed Triton lacks."""
    name = "known to the installed Triton"
    wrong = unknown_names(evidence.text, evidence.triton)
    if not wrong:
        return met(name, f"every name exists in Triton {evidence.triton}")
    line, message, suggestion = wrong[0]
    return unmet(
        name, f"{evidence.file.name}:{line}: {message}", suggestion or "Look the name up: docs search."
    )


def met(name: str, evidence: str) -> Condition:
    return Condition(name=name, met="met", evidence=evidence)


def unmet(name: str, evidence: str, advice: str) -> Condition:
    return Condition(name=name, met="not met", evidence=evidence, advice=advice)


def unmeasured(name: str, why: str) -> Condition:
    return Condition(name=name, met="not measured", evidence=why)


def unknown_names(text: str, triton: str) -> list[tuple[int, str, str]]:
    """Line, message and suggestion of each; of what does not parse, its first fault."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return [(error.lineno or 1, f"this is not Python: {error.msg}.", "Fix the syntax.")]
    return [
        (finding.line, finding.message, finding.suggestion) for finding in gates.unknown_names(text, triton)
    ]


def right(verdict: Verdict | None, refusal: BadInput | None = None) -> Condition:
    """The whole validation."""
    if refusal is not None:
        return unmet("right", refusal.message, refusal.hint)
    if verdict is None:
        return unmet("right", "it was not run", "Fix what stands above first.")
    if verdict.verdict == "passed":
        return met("right", verdict.summary)
    # A session has no option that leaves more to PyTorch.
    kinds = {violation.kind for case in verdict.cases for violation in case.violations}
    return unmet("right", verdict.summary, IN_KERNELS if kinds & LEFT_TO_PYTORCH else verdict.next_step)


def without(name: str, audit: AuditReport, rules: frozenset[str], clean: str) -> Condition:
    """No finding of these rules, suspicions and mere remarks apart."""
    findings = [f for f in audit.findings if f.rule in rules and not f.suspected and f.severity != "info"]
    if not findings and not audit.compiled:
        return unmeasured(name, "no kernel was launched, so none was compiled")
    return of_findings(name, findings, clean)


def compiled(audit: AuditReport) -> str:
    """What was compiled, with its figures."""
    return "; ".join(["compiled for every architecture asked for", *figure_lines(audit.compiled)])


def no_grave_finding(audit: AuditReport) -> Condition:
    """No critical or high finding, but for what other conditions are about."""
    rest = COMPILES | UNCOALESCED | BLOCKS
    findings = [f for f in audit.findings if f.severity in GRAVE and not f.suspected and f.rule not in rest]
    return of_findings("no grave finding", findings, f"none is critical or high{lesser(audit)}")


def lesser(audit: AuditReport) -> str:
    """How many other findings there are, in brackets; empty where there are none."""
    counts = Counter(f.severity for f in audit.findings if f.severity not in GRAVE)
    parts = [f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity]]
    suspected = sum(f.severity in GRAVE and f.suspected for f in audit.findings)
    parts += [f"{suspected} suspected"] * bool(suspected)
    return f" ({', '.join(parts)})" if parts else ""


def of_findings(name: str, findings: Sequence[Finding], clean: str) -> Condition:
    if not findings:
        return met(name, clean)
    more = f"; and {len(findings) - 1} more" if len(findings) > 1 else ""
    first = findings[0]
    proof = f" {first.proof}" if first.proof else ""
    evidence = f"{first.file.name}:{first.line}: {first.rule}: {first.message}{proof}{more}"
    return unmet(name, evidence, f"{first.suggestion} `docs read rules/{first.rule}` explains it.")


def autotuned(stage: Stage, evidence: Evidence) -> Condition:
    """Stage 2 tries launch configurations, or chooses among them by the sizes; stage 3 may have chosen."""
    name = "autotuned"
    if evidence.audit is not None and evidence.audit.findings:
        about = without(name, evidence.audit, UNTUNED, "")
        if about.met == "not met":
            return about
    if kernels := autotuned_kernels(evidence.text):
        return met(name, f"triton.autotune on {', '.join(kernels)}")
    if how := chosen_by_size(evidence.text):
        return met(name, how)
    if stage == 3:
        return met(name, "the launches have fixed configurations")
    return unmet(
        name,
        "no kernel is autotuned",
        "Put @triton.autotune over the kernel that takes the most time, with a key of the sizes that "
        "matter; the guide `autotune` shows how, `benchmark --tune` finds configurations.",
    )


def chosen_by_size(text: str) -> str:
    """What chooses the launch options of a kernel that is not autotuned; empty where they are numbers."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(decorator_list=decorators):
                if any("heuristics(" in ast.unparse(decorator) for decorator in decorators):
                    return f"triton.heuristics on {node.name}"
            case ast.Call(func=ast.Subscript(value=kernel), keywords=options):
                given = {option.arg: option.value for option in options}
                if None in given or not isinstance(given.get("num_warps", ast.Constant(4)), ast.Constant):
                    return f"what launches {ast.unparse(kernel)} chooses its options (line {node.lineno})"
    return ""


def speed(evidence: Evidence) -> Condition:
    """Against the last stage whose gate opened; near the device's limit nothing need be faster."""
    timings = [timing for table in evidence.tables if (timing := table.of(SUBMITTED))]
    if not timings:
        return unmeasured(SPEED, why_not_timed(evidence))
    outcome = speed_of(SUBMITTED, PREVIOUS if evidence.has_previous else None, evidence.tables)
    is_near = all((timing.share_of_limit or 0.0) >= NEAR_THE_LIMIT for timing in timings)
    figures = "; ".join(filter(None, map(compared, evidence.tables)))
    if outcome != "slower" or is_near:
        return met(SPEED, figures)
    return unmet(
        SPEED,
        figures,
        "Compare both files with `inspect` (registers, spills, access widths); if the form is worth its "
        'time, submit again with --accept "reason".',
    )


def compared(table: TimingTable) -> str:
    """What was submitted beside the stage before, and the limit, at one size; empty if it was not timed."""
    timing, before = table.of(SUBMITTED), table.of(PREVIOUS)
    if timing is None:
        return ""
    previous = f", before {before.median_ms:.4f} ms" if before else ""
    share = f"; {100 * timing.share_of_limit:.0f} % of the limit" if timing.share_of_limit is not None else ""
    return f"{place(table)}{timing.median_ms:.4f} ms{previous}{share}"


def beside_others(tables: Tables) -> Condition:
    """Measured beside eager PyTorch and torch.compile: what was seen, whoever is faster."""
    name = "timed beside PyTorch"
    seen = [text for table in tables if (text := beside_pytorch(table))]
    if not seen:
        return unmeasured(name, "no GPU, or it could not be timed")
    return met(name, ". ".join(seen))


def beside_pytorch(table: TimingTable) -> str:
    """All times at one size; empty where what was submitted, or all else, was not timed."""
    timing = table.of(SUBMITTED)
    others = [t for t in table.timings if t.label not in (SUBMITTED, PREVIOUS)]
    if timing is None or not others:
        return ""
    timings = ", ".join(f"{other.label} {other.median_ms:.4f} ms" for other in others)
    return f"{place(table)}{timing.median_ms:.4f} ms; {timings}"


def place(table: TimingTable) -> str:
    """`M=4096: `; empty without dims."""
    return f"{point_name(table.dims)}: " if table.dims else ""


def why_not_timed(evidence: Evidence) -> str:
    """Why there is no timing of what was submitted."""
    if evidence.tables:
        return f"it could not be timed: {evidence.tables[0].failed.get(SUBMITTED, 'no reason given')}"
    if evidence.verdict is None or evidence.verdict.verdict != "passed":
        return "what is not right is not timed"
    return "no GPU: kernels ran under the interpreter"

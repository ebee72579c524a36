"""The request for an audit, a project's settings, and the plan that follows from both.

[tool.pytorch-to-triton.audit]
fail_on = "high"
disable = ["incomplete_kernel_file"]
exclude = ["legacy/*"]
baseline = "audit-baseline.json"
archs = ["sm_90", "gfx942"]

[tool.pytorch-to-triton.audit.severity]
offset_may_overflow = "low"
"""

import tomllib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.audit.baseline import Baseline, read_baseline
from pytorch_to_triton.audit.find_files import FilesToAudit, find_files, root_of
from pytorch_to_triton.audit.registry import Rule, all_rules
from pytorch_to_triton.audit.report.render import Format, format_of
from pytorch_to_triton.command_line import NOT_REPEATED, Option
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.architectures import architecture
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.results import refuse_foreign_file
from pytorch_to_triton.schema.finding import Category, Severity
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value

TABLE = ("tool", "pytorch-to-triton", "audit")
EVERYWHERE = (Path("/"),)


class AuditSettings(Value):
    """A project's settings; a request overrides them."""

    root: Path
    """The project's folder."""
    fail_on: Severity = "medium"
    disable: tuple[str, ...] = ()
    """Rules to leave out."""
    severity: dict[str, Severity] = Field(default_factory=dict)
    """Severities that replace the rules' own."""
    exclude: tuple[str, ...] = ()
    """Patterns of paths to leave out, relative to the audited folders."""
    baseline: Path | None = None
    archs: tuple[str, ...] = ()
    """GPUs to compile for."""


def settings_for(path: Path, within: Iterable[Path] = EVERYWHERE) -> AuditSettings:
    """The settings of the project around a path; the usual ones where its file lies in none of `within`.

    Raises BadInput for an unusable table.
    """
    root = root_of(path.absolute())
    file = root / "pyproject.toml"
    if not places.lies_in(file, within):
        return AuditSettings(root=root)
    try:
        table = tomllib.loads(places.read_regular(file).decode()) if file.exists() else {}
        for name in TABLE:
            table = table.get(name, {})
            if not isinstance(table, dict):
                raise BadInput(
                    f"{file}: {name} is not a table.", "Write it as [tool.pytorch-to-triton.audit]."
                )
        settings = AuditSettings.model_validate({**table, "root": root})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{file} cannot be read: {why}.", "Fix it, then audit again.") from error
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        known = ", ".join(field for field in AuditSettings.model_fields if field != "root")
        raise BadInput(
            f"{file}: [{'.'.join(TABLE)}] {name}: {first['msg']}.", f"The table's keys are {known}."
        ) from error
    refuse_unknown((*settings.disable, *settings.severity), str(file))
    if settings.baseline is not None:
        settings = settings.model_copy(update={"baseline": root / settings.baseline})
    return settings


def refuse_unknown(names: tuple[str, ...], where: str) -> None:
    """Raises BadInput for a name that is not a rule's, with similar names as the hint."""
    known = [rule.name for rule in all_rules()]
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=3, cutoff=0.4)
            hint = f"Did you mean {', '.join(near)}?" if near else "references/auditing_rules.md lists them."
            raise BadInput(f"{where}: there is no rule {name}.", hint)


TOOL = "audit"
"""The name of the writer in the marker beside a document."""
ARCHS = ("sm_90", "gfx942")
"""GPUs to compile for by default: one of each maker."""

Depth = Literal["auto", "source", "compiled", "measured"]
"""How far an audit goes; each includes the one before. auto: measured for named files that declare their
inputs, or where a reference is named; else source."""
Choose = Callable[[], Awaitable[Runtime]]
"""Decides what kernels run on, which takes seconds."""


class AuditRequest(Value):
    """What to audit, and how."""

    targets: tuple[Target, ...]
    """Files and folders; `path.py:name` names the function that is called where kernels are run."""
    evidence: Depth = "auto"
    focus: Category | None = None
    """Only rules of this category."""
    rules: Annotated[tuple[str, ...], Option("rule")] = ()
    """Only these; none: all."""
    severity: Severity = "info"
    """The least severity in the result; verdict, counts and baseline cover all."""
    most: Annotated[int | None, NOT_REPEATED] = None
    """At most this many findings in the result; document, verdict and counts cover all."""
    fail_on: Severity | None = None
    """The least severity that makes the verdict faulty; None: the project's setting, else medium."""
    reference: Target | None = None
    """What kernels are compared with; None: the reference in their own file."""
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the files; they win."""
    points: Annotated[tuple[Point, ...], NOT_REPEATED] = ()
    """Sizes to compile at; none: the largest declared ones."""
    archs: Annotated[tuple[str, ...], Option("arch")] = ()
    """GPUs to compile for; none: the project's setting, else one of each maker."""
    baseline: Path | None = None
    """A file of known findings; None: the project's setting."""
    update_baseline: Annotated[bool, NOT_REPEATED] = False
    """Rewrite the baseline with all findings."""
    format: Annotated[Format | None, NOT_REPEATED] = None
    """Format of the document to write; None: by the suffix of `into`, else no document."""
    into: Annotated[Path | None, NOT_REPEATED] = None
    """The file that the document is written to; None: it is in the report."""
    force: Annotated[bool, NOT_REPEATED] = False
    """Whether `into` may be a file that no audit wrote."""
    seconds: Annotated[float, Option("timeout")] = 120.0
    """Time limit of one call."""
    within: Annotated[tuple[Path, ...], NOT_REPEATED] = EVERYWHERE
    """Real paths of folders: a project's settings, and the baseline that they name, count only in these."""


@dataclass(frozen=True)
class AuditPlan:
    """A request with its defaults resolved."""

    request: AuditRequest
    settings: AuditSettings
    """Of the project that the first target lies in."""
    root: Path
    """What paths are relative to: the folder of the baseline's project, else of the first target's."""
    files: FilesToAudit
    rules: tuple[Rule, ...]
    archs: tuple[str, ...]
    fail_on: Severity
    baseline_file: Path | None
    baseline: Baseline
    format: Format | None


def make_plan(request: AuditRequest) -> AuditPlan:
    """Resolves the defaults. Raises BadInput for unusable settings, and TargetNotFound."""
    refuse_unknown(request.rules, "rule")
    paths = [target.path for target in request.targets]
    settings = settings_for(paths[0], request.within)
    archs = request.archs or settings.archs or ARCHS
    for arch in archs:
        architecture(arch)
    if request.into is not None:
        refuse_foreign_file(request.into, TOOL, force=request.force)
    file = request.baseline or settings.baseline
    if file is not None and not places.lies_in(file, request.within):
        raise BadInput(
            f"The baseline {file}, which {settings.root / 'pyproject.toml'} names, lies outside of the "
            f"folders that may be used: {', '.join(map(str, request.within))}.",
            "Name one in them with --baseline, or change that setting.",
        )
    return AuditPlan(
        request=request,
        settings=settings,
        root=root_of(file.resolve()) if file else settings.root,
        files=find_files(paths, settings.exclude),
        rules=rules_of(request, settings),
        archs=archs,
        fail_on=request.fail_on or settings.fail_on,
        baseline_file=file,
        baseline=baseline_of(request, file),
        format=request.format or (format_of(request.into) if request.into else None),
    )


def rules_of(request: AuditRequest, settings: AuditSettings) -> tuple[Rule, ...]:
    """The requested rules. Raises BadInput where there is none."""
    rules = tuple(
        rule
        for rule in all_rules()
        if request.focus in (None, rule.category)
        and (rule.name in request.rules if request.rules else rule.name not in settings.disable)
    )
    if not rules:
        raise BadInput(
            f"No enabled rule is about {request.focus}.", "Name rules of that category, or no category."
        )
    return rules


def baseline_of(request: AuditRequest, file: Path | None) -> Baseline:
    """The known findings; none where there is no file yet."""
    if file is None:
        if request.update_baseline:
            raise BadInput("There is no baseline to update.", "Name its file with --baseline.")
        return Baseline()
    return Baseline() if request.update_baseline and not file.exists() else read_baseline(file)

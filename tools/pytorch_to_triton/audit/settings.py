"""A project's settings for audits: the table [tool.pytorch-to-triton.audit] of its pyproject.toml.

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
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field, ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.audit.find_files import root_of
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.finding import Severity
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

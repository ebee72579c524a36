"""An audit's report in the format that was asked for."""

from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from pytorch_to_triton import places
from pytorch_to_triton.audit.report.html import html
from pytorch_to_triton.audit.report.markdown import markdown
from pytorch_to_triton.audit.report.sarif import sarif
from pytorch_to_triton.audit.source import decode
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.finding import AuditReport

Format = Literal["markdown", "json", "sarif", "html"]
SUFFIXES: dict[str, Format] = {
    ".md": "markdown",
    ".json": "json",
    ".sarif": "sarif",
    ".html": "html",
}


def format_of(path: Path) -> Format:
    """The format that a file's name stands for. Raises BadInput where it stands for none."""
    suffix = SUFFIXES.get(path.suffix.lower())
    if suffix is None:
        raise BadInput(
            f"The name {path.name} does not say which format to write.",
            f"End it in one of {', '.join(SUFFIXES)}, or name a format: {', '.join(get_args(Format))}.",
        )
    return suffix


def render(report: AuditReport, form: Format, root: Path) -> str:
    """The document; paths in SARIF are relative to `root`."""
    match form:
        case "markdown":
            return markdown(report)
        case "json":
            return report.model_dump_json(indent=2, exclude={"document", "written"})
        case "sarif":
            return sarif(report, root)
        case "html":
            return html(report, sources_of(report))


def sources_of(report: AuditReport) -> dict[Path, str]:
    """The files that findings lie in, but for those that are gone."""
    sources: dict[Path, str] = {}
    for path in {finding.file for finding in report.findings}:
        with suppress(OSError, ValueError, LookupError):
            sources[path] = decode(places.read_regular(path))
    return sources

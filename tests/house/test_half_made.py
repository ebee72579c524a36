"""Whoever has added half of something is told which half is missing, not shown where the program broke."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytorch_to_triton.audit import registry, rules
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.cli import main
from pytorch_to_triton_server.commands import command
from pytorch_to_triton_server.over_mcp import output_schemas
from pytorch_to_triton_server.serve import build_server
from pytorch_to_triton_server.settings import ServerSettings
from pytorch_to_triton_server.tool import Tool, ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.schema.finding import AuditReport

ROOT = Path(__file__).parents[2]


async def tour(call: ToolCall, where: str) -> "AuditReport":
    """Show somebody round."""
    raise NotImplementedError


async def guess(call: ToolCall) -> Any:
    """Answer anything."""
    raise NotImplementedError


def made(function: Any) -> Tool:
    return Tool(function, "Not yet finished")


def test_a_parameter_without_a_description_is_named_with_its_tool_and_the_form_it_needs() -> None:
    with pytest.raises(TypeError, match=r'^tour: .* where must be .* Annotated\[TYPE, Field\(description="'):
        command(made(tour))


def test_a_tool_whose_result_has_no_schema_yet_is_named_with_the_command_that_writes_one() -> None:
    with pytest.raises(Refusal, match=r"has no schema of tour\.\nRun python -m .*\.output_schemas"):
        build_server(ServerSettings(tools=(made(tour),)))


def test_the_model_of_a_tool_s_result_is_what_its_function_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_schemas, "TOOLS", (*TOOLS, made(tour), made(guess)))
    assert output_schemas.model_of("tour") is output_schemas.model_of("audit")
    with pytest.raises(TypeError, match=r'^guess: guess must return "MODEL"'):
        output_schemas.model_of("guess")


def test_a_file_in_rules_that_defines_none_ends_an_audit_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half_a_rule.py").write_text('"""It is half a rule."""\n', encoding="utf-8")
    monkeypatch.setattr(rules, "__path__", [*rules.__path__, str(tmp_path)])
    registry.all_rules.cache_clear()
    try:
        assert main(["audit", str(ROOT / "reference_kernels" / "vector_add.py"), "--evidence", "source"]) == 5
    finally:
        registry.all_rules.cache_clear()
    printed = capfd.readouterr().err
    assert "half_a_rule.py defines no rule." in printed
    assert "Traceback" not in printed

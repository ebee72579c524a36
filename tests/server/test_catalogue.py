"""The catalogue is light to import, and both faces offer what it holds."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main
from mcp import Client
from typer.core import TyperArgument, TyperGroup

from pytorch_to_triton.audit.request import AuditRequest
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.command_line import option_of, replay
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.commands import build_app
from pytorch_to_triton_server.help_page import WHOLE
from pytorch_to_triton_server.run_command import run
from pytorch_to_triton_server.tool import Tool

HEAVY = {"torch", "triton", "numpy", "httpx", "markdownify", "matplotlib"}


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a fresh Python holds after the statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def commands() -> dict[str, Any]:
    group = typer.main.get_command(build_app())
    assert isinstance(group, TyperGroup)
    flat: dict[str, Any] = {}
    for name, one in group.commands.items():
        inner = one.commands if isinstance(one, TyperGroup) else None
        flat |= {name if n == WHOLE else f"{name}_{n}": c for n, c in inner.items()} if inner else {name: one}
    return flat


def tool_named(name: str) -> Tool:
    return next(tool for tool in TOOLS if tool.name == name)


def test_both_faces_and_the_catalogue_are_light_to_import() -> None:
    loaded = modules_after("from pytorch_to_triton_server.serve import build_server\nbuild_server()")
    assert "mcp" in loaded
    assert not loaded & (HEAVY | {"typer"})
    loaded = modules_after("import pytorch_to_triton_server.catalogue")
    assert not loaded & (HEAVY | {"mcp", "typer", "rich"})
    loaded = modules_after("from pytorch_to_triton_server.cli import main\nmain(['validate', 'absent.py'])")
    assert "typer" in loaded
    assert not loaded & (HEAVY | {"mcp"})


@pytest.mark.anyio
async def test_both_faces_offer_the_same_tools_with_the_same_parameters(client: Client) -> None:
    tools = (await client.list_tools()).tools
    served = {tool.name: set(tool.input_schema["properties"]) - {"detail"} for tool in tools}
    commanded = {
        name: {p.name for p in command.params} - {"all", "json", "timings", "help"}
        for name, command in commands().items()
    }
    assert served.pop("job") == {"job_id", "action"}
    for name in ("sweep", "serve", "doctor", "completion", "install"):
        commanded.pop(name, None)
    assert served == commanded == {tool.name: {p.name for p in tool.parameters} for tool in TOOLS}


def test_only_what_is_required_is_positional() -> None:
    for tool in TOOLS:
        positional = {p.name for p in commands()[tool.name].params if isinstance(p, TyperArgument)}
        assert positional == {p.name for p in tool.parameters if p.default is inspect.Parameter.empty}


def test_arguments_are_checked_and_each_wrong_one_is_named_with_what_the_tool_takes() -> None:
    checked = tool_named("validate").check_arguments({"kernel": "a.py", "dim": ["M=1"], "timeout": "5"})
    assert checked == {"kernel": "a.py", "dim": ("M=1",), "timeout": 5.0}
    wrong = {"timeout": -1, "dims": ["M=1"], "xyz": 1, "dim": {"M": "7"}}
    with pytest.raises(BadInput) as refused:
        tool_named("validate").check_arguments({"kernel": "a.py", **wrong})
    assert sorted(refused.value.message.splitlines()) == [
        'dim: it should be a list of strings such as ["M=1,7"].',
        "dims: no such argument; did you mean dim?",
        "timeout: it should be greater than 0.",
        "xyz: no such argument.",
    ]
    assert "kernel, reference, input, dim" in refused.value.hint


def test_an_unknown_name_is_answered_with_the_one_that_was_meant_over_mcp_and_in_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for tool, given, intended in (
        ("validate", "sead", "; did you mean {}seed?"),
        ("validate", "dims", "; did you mean {}dim?"),
        ("validate", "inputs", "; did you mean {}input?"),
        ("audit", "report", "; did you mean {}into?"),
        ("audit", "zzzz", "."),
    ):
        with pytest.raises(BadInput) as refused:
            tool_named(tool).check_arguments({given: 3})
        assert f"{given}: no such argument{intended.format('')}" in refused.value.message.splitlines()
        assert run([tool, "x.py", f"--{given}", "3"]) == 2
        said = capsys.readouterr().err.splitlines()[0]
        assert said == f"error: No such option: --{given}{intended.format('--')}"


def test_a_command_that_is_printed_names_a_changed_option_once() -> None:
    request = ValidationRequest(candidate=Target(path=Path("/k.py")), seed=1, cases=("M=1", "M=3"))
    printed = replay("validate", request, seed=2, cases=())
    assert printed.endswith("validate /k.py --seed 2")


@pytest.mark.parametrize(
    ("tool", "request_type"),
    [("validate", ValidationRequest), ("benchmark", BenchmarkRequest), ("audit", AuditRequest)],
)
def test_every_option_that_a_replay_may_print_is_an_option_of_its_tool(
    tool: str, request_type: type[Value]
) -> None:
    fields = (name for name, field in request_type.model_fields.items() if not field.is_required())
    printed = {option_of(request_type, name) for name in fields if name != "options"} - {""}
    printed |= {"input", "dim", "require", "init"}
    if tool == "audit":
        printed -= {"require", "init"}  # it fills neither
    assert printed - {parameter.name for parameter in tool_named(tool).parameters} == set()

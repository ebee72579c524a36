"""What each tool's structured content looks like, kept in output_schemas.json.

The models would take 0.2 s to import and 100 kB to send: the file has every field of a result, and names
and types one level below. `python -m pytorch_to_triton_server.over_mcp.output_schemas` writes it.
"""

import ast
import inspect
import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pytorch_to_triton.errors import Refusal
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.terminal import DEFECT

Schema = dict[str, Any]
FILE = Path(__file__).with_name("output_schemas.json")
WRITE = "python -m pytorch_to_triton_server.over_mcp.output_schemas"
"""What writes the file."""
ADDED: Schema = {"cut": {"type": "object"}, "job_id": {"type": "string"}, "status": {"type": "string"}}
"""What any result may have beside its model's fields: what was left out of a long one, with the file that has
all of it; and of a call that still runs, its name for the tool job and how it stands."""


class MissingSchema(Refusal):
    """A tool that the file does not have: a defect of this project."""

    exit_code = DEFECT


def main() -> None:
    """Write the file."""
    lines = [f"{json.dumps(tool.name)}: {json.dumps(schema_of(model_of(tool.name)))}" for tool in TOOLS]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@cache
def output_schemas() -> dict[str, Schema]:
    """The schema of each tool's structured content."""
    schemas: dict[str, Schema] = json.loads(FILE.read_text(encoding="utf-8"))
    return schemas


def output_schema(tool: str) -> Schema:
    """The schema of a tool's structured content. Raises MissingSchema."""
    if tool not in output_schemas():
        raise MissingSchema(f"{FILE} has no schema of {tool}.", f"Run {WRITE}, which writes it.")
    return output_schemas()[tool]


def model_of(tool: str) -> Any:
    """The pydantic model of a tool's result: what its function is annotated to return.

    The catalogue loads no model: what the annotation names is imported for type checkers alone, so that the
    import is read from the function's file. Raises TypeError where there is none.
    """
    function = next(known.function for known in TOOLS if known.name == tool)
    model = inspect.signature(function).return_annotation
    source = ast.parse(Path(inspect.getfile(function)).read_text(encoding="utf-8"))
    imports = (node for node in ast.walk(source) if isinstance(node, ast.ImportFrom))
    modules = {alias.name: node.module for node in imports for alias in node.names}
    module = modules.get(model)
    if module is None:
        raise TypeError(
            f'{tool}: {function.__name__} must return "MODEL", and its file import MODEL from its module '
            "under TYPE_CHECKING."
        )
    return getattr(import_module(module), model)


def schema_of(model: Any) -> Schema:
    """Only `summary` and `next_step` are always there: what is at its default is left out of a result."""
    whole: Schema = model.model_json_schema(mode="serialization")
    definitions = whole.get("$defs", {})
    properties = {name: shallow(field, definitions, 1) for name, field in whole["properties"].items()}
    return {"type": "object", "properties": properties | ADDED, "required": ["summary", "next_step"]}


def shallow(field: Schema, definitions: Schema, levels: int) -> Schema:
    """A field's type, of objects the fields down to `levels`. Numbers may be infinite, which is text."""
    if "$ref" in field:
        return shallow(definitions[field["$ref"].rpartition("/")[2]], definitions, levels)
    if "anyOf" in field:
        choices = [shallow(kind, definitions, levels) for kind in field["anyOf"]]
        plain = [
            choice["type"] for choice in choices if [*choice] == ["type"] and isinstance(choice["type"], str)
        ]
        return {"type": plain} if len(plain) == len(choices) else {"anyOf": choices}
    match field.get("type"):
        case "object" if levels and "properties" in field:
            inner = {name: shallow(kind, definitions, 0) for name, kind in field["properties"].items()}
            return {"type": "object", "properties": inner}
        case "object":
            return {"type": "object"}
        case "array" if levels:
            # Of a tuple with several types, anything.
            items = shallow(field["items"], definitions, 1) if "items" in field else {}
            return {"type": "array", "items": items}
        case "number":
            return {"type": ["number", "string"]}
        case "string" if "enum" in field:
            return {"type": "string", "enum": field["enum"]}
        case str() as kind:
            return {"type": kind}
    return {}


if __name__ == "__main__":
    main()

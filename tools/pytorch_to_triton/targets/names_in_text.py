"""What a file's text says of the names in it, before anything is imported."""

import ast
import importlib.util
import re
import symtable
from difflib import get_close_matches
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.errors import TargetNotFound
from pytorch_to_triton.schema.target import Target

ADDS_NAMES = re.compile(
    r"import\s*\*|\b(exec|eval|globals|locals|vars|setattr|__dict__|__getattr__|modules|_getframe)\b"
    r"|\b__name__\b(?!\s*==)"
)
"""What may define names that a file's text does not have: then only importing it tells."""
SERVE_WITHOUT_NAME = {"reference", "Model", "run", "ModelNew"}
"""What a target without a name may be; beside `run` or ModelNew, the reference is one of the others."""
INPUT_FUNCTIONS = {"inputs", "get_inputs", "get_init_inputs"}
NAME_IT = "Name a function or an nn.Module class of the file: `path.py:name`."
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def refuse_absent_name(target: Target) -> None:
    """Raises TargetNotFound where the file's text has no such word, and nothing in it that adds names."""
    if target.name is None or (parsed := text_and_tree(target.path)) is None:
        return
    text, tree = parsed
    if ADDS_NAMES.search(text) or re.search(rf"\b{re.escape(target.name)}\b", text):
        return
    names = [node.name for node in tree.body if isinstance(node, Definition)]
    near = get_close_matches(target.name, names, cutoff=0.5)
    listed = ", ".join(f"`{name}`" for name in near or names) or "nothing"
    defined = "nearest" if near else "it defines"
    raise TargetNotFound(f"{target.path} has no `{target.name}`; {defined}: {listed}.", NAME_IT)


def with_only_function(target: Target) -> Target:
    """The target; where it has no name, with that of the one function that its file defines.

    Private functions, kernels and those for inputs do not count. A kernel file, a file with Model, one with
    several functions or a class, and one whose import may define more stay without a name.
    """
    if target.name or (parsed := text_and_tree(target.path)) is None:
        return target
    text, tree = parsed
    public = [d for d in public_definitions(tree) if d.name not in INPUT_FUNCTIONS and not is_kernel(d)]
    if len(public) != 1 or isinstance(public[0], ast.ClassDef):
        return target
    if ADDS_NAMES.search(text) or SERVE_WITHOUT_NAME & names_bound(text, target.path):
        return target
    return target.model_copy(update={"name": public[0].name})


def public_definitions(tree: ast.Module) -> list[Definition]:
    """The functions and classes of a file, in its order, without private ones."""
    return [node for node in tree.body if isinstance(node, Definition) and not node.name.startswith("_")]


def is_kernel(definition: ast.stmt) -> bool:
    """Whether a decorator makes it a kernel: `@triton.jit`."""
    decorators = getattr(definition, "decorator_list", [])
    return any("jit" in ast.unparse(decorator) for decorator in decorators)


def names_bound(text: str, path: Path) -> set[str]:
    """What the file defines, imports or assigns outside of functions and classes."""
    symbols = symtable.symtable(text, str(path), "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def text_and_tree(path: Path) -> tuple[str, ast.Module] | None:
    """A file's text, read and parsed; None where it is not Python: whoever imports it says what is wrong."""
    try:
        text = importlib.util.decode_source(places.read_regular(path))
        return text, ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None

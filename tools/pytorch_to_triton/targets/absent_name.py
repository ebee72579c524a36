"""A name that a file certainly does not define is refused by its text alone, before anything is imported."""

import ast
import re
import tokenize
from difflib import get_close_matches

from pytorch_to_triton.errors import TargetNotFound
from pytorch_to_triton.schema.target import Target

ADDS_NAMES = re.compile(
    r"import\s*\*|\b(exec|eval|globals|locals|vars|setattr|__dict__|__getattr__|modules|_getframe)\b"
    r"|\b__name__\b(?!\s*==)"
)
"""What may define names that a file's text does not have: then only importing it tells."""
NAME_IT = "Name a function or an nn.Module class of the file: `path.py:name`."


def refuse_absent_name(target: Target) -> None:
    """Raises TargetNotFound where the file's text has no such word, and nothing in it that adds names."""
    if target.name is None:
        return
    try:
        with tokenize.open(target.path) as file:
            text = file.read()
        names = [
            node.name
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # whoever imports it says what is wrong with it
    if ADDS_NAMES.search(text) or re.search(rf"\b{re.escape(target.name)}\b", text):
        return
    near = get_close_matches(target.name, names, cutoff=0.5)
    listed = ", ".join(f"`{name}`" for name in near or names) or "nothing"
    defined = "nearest" if near else "it defines"
    raise TargetNotFound(f"{target.path} has no `{target.name}`; {defined}: {listed}.", NAME_IT)

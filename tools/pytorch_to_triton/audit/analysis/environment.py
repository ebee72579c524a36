"""Environment variables that a file sets for itself."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.source import SourceFile

_ON = frozenset({"1", "true", "yes", "on"})


def switched_on(file: SourceFile, name: str) -> Iterator[ast.stmt]:
    """Each statement at the top of a file, under no condition, that switches the variable on."""
    for statement in file.tree.body:
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=owner, slice=ast.Constant(value=key))], value=value):
                pass
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=owner, attr="setdefault"),
                    args=[ast.Constant(value=key), value],
                )
            ):
                pass
            case _:
                continue
        if key == name and file.scope.path(owner) == "os.environ" and _is_on(value):
            yield statement


def _is_on(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and str(value.value).lower() in _ON

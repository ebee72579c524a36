"""A kernel file that somebody has edited, read: its parts, and its kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pytorch_to_triton.draft.file.kernel_text import KernelText


def split_kernel_file(text: str) -> KernelText:
    """A file's parts; comments above its docstring and between its imports are left out."""
    tree = ast.parse(text)
    statements = list(tree.body)
    doc = ast.get_docstring(tree) or ""
    if doc:
        statements = statements[1:]
    imports = []
    while statements and isinstance(statements[0], ast.Import | ast.ImportFrom):
        imports.append(ast.unparse(statements.pop(0)))
    first = begin(statements[0]) if statements else len(text.splitlines()) + 1
    body = "\n".join(text.splitlines()[first - 1 :]).strip("\n")
    title, _, rest = doc.partition("\n")
    return KernelText(title, rest.strip("\n"), tuple(imports), body, requirements(statements))


def requirements(statements: Sequence[ast.stmt]) -> tuple[str, ...]:
    """What the file's REQUIRES lists; nothing where it is computed."""
    for node in statements:
        match node:
            case ast.Assign(targets=[ast.Name(id="REQUIRES")], value=ast.List(elts=elements)):
                return tuple(str(e.value) for e in elements if isinstance(e, ast.Constant))
    return ()


def described_kernels(text: str) -> Iterator[str]:
    """Each kernel that no other one uses, with the first line of its docstring."""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    kernels = [node for node in functions if any("jit" in ast.unparse(d) for d in node.decorator_list)]
    parts = (part for kernel in kernels for statement in kernel.body for part in ast.walk(statement))
    used = {part.id for part in parts if isinstance(part, ast.Name)}
    for node in kernels:
        if node.name not in used:
            purpose = (ast.get_docstring(node) or "").partition("\n")[0]
            yield f"{node.name}: {purpose}" if purpose else node.name


def begin(node: ast.stmt) -> int:
    """The line in which a statement begins, its decorators included."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])

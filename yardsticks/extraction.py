"""Modules of pytorch-jit-paritybench as KernelBench's problems, each with what it needs of its file.

A file of that checkout holds modules of one project, and TESTCASES: how each is constructed and called.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

INSTALLED = frozenset({"torch", "numpy", "typing_extensions", *sys.stdlib_module_names})
"""What a module may import."""
MOST_LINES = 700
FILE = '''\
"""{cls} of {file}."""

{source}


class Model({cls}):
    def __init__(self):
        args, kwargs = {construction}
        super().__init__(*args, **kwargs)


def get_inputs():
    args, _ = {call}
    return args


def get_init_inputs():
    return []
'''
MOCKED = "_mock_config("
"""How the checkout's test cases make a configuration: an object with these attributes."""
Definition = ast.stmt


@dataclass(frozen=True)
class ModuleCase:
    """One module of a file: expressions of what its class, and its forward, are given."""

    cls: str
    construction: ast.expr
    call: ast.expr

    @property
    def inputs(self) -> int | None:
        """How many arguments forward takes, all by position; None where some have names."""
        args, kwargs = elements_of(self.call)
        return None if elements_of(kwargs) else len(elements_of(args))


def elements_of(node: ast.expr) -> list[ast.expr]:
    """The items of a list or tuple, the keys of a dict."""
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key]
    return node.elts if isinstance(node, ast.List | ast.Tuple) else []


def cases_of(tree: ast.Module) -> Iterator[ModuleCase]:
    """What the file's TESTCASES list, in order."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and names_bound(statement) == ["TESTCASES"]:
            for case in elements_of(statement.value):
                match elements_of(case):
                    case [ast.Name(id=cls), ast.Lambda(body=construction), ast.Lambda(body=call), *_]:
                        yield ModuleCase(cls, construction, call)


def problem_of(file: str, tree: ast.Module, case: ModuleCase) -> str | None:
    """The problem's text; None where the module needs what is not here, or is not called on tensors alone."""
    construction, call = ast.unparse(case.construction), ast.unparse(case.call)
    if not case.inputs or case.cls == "Model" or "_mock_layer" in construction + call:
        return None
    source = source_of(tree, case.cls)
    if source is None or source.count("\n") > MOST_LINES:
        return None
    if MOCKED in construction:
        construction = construction.replace(MOCKED, "SimpleNamespace(")
        source = f"from types import SimpleNamespace\n{source}"
    return FILE.format(cls=case.cls, file=file, source=source, construction=construction, call=call)


def source_of(tree: ast.Module, name: str) -> str | None:
    """The imports and definitions of the file that `name` needs; None where it needs another package."""
    defined: dict[str, list[Definition]] = {}
    imported: dict[str, ast.Import | ast.ImportFrom] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imported |= {alias.asname or alias.name.partition(".")[0]: statement for alias in statement.names}
        else:
            for bound in names_bound(statement):
                defined.setdefault(bound, []).append(statement)
    waiting, seen = [name], set[str]()
    imports, needed = {"import torch", "from torch import nn"}, list[Definition]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for statement in defined.get(name, ()):
            # By `name = _module` the checkout stands in for modules of the project.
            if isinstance(statement, ast.Assign) and ast.unparse(statement.value) == "_module":
                return None
            needed.append(statement)
            waiting += names_used(statement)
        if name not in defined and name in imported:
            line = import_of(imported[name], name)
            if line is None:
                return None
            imports.add(line)
    chosen = [statement for statement in tree.body if any(statement is other for other in needed)]
    return "\n\n\n".join(["\n".join(sorted(imports)), *map(ast.unparse, chosen)])


def import_of(statement: ast.Import | ast.ImportFrom, name: str) -> str | None:
    """The import that binds this name alone; None for a package that is not here."""
    alias = next(a for a in statement.names if (a.asname or a.name.partition(".")[0]) == name)
    if isinstance(statement, ast.Import):
        return ast.unparse(ast.Import([alias])) if is_installed(alias.name) else None
    module = statement.module or ""
    return ast.unparse(ast.ImportFrom(module, [alias], 0)) if is_installed(module) else None


def is_installed(module: str) -> bool:
    return module.partition(".")[0] in INSTALLED


def names_bound(statement: ast.stmt) -> list[str]:
    """What a statement at the top of a file defines."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def names_used(statement: ast.stmt) -> list[str]:
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]

"""The house keeps its shape: floors, names, docstrings, and a server that does not load torch."""

import ast
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "tools" / "pytorch_to_triton", ROOT / "server" / "pytorch_to_triton_server")
DRAFT = SOURCES[0] / "draft"
MODULES = sorted(file for source in SOURCES for file in source.rglob("*.py"))
LAUNCHER = sorted((ROOT / "server" / "pytorch_to_triton_launcher").glob("*.py"))
DUMPING_GROUNDS = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}


@cache
def tree_of(module: Path) -> ast.Module:
    """A module's syntax tree, read once for all tests."""
    return ast.parse(module.read_text(encoding="utf-8"))


def test_every_module_says_what_it_is_for() -> None:
    trees = {module: tree_of(module) for module in (*MODULES, *LAUNCHER)}
    assert [str(module) for module, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []


def test_no_two_classes_have_one_name() -> None:
    """But for those of worker/wire/, which bear the names of what they become.

    The drafter is a compiler, with a compiler's words: they are unique among themselves.
    """
    places: dict[tuple[bool, str], list[str]] = {}
    for module in MODULES:
        if module.parent.name == "wire":
            continue
        for node in tree_of(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault((DRAFT in module.parents, node.name), []).append(
                    str(module.relative_to(ROOT))
                )
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_no_module_is_a_dumping_ground() -> None:
    places = [
        module for module in (*MODULES, *LAUNCHER) if {module.stem, module.parent.name} & DUMPING_GROUNDS
    ]
    assert places == []


def test_a_source_root_cannot_be_imported_under_its_own_name() -> None:
    assert not any((ROOT / root / "__init__.py").exists() for root in ("tools", "server"))


def test_the_floors_name_every_package() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers" and "containers" not in c)
    floors = {module.strip() for layer in layers for module in layer.split("|")}
    package = SOURCES[0]
    packages = {f"{package.name}.{folder.parent.name}" for folder in package.glob("*/__init__.py")}
    modules = {
        f"{package.name}.{module.stem}" for module in package.glob("*.py") if module.stem != "__init__"
    }
    assert floors == (packages | modules | {SOURCES[1].name}) - {f"{package.name}.worker"}


def test_no_function_reads_a_name_of_its_module_that_a_comprehension_in_it_binds() -> None:
    """CPython 3.12.3 to 3.13.0 take it for unbound where another comprehension of the function reads it."""
    assert [str(m.relative_to(ROOT)) for m in (*MODULES, *LAUNCHER) if names_bound_and_read(m)] == []


def names_bound_and_read(module: Path) -> set[str]:
    tree = tree_of(module)
    defined = {
        n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    found = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for name in defined & set(names_of_comprehensions(function)):
                inside = [c for c in comprehensions(function) if name in names_of_comprehensions(c)]
                known = {id(part) for comprehension in inside for part in ast.walk(comprehension)}
                read = (n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name)
                found |= {name for node in read if id(node) not in known}
    return found


def comprehensions(tree: ast.AST) -> list[ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp]:
    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def names_of_comprehensions(tree: ast.AST) -> list[str]:
    targets = [part.target for node in comprehensions(tree) for part in node.generators]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]

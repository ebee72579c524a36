"""What replaces the reference in a candidate's copy of the file: it can be named, but not called."""

import ast
import copy

MESSAGE = "the reference is not available while the candidate runs"
ERROR = f"type('ReferenceWithheld', (RuntimeError,), {{}})({MESSAGE!r})"
"""The validation knows it by the name of its type."""
RAISE = f"raise {ERROR}"
THROW = f"(_ for _ in ()).throw({ERROR})"
INDENT = "    "
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def stub(node: Definition, tree: ast.Module) -> list[tuple[ast.stmt, str]]:
    """The parts of the definition to replace, and by what, as if they stood at the margin.

    No replacement has more lines than its part. A class from which another one in the file inherits keeps
    what constructs it and loses its forward.
    """
    if not isinstance(node, ast.ClassDef):
        return [(node, stubbed_function(node))]
    if is_inherited(node, tree):
        return [(method, stubbed_function(method)) for method in computing(node, tree)]
    return [(node, stubbed_class(node, tree))]


def assigned_stub(name: str) -> str:
    """A function of any arguments as an assignment on one line."""
    return f"{name} = lambda *args, **kwargs: {THROW}"


def stubbed_function(node: Function) -> str:
    doc = ast.get_docstring(node, clean=False)
    parts = [RAISE] if doc is None else [repr(doc), RAISE]
    return fitting(node, parts, parts) or assigned_stub(node.name)


def stubbed_class(node: ast.ClassDef, tree: ast.Module) -> str:
    """Without its members, and without bases from the same file: they may be the reference as well."""
    own = {part.name for part in tree.body if isinstance(part, Definition)}
    bare = copy.copy(node)
    bare.bases = [base for base in node.bases if not own & names(base)]
    bare.keywords = []
    doc = ast.get_docstring(node, clean=False)
    parts = [] if doc is None else [repr(doc)]
    constructors = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"]
    constructor = header(constructors[-1]) if constructors else "def __init__(self, *args, **kwargs):"
    on_one_line = [*parts, f"__init__ = lambda self, *args, **kwargs: {THROW}"]
    return fitting(bare, [*parts, f"{constructor} {RAISE}"], on_one_line) or assigned_stub(node.name)


def fitting(node: Definition, parts: list[str], on_one_line: list[str]) -> str:
    """The header with the parts below it, or beside it where lines are few; empty where neither fits."""
    assert node.end_lineno is not None
    most = node.end_lineno - node.lineno
    below = "\n".join([header(node), *(INDENT + part for part in parts)])
    beside = f"{header(node)} {'; '.join(on_one_line)}"
    return next((text for text in (below, beside) if text.count("\n") <= most), "")


def header(node: Definition) -> str:
    """`def name(...):` or `class name(...):` without decorators."""
    bare = copy.copy(node)
    bare.decorator_list = []
    bare.body = [ast.Pass()]
    return ast.unparse(bare).strip().rpartition("\n")[0]


def is_inherited(node: ast.ClassDef, tree: ast.Module) -> bool:
    return any(
        node.name in names(base)
        for part in ast.walk(tree)
        if isinstance(part, ast.ClassDef)
        for base in part.bases
    )


def computing(node: ast.ClassDef, tree: ast.Module) -> list[Function]:
    """forward, and the methods that only it calls."""
    methods = {part.name: part for part in node.body if isinstance(part, Function)}
    reached, waiting = set(), ["forward"] if "forward" in methods else []
    while waiting:
        name = waiting.pop()
        reached.add(name)
        called = attributes(methods[name]) & methods.keys()
        waiting += called - reached - {"__init__"}
    inside = {id(part) for name in reached for part in ast.walk(methods[name])}
    elsewhere = {p.attr for p in ast.walk(tree) if isinstance(p, ast.Attribute) and id(p) not in inside}
    return [methods[name] for name in reached if name == "forward" or name not in elsewhere]


def attributes(node: ast.AST) -> set[str]:
    return {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}

"""What replaces the reference in a candidate's copy of the file: it can be named, but not called."""

import ast
import copy

MESSAGE = "the reference is not available while the candidate runs"
ERROR = f"type('ReferenceWithheld', (RuntimeError,), {{}})({MESSAGE!r})"
"""The validation knows it by the name of its type."""
RAISE = f"raise {ERROR}"
THROW = f"(_ for _ in ()).throw({ERROR})"
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def stub(node: Definition, tree: ast.Module) -> list[tuple[ast.stmt, str]]:
    """The parts of the definition to replace, and by what: a line each. A class from which another one in the
    file inherits keeps what constructs it and loses its forward.
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
    return beside_header(node, [*docstring(node), RAISE])


def stubbed_class(node: ast.ClassDef, tree: ast.Module) -> str:
    """Without its members, and without bases from the same file: they may be the reference as well."""
    own = {part.name for part in tree.body if isinstance(part, Definition)}
    bare = copy.copy(node)
    bare.bases = [base for base in node.bases if not own & names(base)]
    bare.keywords = []
    constructors = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"]
    taken = parameters(constructors[-1]) if constructors else "self, *args, **kwargs"
    return beside_header(bare, [*docstring(node), f"__init__ = lambda {taken}: {THROW}"])


def docstring(node: Definition) -> list[str]:
    """Its source, where there is one."""
    doc = ast.get_docstring(node, clean=False)
    return [] if doc is None else [repr(doc)]


def parameters(node: ast.FunctionDef) -> str:
    """As a lambda has them."""
    bare = copy.deepcopy(node.args)
    for part in ast.walk(bare):
        if isinstance(part, ast.arg):
            part.annotation = None
    return ast.unparse(bare)


def beside_header(node: Definition, parts: list[str]) -> str:
    """The definition on one line; an assigned function where it does not fit there."""
    text = f"{header(node)} {'; '.join(parts)}"
    return assigned_stub(node.name) if "\n" in text else text


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

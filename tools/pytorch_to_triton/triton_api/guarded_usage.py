"""Uses that a file guards, by try, hasattr or a version: there, a missing name is no mistake."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_IMPORT_ERRORS = {"ImportError", "ModuleNotFoundError"}
_PROBES = {"hasattr", "getattr", "signature", "find_spec"}
_CATCHING = {"raises", "suppress"}
_FLAG_NAME = re.compile(
    r"version|support|above|triton_|_triton|is_(hip|rocm|xpu|npu|musa|cpu)", re.IGNORECASE
)
"""In the names of flags and functions that distinguish versions of Triton, or machines."""
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True)
class GuardedUsage:
    """The places and the names that are not checked."""

    places: frozenset[int]
    """The ids of syntax nodes."""
    names: frozenset[str]
    """Names and keywords that the file asks for, or provides itself."""

    def covers(self, node: ast.AST, name: str) -> bool:
        """Whether this use of the name may be meant for another Triton."""
        return id(node) in self.places or name in self.names


def guarded_usage(tree: ast.Module) -> GuardedUsage:
    """What a file guards: by try, by hasattr, by a comparison of versions."""
    nodes = tuple(ast.walk(tree))
    flags = frozenset(_flags(nodes))
    guarded = (node for flag in nodes for node in _guarded_nodes(flag, flags))
    places = {id(node) for root in guarded for node in ast.walk(root)}
    return GuardedUsage(frozenset(places), frozenset(_probed_names(nodes)))


def _guarded_nodes(node: ast.AST, flags: frozenset[str]) -> Iterator[ast.AST]:
    """The parts of this node that are only reached, or only matter, where the name is there."""
    match node:
        case ast.Try(body=body, handlers=handlers):
            yield from handlers
            caught = {name for handler in handlers for name in _caught(handler)}
            if caught - _IMPORT_ERRORS:
                yield from body
            elif caught:
                yield from _imports(body)
        case ast.With(items=items):
            if any(_last_name(item.context_expr) in _CATCHING for item in items):
                yield node
        case ast.If(test=test) | ast.IfExp(test=test):
            if _is_flag(test, flags):
                yield node
            elif isinstance(node, ast.If):
                # Whatever the condition is, it decides whether the module is imported.
                yield from _imports([*node.body, *node.orelse])
        case ast.FunctionDef(decorator_list=decorators) | ast.ClassDef(decorator_list=decorators):
            if any(_is_flag(decorator, flags) for decorator in decorators):
                yield node
    for field in ("body", "orelse"):
        if isinstance(statements := getattr(node, field, None), list):
            yield from _behind_an_exit(statements, flags)


def _imports(body: list[ast.stmt]) -> Iterator[ast.AST]:
    return (node for part in body for node in ast.walk(part) if isinstance(node, ast.Import | ast.ImportFrom))


def _behind_an_exit(body: list[ast.stmt], flags: frozenset[str]) -> Iterator[ast.AST]:
    """The statements that follow `if OLD: return ...`."""
    for index, statement in enumerate(body):
        match statement:
            case ast.If(test=test, body=[*_, last]) if isinstance(last, _EXITS) and _is_flag(test, flags):
                yield from body[index + 1 :]


def _probed_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names in hasattr(tl, "gather") and `"cache_results" in parameters`, and those that are assigned."""
    for node in nodes:
        match node:
            case ast.Call(args=[_, ast.Constant(value=str(name)), *_]) if _last_name(node) in _PROBES:
                yield name
            case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In() | ast.NotIn()]):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def _flags(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The file's names that hold or return a property of the installed Triton; imported flags."""
    flags: set[str] = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_flag(value, flags):
                flags.add(name)
            case ast.FunctionDef(name=name, body=body) if _returns_a_flag(body, flags):
                flags.add(name)
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] != "triton":
                flags |= {imported.asname or imported.name for imported in names if imported.name.isupper()}
    yield from flags


def _returns_a_flag(body: list[ast.stmt], flags: Iterable[str]) -> bool:
    returned = (node.value for part in body for node in ast.walk(part) if isinstance(node, ast.Return))
    return any(value is not None and _is_flag(value, flags) for value in returned)


def _is_flag(test: ast.expr, flags: Iterable[str]) -> bool:
    """Whether an expression depends on the installed Triton or on the machine."""
    for node in ast.walk(test):
        name = _last_name(node)
        if name and (name in flags or name in _PROBES or _FLAG_NAME.search(name)):
            return True
    return False


def _caught(handler: ast.ExceptHandler) -> set[str]:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {_last_name(kind) if kind else "everything" for kind in kinds}


def _last_name(node: ast.AST) -> str:
    """`raises` for pytest.raises(...); empty for what is no name, attribute or call of one."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return _last_name(function)
    return ""

"""The copies of a kernel file that the processes of a validation load instead of the file itself.

The candidate's copy lacks the reference, the oracle's lacks everything but the reference; both keep the
line numbers. Which names a statement uses is read from its bytecode, so that a parameter or local variable
is not taken for the module's variable of the same name.
"""

import ast
import dis
import hashlib
import io
import tokenize
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType

from .stub import assigned_stub, stub

READS = {
    "LOAD_NAME",
    "LOAD_GLOBAL",
    "LOAD_FROM_DICT_OR_GLOBALS",
    "STORE_GLOBAL",
    "DELETE_NAME",
    "DELETE_GLOBAL",
}
OPAQUE = {"globals", "locals", "vars", "dir", "exec", "eval"}
"""Builtins that reach the file's names without naming them."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Statement:
    """A statement of the file's top level."""

    node: ast.stmt
    binds: frozenset[str]
    """The module's names that it sets."""
    uses: frozenset[str]
    """The module's names, and builtins, that it or the functions in it may read."""

    @property
    def defines(self) -> bool:
        """Whether it does nothing but bind plain names, so that it can be removed with them."""
        match self.node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return True
            case ast.Assign(targets=targets):
                return all(is_plain(target) for target in targets)
            case ast.AugAssign(target=ast.Name()) | ast.AnnAssign(target=ast.Name(), value=ast.expr()):
                return True
        return False

    @property
    def imports(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @cached_property
    def changes(self) -> frozenset[str]:
        """Names whose value it changes in place: `x[i] = ...` and `x.append(...)`."""
        if isinstance(self.node, Function | ast.ClassDef):
            return frozenset()
        changed = set()
        for part in ast.walk(self.node):
            match part:
                case ast.Subscript(value=value, ctx=ast.Store()) | ast.Call(func=ast.Attribute(value=value)):
                    changed.add(innermost(value))
        return frozenset(changed - {""})

    @cached_property
    def is_opaque(self) -> bool:
        """Whether it may use names of the file that it does not spell."""
        return bool(self.uses & OPAQUE) or any(is_of_sys(part, "modules") for part in ast.walk(self.node))

    @cached_property
    def sets_import_path(self) -> bool:
        definition = isinstance(self.node, Function | ast.ClassDef)
        return not definition and any(is_of_sys(part, "path") for part in ast.walk(self.node))


Edit = tuple[int, int, str]
"""What to put in place of the bytes from the first number to the second."""


class SourceText:
    """A source as UTF-8, in which the positions of syntax nodes are found."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self.lines = [0]
        for line in self.data.split(b"\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """First byte and the one after the last, decorators included."""
        decorators = getattr(node, "decorator_list", [])
        line = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.lines[line - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def replacing(self, node: ast.stmt, text: str) -> Edit:
        """The statement replaced by a line of text."""
        start, end = self.span(node)
        line = self.lines[node.lineno - 1]
        margin = "\n" + self.data[line : line + node.col_offset].decode()
        # Decorators go; what they decorated stays on its line.
        above = self.data.count(b"\n", start, max(start, line))
        left = self.data.count(b"\n", start, end) - above
        followed = self.data[end:].partition(b"\n")[0].lstrip().startswith(b";")
        line_ends = (" \\\n" if followed else "\n") * left
        return start, end, margin * above + text + line_ends

    def appending(self, node: ast.stmt, text: str) -> Edit:
        _, end = self.span(node)
        return end, end, f"; {text}"

    def edited(self, edits: Iterable[Edit]) -> str:
        data = self.data
        for start, end, text in sorted(edits, reverse=True):
            data = data[:start] + text.encode() + data[end:]
        return data.decode()


def without(source: str, roots: Collection[str], keep: Collection[str]) -> str:
    """The source for the candidate's process: `roots`, and the definitions that only they reach, are gone.

    A root that the file defines stays as a stub with its signature and docstring, which raises RuntimeError
    when it is called. Names in `keep` are no roots. A source that is not valid Python is returned as it is.
    """
    source = normalised(source)
    tree = parsed(source)
    if tree is None:
        return source
    gone = frozenset(roots) - frozenset(keep)
    before = statements(tree)
    text = SourceText(source)
    stubbed = text.edited(stubs(text, tree, gone))
    if any(is_star(part) for part in ast.walk(tree)) or any(s.is_opaque for s in before):
        return stubbed
    reached = frozenset().union(*(s.uses for s in reach(before, gone)))
    rest = parsed(stubbed)
    assert rest is not None
    after = statements(rest)
    fixed = gone | frozenset(keep)
    doubtful = [s for s in after if s.defines and s.binds <= reached and not s.binds & fixed]
    wanted = frozenset().union(*(s.uses for s in after if s not in doubtful))
    saved = reach(doubtful, wanted)
    remaining = SourceText(stubbed)
    return remaining.edited(remaining.replacing(s.node, "pass") for s in doubtful if s not in saved)


def only(source: str, roots: Collection[str]) -> str:
    """The source for the oracle's process: imports, changes of sys.path, and what `roots` reach.

    Other top-level statements become `pass`: calls, assignments to attributes, what the candidate alone uses.
    A source that is not valid Python, or a root that may use names without spelling them, keeps it all.
    """
    source = normalised(source)
    tree = parsed(source)
    if tree is None:
        return source
    found = statements(tree)
    always = [s for s in found if s.imports or s.sets_import_path]
    wanted = frozenset(roots).union(*(s.uses for s in always))
    chosen = [*always, *reach([s for s in found if s not in always], wanted)]
    if any(s.is_opaque for s in chosen):
        return source
    docstring = tree.body[:1] if ast.get_docstring(tree, clean=False) is not None else []
    stays = {id(s.node) for s in chosen} | {id(node) for node in docstring}
    text = SourceText(source)
    blanked = [s for s in found if id(s.node) not in stays]
    lost = {name for s in blanked for name in s.binds} - {name for s in chosen for name in s.binds}
    return text.edited(text.replacing(s.node, "pass") for s in blanked) + absent(lost)


def absent(names: Collection[str]) -> str:
    """Lines at a file's end that let other files of its package import names which are gone from it."""
    if not names:
        return ""
    return (
        "\n\ndef __getattr__(name):\n"
        f"    if name in {sorted(names)!r}:\n"
        "        return None\n"
        "    raise AttributeError(name)\n"
    )


def stage(path: Path, source: str, folder: Path) -> Path:
    """Write `source`, a copy of `path`, into a folder of its own below `folder`; the staged file.

    `__file__` in it becomes the original's path, by which it may find data and modules.
    """
    staged = folder / hashlib.sha256(str(path).encode()).hexdigest()[:16] / path.name
    staged.parent.mkdir(parents=True, exist_ok=True)
    source = with_file_name(normalised(source), path)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source.encode()).readline)
    except SyntaxError:
        encoding = "utf-8"
    staged.write_bytes(source.encode(encoding, errors="replace"))
    return staged


def with_file_name(source: str, path: Path) -> str:
    tree = parsed(source)
    if tree is None:
        return source
    text = SourceText(source)
    # Before Python 3.12, what stands inside an f-string has no exact position.
    formatted = {id(n) for part in ast.walk(tree) if isinstance(part, ast.JoinedStr) for n in ast.walk(part)}
    spans = [
        text.span(part)
        for part in ast.walk(tree)
        if isinstance(part, ast.Name)
        and part.id == "__file__"
        and isinstance(part.ctx, ast.Load)
        and id(part) not in formatted
    ]
    return text.edited((start, end, repr(str(path))) for start, end in spans)


def normalised(source: str) -> str:
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def parsed(source: str) -> ast.Module | None:
    """The syntax tree; None where Python cannot compile the source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
            compile(tree, "<staged>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    return tree


def statements(tree: ast.Module) -> list[Statement]:
    """The tree's top level with what each statement binds and uses."""
    found = []
    for node in tree.body:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(ast.Module([node], []), "<staged>", "exec", dont_inherit=True)
        binds = {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_NAME", "DELETE_NAME")}
        uses = {i.argval for part in codes(code) for i in dis.get_instructions(part) if i.opname in READS}
        uses.update(names_in_annotations(node))
        if "__all__" in binds:
            uses.update(texts(node))
        found.append(Statement(node, frozenset(binds), frozenset(uses)))
    return found


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def names_in_annotations(node: ast.AST) -> Iterator[str]:
    """Names in annotations, those in quotes and those of local variables included."""
    for part in ast.walk(node):
        annotation = getattr(part, "annotation", None) or getattr(part, "returns", None)
        if not isinstance(annotation, ast.expr):
            continue
        quoted = [tree for text in texts(annotation) if (tree := parsed(text)) is not None]
        for expression in (annotation, *quoted):
            yield from (name.id for name in ast.walk(expression) if isinstance(name, ast.Name))


def texts(node: ast.AST) -> list[str]:
    constants = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def reach(found: list[Statement], names: frozenset[str]) -> list[Statement]:
    """The statements that bind or change one of `names`, or a name that such a statement uses."""
    assigned = frozenset().union(*(s.binds for s in found if s.defines))
    reached: list[Statement] = []
    waiting = list(found)
    while new := [s for s in waiting if (s.binds | s.changes & assigned) & names]:
        reached += new
        waiting = [s for s in waiting if s not in new]
        names = names.union(*(s.uses for s in new))
    return reached


def stubs(text: SourceText, tree: ast.Module, gone: frozenset[str]) -> Iterator[Edit]:
    """Put stubs in the place of what binds a name in `gone`, on the top level or in a block there."""
    for node in module_level(tree):
        if isinstance(node, Function | ast.ClassDef):
            if node.name in gone:
                for part, replacement in stub(node, tree):
                    yield text.replacing(part, replacement)
            continue
        names = [name for name in bound(node) if name in gone]
        if not names:
            continue
        replacement = "; ".join(assigned_stub(name) for name in names)
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        whole = not imports and set(names) == set(bound(node))
        yield text.replacing(node, replacement) if whole else text.appending(node, replacement)


def module_level(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements in the scope of the module: also those in its if, try, with, for and match blocks."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(
            child, Function | ast.ClassDef
        ):
            yield from module_level(child)


def bound(node: ast.stmt) -> list[str]:
    """The names that an assignment to plain names, or an import, binds."""
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
        case ast.Assign(targets=targets) if all(is_plain(target) for target in targets):
            return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        case ast.AugAssign(target=ast.Name(id=name)) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def is_plain(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(is_plain(item) for item in target.elts)
    return isinstance(target, ast.Name)


def is_star(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.names[0].name == "*"


def is_of_sys(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="sys"), attr=attribute):
            return attribute == name
    return False


def innermost(value: ast.expr) -> str:
    """`a` of `a.b[c]`; empty where it does not start with a name."""
    while isinstance(value, ast.Attribute | ast.Subscript):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""

"""The user's function as the drafted file's `reference`: copied from the source, with all that it needs."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytorch_to_triton.draft.file.lines import WIDTH, tuple_text
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.schema.description import Parameter

TAKEN = frozenset({"run", "reference", "INPUTS", "DIMS", "REQUIRES", "COMPARE", "triton", "tl", "libdevice"})
"""Names that a drafted file defines itself."""


@dataclass(frozen=True)
class Reference:
    """Source lines for the drafted file."""

    imports: tuple[str, ...]
    definitions: tuple[str, ...]
    """What the function needs from its file, then `reference` itself."""
    parameters: str
    """The signature's parameters, as source."""


@dataclass(frozen=True)
class MadeModule:
    """A module as a drafted file makes and calls it."""

    state: Mapping[str, str]
    """Arguments for its parameters and buffers -> their keys in the state_dict."""
    constructed: str
    """The expression that makes it, in the mode in which it is called."""
    parameters: Sequence[Parameter] = ()
    """Of its call, which count where a class of another file, such as nn.Sequential, defines forward."""
    needs_memory: bool = False
    """It cannot be made on the meta device."""
    unsaved: Sequence[str] = ()
    """Its buffers that are no arguments, by their names."""
    attributes: Sequence[str] = ()
    """Those of both whose names are plain attributes."""
    beside: str = ""
    """A tensor argument, on whose device they have to be; empty where none is known."""


def function_reference(
    text: str,
    name: str,
    local: frozenset[str] = frozenset(),
    types: Collection[str] = (),
    called: Sequence[Parameter] = (),
) -> Reference:
    """`reference` out of the function `name` in a file's text, and the `types` of its inputs.

    `called` are the parameters of what the name holds, which a decorator may have changed. `local` are the
    top-level modules of the file's own project. A drafted file lies elsewhere and must load without them, so
    `reference` imports them itself, when it is called.
    """
    tree = ast.parse(text)
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    if name not in functions:
        raise NotConvertible(
            f"{name} is not defined by a plain `def` at the top level of its file.",
            "Give the function that does the computing, not something that is made at run time.",
        )
    function = functions[name]
    needed = _needed(tree, function, types)
    own = [n for n in needed if _top(n) in local]
    needed = [n for n in needed if n not in own]
    _refuse_shared(own, needed)
    source = _importing(_renamed(text, function), _imports([*own, function]))
    return Reference(
        _imports([*needed, function]),
        (*_definitions(text, needed), source),
        _signature(function.args, called),
    )


def module_reference(
    text: str,
    name: str,
    made: MadeModule,
    local: frozenset[str] = frozenset(),
    types: Collection[str] = (),
) -> Reference:
    """`reference` that calls the module class `name` with its state as arguments, and the input `types`."""
    tree = ast.parse(text)
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    if name not in classes:
        raise NotConvertible(
            f"{name} is not defined by a `class` at the top level of its file.",
            "Name a class that the file itself defines.",
        )
    arguments = _of_forward(forward_of(classes, name), made.parameters)
    given = _passed_on(arguments)
    parameters = ast.unparse(_with_state(arguments, made.state))
    own = _own_names({*made.state, *(a.arg for a in ast.walk(arguments) if isinstance(a, ast.arg))})
    source = "\n".join(
        [
            f"def reference({parameters}):",
            f"    {own['module']} = {MODULE}()",
            *_unsaved(made, own),
            *_called(made, given, own),
        ]
    )
    needed = [classes[name], *_needed(tree, classes[name], types)]
    if "get_init_inputs" in made.constructed:
        initial = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_init_inputs"]
        needed += [*initial, *(n for start in initial for n in _needed(tree, start))]
    _refuse_shared([n for n in needed if _top(n) in local], needed)
    needed = [n for n in tree.body if n in needed]
    imports = dict.fromkeys((*_imports(needed), "import functools"))
    return Reference(tuple(imports), (*_definitions(text, needed), _making(made), source), parameters)


MODULE = "reference_module"
"""What makes the module, once: a finished file calls it before torch.compile can, among whose fake tensors
torch 2.13 makes no nn.BatchNorm."""


def _own_names(taken: Collection[str]) -> dict[str, str]:
    """What `reference` calls its own variables: cells of recurrent networks take a `state`."""
    return {name: f"own_{name}" if name in taken else name for name in ("module", "state", "lift", "unsaved")}


def _making(made: MadeModule) -> str:
    """The source of the function that makes the module, without memory where it can be."""
    head = [
        "@functools.cache",
        f"def {MODULE}():",
        '    """The module that `reference` gives its parameters and buffers to."""',
    ]
    if made.attributes:
        lines = construction_lines(f"module = {made.constructed}", needs_memory=made.needs_memory)
        lines += [*registration_lines("module", made.attributes), "return module"]
    else:
        lines = construction_lines(f"return {made.constructed}", needs_memory=made.needs_memory)
    return "\n".join([*head, *(f"    {line}" for line in lines)])


def construction_lines(statement: str, *, needs_memory: bool) -> list[str]:
    """The statement that makes a module, without memory where it can be."""
    return [statement] if needs_memory else ['with torch.device("meta"):', f"    {statement}"]


def registration_lines(module: str, attributes: Sequence[str]) -> list[str]:
    """Plain attributes of a module made buffers of it."""
    if not attributes:
        return []
    names = tuple_text([f'"{name}"' for name in attributes])
    return [
        "# functional_call replaces parameters and buffers alone.",
        f"for name in {names}:",
        '    owner, _, attribute = name.rpartition(".")',
        f"    part = {module}.get_submodule(owner)",
        "    part.register_buffer(attribute, part.__dict__.pop(attribute), persistent=False)",
    ]


def _unsaved(made: MadeModule, own: Mapping[str, str]) -> list[str]:
    """Buffers that no state_dict has for functional_call, on the device of the call."""
    if not made.unsaved:
        return []
    moved = f".to({made.beside}.device)" if made.beside else ""
    names = tuple_text([f'"{name}"' for name in made.unsaved])
    return [
        "    # torch.compile calls this with fake tensors, which mix with no others.",
        f"    {own['lift']} = torch.ops.aten.lift_fresh",
        f"    {own['unsaved']} = {{",
        f"        name: {own['lift']}({own['module']}.get_buffer(name)){moved} for name in {names}",
        "    }",
    ]


def _of_forward(forward: ast.FunctionDef | None, called: Sequence[Parameter]) -> ast.arguments:
    """The parameters of a module's call: forward's as it is defined, or where it is inherited `called`."""
    if forward is None:
        return _parsed(", ".join(map(_parameter, called)))
    arguments = plain(forward.args)
    decorators = {d.id for d in forward.decorator_list if isinstance(d, ast.Name)}
    if "staticmethod" not in decorators:
        arguments.args = arguments.args[1:]
    return arguments


def _with_state(arguments: ast.arguments, state: Mapping[str, str]) -> ast.arguments:
    """The parameters with those of the state behind what may be positional, by keyword behind `*args`."""
    names = [ast.arg(name) for name in state]
    if arguments.vararg or arguments.kwonlyargs:
        defaults: list[ast.expr | None] = [None] * len(names)
        return ast.arguments(
            arguments.posonlyargs, arguments.args, arguments.vararg, [*arguments.kwonlyargs, *names],
            [*arguments.kw_defaults, *defaults], arguments.kwarg, arguments.defaults,
        )  # fmt: skip
    given = [ast.Constant(None) for _ in names] if arguments.defaults else []
    return ast.arguments(
        arguments.posonlyargs, [*arguments.args, *names], None, [], [], arguments.kwarg,
        [*arguments.defaults, *given],
    )  # fmt: skip


def _passed_on(arguments: ast.arguments) -> str:
    """The arguments of functional_call that are those of forward."""
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    positional += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    keyword = [f'"{a.arg}": {a.arg}' for a in arguments.kwonlyargs]
    keyword += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    text = tuple_text(positional)
    return f"{text}, {{{', '.join(keyword)}}}" if keyword else text


def _called(made: MadeModule, given: str, own: Mapping[str, str]) -> list[str]:
    """The call of the module with its state, an entry a line where they are many."""
    entries = [f'"{key}": {argument}' for argument, key in made.state.items()]
    entries += [f"**{own['unsaved']}"] if made.unsaved else []
    module, state = own["module"], own["state"]
    line = f"    return torch.func.functional_call({module}, {{{', '.join(entries)}}}, {given})"
    if len(line) <= WIDTH:
        return [line]
    inside = [f"        {entry}," for entry in entries]
    return [
        f"    {state} = {{",
        *inside,
        "    }",
        f"    return torch.func.functional_call({module}, {state}, {given})",
    ]


def forward_of(classes: Mapping[str, ast.ClassDef], name: str) -> ast.FunctionDef | None:
    """The class's own forward, or that of a base class in the same file."""
    own = (n for n in classes[name].body if isinstance(n, ast.FunctionDef) and n.name == "forward")
    bases = (b.id for b in classes[name].bases if isinstance(b, ast.Name) and b.id in classes)
    inherited = (found for base in bases if (found := forward_of(classes, base)))
    return next(own, None) or next(inherited, None)


def plain(arguments: ast.arguments) -> ast.arguments:
    """Parameters without annotations."""
    copy = _parsed(ast.unparse(arguments))
    variadic = [a for a in (copy.vararg, copy.kwarg) if a]
    for argument in (*copy.posonlyargs, *copy.args, *copy.kwonlyargs, *variadic):
        argument.annotation = None
    return copy


def _parsed(parameters: str) -> ast.arguments:
    function = ast.parse(f"def f({parameters}): ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.args


def _signature(arguments: ast.arguments, called: Sequence[Parameter]) -> str:
    """The parameters as source: those of the definition, or where a decorator takes others, those."""
    defined = {node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)}
    if not called or defined == {parameter.name for parameter in called}:
        return ast.unparse(plain(arguments))
    return ", ".join(_parameter(parameter) for parameter in called)


def _parameter(parameter: Parameter) -> str:
    if parameter.variadic:
        return f"{'**' if parameter.by_keyword else '*'}{parameter.name}"
    return parameter.name if parameter.required else f"{parameter.name}={parameter.default}"


def _renamed(text: str, function: ast.FunctionDef) -> str:
    return _segment(text, function).replace(f"def {function.name}(", "def reference(", 1)


def _segment(text: str, node: ast.stmt) -> str:
    """The statement's source, its decorators included."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    above = (f"@{ast.get_source_segment(text, d)}" for d in decorators)
    return "\n".join((*above, ast.get_source_segment(text, node) or ""))


def _needed(tree: ast.Module, start: ast.AST, types: Collection[str] = ()) -> list[ast.stmt]:
    """Top-level statements that `start` and the `types` depend on, in the file's order."""
    makers: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in _made(node):
            makers.setdefault(name, []).append(node)
    if unknown := [name for name in types if name not in makers]:
        raise NotConvertible(
            f"The target's file has no class {unknown[0]}, of which an input is declared to be.",
            "Name a NamedTuple or dataclass that the file defines or imports.",
        )
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = [start, *map(ast.Name, types)]
    while waiting:
        for name in _used(waiting.pop()):
            fresh = [n for n in makers.get(name, ()) if n is not start and n not in found]
            found += fresh
            waiting += fresh
    return [node for node in tree.body if node in found]


def _top(node: ast.stmt) -> str | None:
    """The top-level module that an import takes from."""
    match node:
        case ast.Import(names=[first, *_]):
            return first.name.partition(".")[0]
        case ast.ImportFrom(module=str(module), level=0):
            return module.partition(".")[0]
    return None


def _refuse_shared(own: list[ast.stmt], others: list[ast.stmt]) -> None:
    """Imports of the project's own modules may serve the function itself only."""
    names = {name for node in own for name in _made(node)}
    users = [n for n in others if not isinstance(n, ast.Import | ast.ImportFrom) and _used(n) & names]
    if users:
        raise NotConvertible(
            f"Line {users[0].lineno} needs `{min(_used(users[0]) & names)}` of the project's own modules, "
            "which a drafted file elsewhere cannot import while it loads.",
            "Define it in the target's file, or pass it as an argument.",
        )


def _importing(source: str, imports: Sequence[str]) -> str:
    """The function's source with imports before its first statement after the docstring."""
    if not imports:
        return source
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    after_doc = ast.get_docstring(function) is not None and len(function.body) > 1
    first = function.body[1 if after_doc else 0]
    lines = source.splitlines()
    if first.lineno == function.lineno:
        head, body = lines[first.lineno - 1][: first.col_offset], lines[first.lineno - 1][first.col_offset :]
        lines[first.lineno - 1 : first.lineno] = [head.rstrip(), f"    {body}"]
        return _importing("\n".join(lines), imports)
    lines[first.lineno - 1 : first.lineno - 1] = [" " * first.col_offset + line for line in imports]
    return "\n".join(lines)


def _made(node: ast.AST) -> Iterable[str]:
    """The names that a statement of the file binds, those inside of an `if`, `try` or `with` included."""
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [_bound(n) for n in names]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return []
    return [name for child in ast.iter_child_nodes(node) for name in _made(child)]


def _used(node: ast.AST) -> set[str]:
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return names - set(dir(builtins))


def _imports(needed: Iterable[ast.stmt]) -> tuple[str, ...]:
    nodes = list(needed)
    used = set().union(*(_used(n) for n in nodes))
    lines = [ast.unparse(single) for n in nodes for single in _one_by_one(n, used)]
    if any("from ." in line for line in lines):
        raise NotConvertible(
            "The function needs a relative import, which a file outside of the package cannot repeat.",
            "Import by the package's full name.",
        )
    return tuple(lines)


def _one_by_one(node: ast.stmt, used: set[str]) -> Iterable[ast.stmt]:
    """What an import makes that is used; an import of several modules as several imports."""
    match node:
        case ast.Import(names=names):
            return [ast.Import([n]) for n in names if _bound(n) in used]
        case ast.ImportFrom(module=module, names=names, level=level):
            return [ast.ImportFrom(module, [n for n in names if _bound(n) in used], level)]
    return []


def _bound(alias: ast.alias) -> str:
    return (alias.asname or alias.name).partition(".")[0]


def _definitions(text: str, needed: Iterable[ast.stmt]) -> tuple[str, ...]:
    kept = [n for n in needed if not isinstance(n, ast.Import | ast.ImportFrom)]
    clash = [name for n in kept for name in _made(n) if name in TAKEN]
    if clash:
        raise NotConvertible(
            f"The function needs `{clash[0]}` of its file, a name that the drafted file uses itself.",
            f"Rename `{clash[0]}`.",
        )
    return tuple(_segment(text, n) for n in kept)

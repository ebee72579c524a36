"""The autotuned kernels of a kernel file, read from its source; what cannot be read is refused by line."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.triton_api.name_scope import NameScope, module_scope

AUTOTUNE = frozenset(f"triton.{path}autotune" for path in ("", "runtime.", "runtime.autotuner."))
HEURISTICS = frozenset(f"triton.{path}heuristics" for path in ("", "runtime.", "runtime.autotuner."))
CHOOSER = "as_measured"
"""The function that a frozen file chooses configurations by."""
TUNERS_OWN = frozenset({"best_config", "cache", "configs", "configs_timings", "bench_time", "prune_configs"})
"""Attributes that a kernel loses with its tuner."""

_OUT = "Write the decorator out as @triton.autotune(...) above @triton.jit, then freeze again."
_LEAVE = "Leave this kernel autotuned and freeze the others, or compute it otherwise."


@dataclass(frozen=True)
class Tuner:
    """A kernel with the decorator that chooses its configurations."""

    kernel: ast.FunctionDef
    decorator: ast.expr
    call: ast.Call
    """Of triton.autotune or, in a file that was frozen before, of the chooser."""
    is_frozen: bool
    statement: ast.stmt
    """The statement at the top of the file that holds it."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name

    @property
    def parameters(self) -> frozenset[str]:
        """The kernel's parameters."""
        given = self.kernel.args
        return frozenset(p.arg for p in (*given.posonlyargs, *given.args, *given.kwonlyargs))


class KernelSource:
    """A kernel file as text and as a tree. Raises BadInput where it is not Python."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        """Of the file, for messages."""
        try:
            self.tree = ast.parse(text)
        except SyntaxError as error:
            raise BadInput(f"{name}:{error.lineno}: {error.msg}.", "Fix the syntax first.") from error

    @cached_property
    def scope(self) -> NameScope:
        """What names mean at the top of the file."""
        return module_scope(self.tree)

    @cached_property
    def imports(self) -> dict[str, str]:
        """The file's names for modules and for what it imports from them, by dotted path."""
        by_name = self.scope.bindings.items()
        return {binding.path: name for name, bindings in by_name for binding in bindings if binding.path}

    def value(self, name: str) -> ast.expr | None:
        """What is assigned to the name, where that is plain."""
        binding = self.scope.find(name)
        return binding.value if binding else None

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """Every function by name."""
        return {node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)}

    @cached_property
    def tuners(self) -> tuple[Tuner, ...]:
        """Every kernel that is autotuned by a decorator, or was and is frozen."""
        return tuple(
            tuner
            for statement in self.tree.body
            for node in ast.walk(statement)
            if isinstance(node, ast.FunctionDef)
            for decorator in node.decorator_list
            if (tuner := self._read(node, decorator, statement))
        )

    def tuner(self, kernel: str) -> Tuner | None:
        """The one of that kernel; None where the kernel is none of this file's.

        Raises BadInput where it is, and its tuner cannot be replaced.
        """
        tuners = [tuner for tuner in self.tuners if tuner.name == kernel]
        if len(tuners) == 1:
            self._refuse_factory(tuners[0])
            return tuners[0]
        if tuners:
            problem = f"{kernel} is autotuned in {len(tuners)} places, and configurations name only one"
            raise self.refusal(tuners[1].kernel, problem, "Give each kernel a name of its own.")
        for node in ast.walk(self.tree):
            match node:
                case ast.Call(func=ast.Call(func=maker), args=[ast.Name(id=name)]) if (
                    name == kernel and self.scope.path(maker) in AUTOTUNE
                ):
                    raise self.refusal(node, f"{kernel} is autotuned by a call, not by a decorator", _OUT)
        if kernel in self.functions:
            problem = f"the decorators of {kernel} do not show its triton.autotune"
            raise self.refusal(self.functions[kernel], problem, _OUT)
        return None

    def prune(self, tuner: Tuner) -> str | None:
        """The kernel's early_config_prune as the file writes it; None where it has none.

        Raises BadInput where the tuner's arguments hide whether it has.
        """
        if tuner.is_frozen:
            pruned_by = argument(tuner.call, 3, "prune")
            node = pruned_by.args[0] if isinstance(pruned_by, ast.Call) else None
        else:
            given = argument(tuner.call, 2, "prune_configs_by")
            hidden = [k.value for k in tuner.call.keywords if k.arg is None]
            hidden += [a.value for a in tuner.call.args if isinstance(a, ast.Starred)]
            if any("prune_configs_by" in self._entries(one, tuner) for one in hidden):
                raise self.refusal(tuner.call, f"{tuner.name} gets its prune_configs_by by `**`", _OUT)
            node = self._entries(given, tuner).get("early_config_prune") if given else None
        return ast.get_source_segment(self.text, node) if node else None

    def refuse_what_needs_the_tuner(self, tuner: Tuner) -> None:
        """Raises BadInput where a configuration has a pre_hook, which runs at each launch, or where the file
        asks the kernel for what only its tuner knows."""
        if not tuner.is_frozen and (hook := self._pre_hook(tuner.call, set())):
            problem = f"a configuration of {tuner.name} has a pre_hook, which must run before each launch"
            hint = "Do what the hook does where the kernel is launched, or leave this kernel autotuned."
            raise self.refusal(hook, problem, hint)
        for node in ast.walk(self.tree):
            match node:
                case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if (
                    owner == tuner.name and attribute in TUNERS_OWN
                ):
                    problem = f"{owner}.{attribute} is the tuner's, and a frozen kernel has none"
                    raise self.refusal(node, problem, _LEAVE)

    def refusal(self, node: ast.AST, problem: str, hint: str) -> BadInput:
        """A refusal that points at a line."""
        return BadInput(f"{self.name}:{getattr(node, 'lineno', 1)}: {problem}.", hint)

    def _read(self, node: ast.FunctionDef, decorator: ast.expr, statement: ast.stmt) -> Tuner | None:
        call: ast.expr = decorator
        if isinstance(decorator, ast.Name):
            call = self.value(decorator.id) or decorator
        match call:
            case ast.Call(func=function) if self.scope.path(function) in AUTOTUNE:
                return Tuner(node, decorator, call, False, statement)
            case ast.Call(func=function, args=[ast.Call(func=ast.Name(id=name)) as chooser]) if (
                self.scope.path(function) in HEURISTICS and name == CHOOSER
            ):
                return Tuner(node, decorator, chooser, True, statement)
        return None

    def _refuse_factory(self, tuner: Tuner) -> None:
        for node in ast.walk(tuner.statement):
            if (
                isinstance(node, ast.FunctionDef)
                and node is not tuner.kernel
                and tuner.kernel in ast.walk(node)
            ):
                problem = f"{tuner.name} is made again by each call of {node.name}, so there may be several"
                raise self.refusal(tuner.kernel, problem, "Define the kernel at the top of the file.")

    def _entries(self, node: ast.expr, tuner: Tuner) -> dict[object, ast.expr]:
        """A dict that is written out, here or where its name is assigned; None is an empty one."""
        match self.value(node.id) if isinstance(node, ast.Name) else node:
            case ast.Constant(value=None):
                return {}
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {key.value: entry for key, entry in pairs if isinstance(key, ast.Constant)}
        problem = f"whether {ast.unparse(node)} gives {tuner.name} an early_config_prune cannot be seen"
        raise self.refusal(node, problem, "Write prune_configs_by out as a dict in the decorator.")

    def _pre_hook(self, node: ast.AST, seen: set[str]) -> ast.AST | None:
        """Where a Config below the node, or below the functions and names that it uses, gets a pre_hook."""
        for one in ast.walk(node):
            match one:
                case ast.Call(func=ast.Name(id="Config") | ast.Attribute(attr="Config"), keywords=keywords):
                    if hook := next((k for k in keywords if k.arg == "pre_hook"), None):
                        return hook
                case ast.Name(id=name, ctx=ast.Load()) if name not in seen:
                    seen.add(name)
                    meant = [m for m in (self.value(name), self.functions.get(name)) if m]
                    if inner := next((f for m in meant if (f := self._pre_hook(m, seen))), None):
                        return inner
        return None


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The argument at that position or of that name; None where it is not given."""
    by_name: Iterator[ast.expr] = (keyword.value for keyword in call.keywords if keyword.arg == name)
    by_position = call.args[position] if position < len(call.args) else None
    return next(by_name, by_position)

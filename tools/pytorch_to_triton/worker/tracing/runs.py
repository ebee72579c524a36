"""A function run on generated inputs, to see where its Python needs the values of tensors, and what its
variables hold between its statements.

Only what kinds of values there are is of interest, so each branch is taken once whatever the values say, and
a loop that runs until they say so ends soon.
"""

import ast
import dataclasses
import inspect
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map_only

from .. import wire
from ..calls.exchange import state_like_input
from ..calls.generate import generate_arguments
from ..dispatch import AroundFunctions, AroundOperators
from ..loading.target import Loaded, load, with_forward
from ..wire import tracing

FILE = "<the function>"
HOOKS = ("__before__", "__after__", "__branch__", "__loop__")
"""What the function calls beside its own code: methods of the recorder."""
READ = "aten._local_scalar_dense.default"
"""The operator that gives Python the value of an element."""
READING = (torch.Tensor.tolist, torch.Tensor.numpy)
"""What reads values without calling an operator."""
MOST_VISITS = 8
"""Of a statement in one run; what later ones hold is not kept."""
MOST_LOOPS = 32
"""How often a `while` of which the end depends on values is entered again."""
MOST_BRANCHES = 10_000


class RunsTooLong(Exception):
    """The function decides more often than a recording waits for."""


def runs(target: wire.Target, request: tracing.RunsRequest) -> tracing.RunsItem:
    """The function of `request.text` in the target's file, run on each case, then once into each branch of
    `request.branches` that no run has taken."""
    loaded = load(target, "reference")
    recorder = RunRecorder(frozenset(request.branches))
    function = recorded(loaded, request.text, recorder)
    for number, case in enumerate(request.cases):
        recorder.run(number, function, generate_arguments(case, case["seed"]))
    first = request.cases[0]
    while (missing := next(recorder.untaken(), None)) is not None:
        recorder.force(missing)
        recorder.run(0, function, generate_arguments(first, first["seed"]))
    return recorder.item()


def recorded(loaded: Loaded, text: str, recorder: "RunRecorder") -> Loaded:
    """The function with the recorder's calls round each statement and test."""
    tree = ast.parse(text)
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    definition.body = with_notes(definition.body)
    hooks = {name: getattr(recorder, name.strip("_")) for name in HOOKS}
    vars(loaded.contents).update(hooks)
    found: dict[str, Any] = {}
    code = compile(ast.fix_missing_locations(tree), FILE, "exec")
    exec(code, vars(loaded.contents), found)
    function = found[definition.name]
    recorder.code = inspect.unwrap(function).__code__
    if loaded.module is not None:
        return with_forward(loaded, function)
    return dataclasses.replace(loaded, call=function)


def with_notes(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements, each between two calls that note the variables; tests of branches by a third."""
    noted: list[ast.stmt] = []
    for statement in block:
        line = statement.lineno
        if isinstance(statement, ast.If | ast.While | ast.Assert) and not isinstance(
            statement.test, ast.Constant
        ):
            name = "__loop__" if isinstance(statement, ast.While) else "__branch__"
            statement.test = hook(name, ast.Constant(line), statement.test)
        for blocks in blocks_of(statement):
            blocks[:] = with_notes(blocks)
        noted += [ast.Expr(hook("__before__", ast.Constant(line))), statement]
        noted.append(ast.Expr(hook("__after__", ast.Constant(line))))
    return noted


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks inside of a statement that are run where it stands."""
    if isinstance(statement, ast.If | ast.While | ast.For | ast.With):
        yield statement.body
        if not isinstance(statement, ast.With):
            yield statement.orelse


def hook(name: str, *arguments: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
    return ast.copy_location(call, arguments[-1]) if hasattr(arguments[-1], "lineno") else call


class RunRecorder:
    """What is seen of all runs."""

    def __init__(self, branches: frozenset[int]) -> None:
        self.branches = branches
        self.code: CodeType | None = None
        self.needs: dict[tracing.ValueNeed, None] = {}
        self.visits: list[tracing.Visit] = []
        self.operators: defaultdict[int, dict[str, None]] = defaultdict(dict)
        self.sizes: dict[tuple[int, int], None] = {}
        self._taken: defaultdict[int, set[bool]] = defaultdict(set)
        self._given_up: set[tuple[int, bool]] = set()
        self._forced: tuple[int, bool] | None = None
        self._case = 0
        self._inside: list[tuple[int, int | None]] = []
        """The lines of the statements that the run is inside of, and the places of their visits if kept."""
        self._seen: Counter[int] = Counter()
        self._state: defaultdict[tuple[str, str, tuple[int, ...]], dict[str, None]] = defaultdict(dict)

    def run(self, case: int, function: Loaded, arguments: Mapping[str, Any]) -> None:
        """One call; what it raises where a branch was forced is no fault of the function's."""
        self._case, self._inside, self._seen = case, [], Counter()
        state = state_like_input(function.state, arguments)
        for name, tensor in state.items():
            self._state[name, function.state_keys[name], tuple(tensor.shape)][dtype_of(tensor)] = None
        forced = self._forced
        try:
            with torch.no_grad(), AroundFunctions(self.function), AroundOperators(self.called):
                function(arguments, state)
        except Exception:
            if forced is None:
                raise
        finally:
            self._forced = None

    def untaken(self) -> Iterator[tuple[int, bool]]:
        """Branches that runs have come to but not taken."""
        for line, taken in self._taken.items():
            if line in self.branches and len(taken) == 1:
                other = (line, not next(iter(taken)))
                if other not in self._given_up:
                    yield other

    def force(self, branch: tuple[int, bool]) -> None:
        self._forced = branch
        self._given_up.add(branch)

    def branch(self, line: int, value: Any) -> bool:
        """How a test decides, called in its place."""
        return self._decided(line, value, sys._getframe(1))

    def loop(self, line: int, value: Any) -> bool:
        """The same for the test of a `while`, of which values do not keep it going for long."""
        decision = self._decided(line, value, sys._getframe(1))
        return decision and not (line in self.branches and self._seen[-line] > MOST_LOOPS)

    def _decided(self, line: int, value: Any, frame: FrameType) -> bool:
        if isinstance(value, torch.Tensor):
            self.needs[need_at(frame, truth=True)] = None
            self.operator(READ)
        self._seen[-line] += 1
        if sum(count for at, count in self._seen.items() if at < 0) > MOST_BRANCHES:
            raise RunsTooLong("it decides more than ten thousand times")
        with _disable_current_modes():
            decision = bool(value)
        if self._forced and self._forced[0] == line:
            decision, self._forced = self._forced[1], None
        self._taken[line].add(decision)
        return decision

    def before(self, line: int) -> None:
        self._seen[line] += 1
        kept = self._seen[line] <= MOST_VISITS
        self._inside.append((line, len(self.visits) if kept else None))
        if kept:
            held = held_in(sys._getframe(1))
            self.visits.append(tracing.Visit(case=self._case, line=line, before=held, after={}))

    def after(self, line: int) -> None:
        while self._inside[-1][0] != line:
            self._inside.pop()
        _, place = self._inside.pop()
        if place is not None:
            self.visits[place] = dataclasses.replace(self.visits[place], after=held_in(sys._getframe(1)))

    def operator(self, name: str) -> None:
        if self._inside:
            self.operators[self._inside[-1][0]][name] = None

    def function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """A function of torch's, which may read values without an operator."""
        if function in READING:
            self.read()
        return function(*args, **kwargs)

    def called(self, function: Any, args: Any, kwargs: Any) -> Any:
        """An operator, whose result, or its size, may be a number on the side of Python."""
        self.operator(str(function))
        result = function(*args, **kwargs)
        if torch.Tag.data_dependent_output in function.tags:
            self.read()
        elif torch.Tag.dynamic_output_shape in function.tags and is_sized_by_values(function, args):
            self.read()
            sizes = sizes_of_values(function, args, kwargs, result)
            self.sizes.update({(self._case, size): None for size in sizes})
        return result

    def item(self) -> tracing.RunsItem:
        return tracing.RunsItem(
            needs=tuple(self.needs),
            visits=tuple(self.visits),
            operators={str(line): tuple(names) for line, names in self.operators.items()},
            sizes_of_values=tuple(self.sizes),
            state={
                name: tracing.StateSeen(key=key, dtypes=tuple(dtypes), shape=shape)
                for (name, key, shape), dtypes in self._state.items()
            },
        )

    def read(self) -> None:
        """The expression of the function that is computed now reads values."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not self.code:
            frame = frame.f_back
        if frame is not None:
            self.needs[need_at(frame, truth=False)] = None


def need_at(frame: FrameType, *, truth: bool) -> tracing.ValueNeed:
    """The expression that a frame computes."""
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, end_line, column, end_column = (at or 0 for at in positions)
    return tracing.ValueNeed(line=line, end_line=end_line, column=column, end_column=end_column, truth=truth)


def held_in(frame: FrameType) -> dict[str, tracing.Held]:
    return {name: described(value) for name, value in frame.f_locals.items()}


def is_sized_by_values(function: Any, args: Sequence[Any]) -> bool:
    """An index is one only where it is a mask."""
    masks = (torch.bool, torch.uint8)
    if function is torch.ops.aten.index.Tensor:
        return any(isinstance(index, torch.Tensor) and index.dtype in masks for index in args[1])
    return True


def sizes_of_values(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> list[int]:
    """The sizes of the results that a shape function alone cannot tell; all where there is none."""
    tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    try:
        mode = FakeTensorMode(shape_env=ShapeEnv())
        fake = tree_map_only(
            torch.Tensor, lambda t: mode.from_tensor(t, static_shapes=True), (args, dict(kwargs))
        )
        with _disable_current_modes(), mode:
            shown = function(*fake[0], **fake[1])
        shapes = [leaf.shape for leaf in tree_leaves(shown) if isinstance(leaf, torch.Tensor)]
        pairs = [
            p for t, shape in zip(tensors, shapes, strict=True) for p in zip(t.shape, shape, strict=True)
        ]
        return [size for size, symbol in pairs if isinstance(symbol, torch.SymInt)]
    except Exception:
        return [size for tensor in tensors for size in tensor.shape]


def dtype_of(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def described(value: Any) -> tracing.Held:
    if isinstance(value, torch.Tensor):
        memory = value.untyped_storage().data_ptr()
        return tracing.Held(kind="tensor", dtype=dtype_of(value), shape=tuple(value.shape), memory=memory)
    if isinstance(value, bool | int | str | None):
        return tracing.Held(kind="constant", value=value)
    if isinstance(value, float):
        return tracing.Held(kind="float", value=value if math.isfinite(value) else 1.0)
    return tracing.Held(kind="object")

"""Launches without a grid, without an allocator or in a loop, and host code that makes them wait or slow."""

import ast
import itertools
from collections.abc import Iterator
from typing import get_args

from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.launched_tensors import (
    allocation,
    callers_parameters,
    size_of,
    tensors_of,
)
from pytorch_to_triton.audit.analysis.movement import bound_in, escapes, names_in
from pytorch_to_triton.audit.examples import ROW, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import file_rule, kernel_rule
from pytorch_to_triton.audit.source import Function, LaunchSite, SourceFile, SourceKernel
from pytorch_to_triton.triton_api.name_scope import Definition, NameScope, own_nodes

_COPY = jit(ROW, "tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)")
_LAUNCH = "kernel[(1,)](x, out, x.numel(), B=64)"
_EXPECTED = ast.With | ast.Try | ast.TryStar


@file_rule(
    "critical",
    "correctness",
    bad=(_COPY + run("kernel(x)"),),
    good=(
        _COPY + run("kernel(x)", takes="kernel, x"),
        f"@pointwise{_COPY}" + run("kernel(x)"),
        # A function that is made a kernel later.
        _COPY + run("kernel(x + tl.program_id(0))"),
    ),
)
def launch_without_grid(file: SourceFile) -> Iterator[Fault]:
    """A kernel is called like a Python function, without a grid.

    A @triton.jit function that host code calls raises an error: Triton has to know how many programs to run.

    Fix: put the grid in brackets between the name and the arguments: `kernel[(triton.cdiv(n, 128),)](...)`.
    """
    kernels = {kernel.node for kernel in file.kernels if kernel.plain}
    for function, scope in file.functions:
        if function in kernels or not _is_host(function, scope):
            continue
        outer = (node for node in own_nodes(function.body) if isinstance(node, _EXPECTED))
        expected = {inner for node in outer for inner in ast.walk(node)}
        for node in own_nodes(function.body):
            match node:
                case ast.Call(func=ast.Name(id=name)) if node not in expected:
                    binding = scope.find(name)
                    if binding and binding.node in kernels:
                        yield Fault(
                            node,
                            f"{function.name} calls the kernel {name} without a grid; Triton refuses that.",
                            f"Write {name}[grid](...), where grid is a tuple of one to three numbers.",
                        )


def _is_host(function: Function, scope: NameScope) -> bool:
    """Whether it runs on the CPU: no decorator that may compile it, and nothing of triton.language in it."""
    if any(ast.unparse(d) not in ("staticmethod", "torch.no_grad()") for d in function.decorator_list):
        return False
    paths = (scope.path(node) for node in own_nodes(function.body) if isinstance(node, ast.Attribute))
    return not any(path and path.startswith("triton.language.") for path in paths)


def _in_loop(rows: str, passed: str) -> str:
    loop = f"for row in {rows}:", f"    kernel[(1,)]({passed}, n, B=1024)"
    return _COPY + run("rows, n = x.shape", *loop)


@kernel_rule(
    "medium",
    "performance",
    bad=(_in_loop("range(rows)", "x[row], out[row]"),),
    good=(
        # Each step needs the one before.
        _in_loop("range(1, rows)", "out[row - 1], out[row]"),
        _in_loop("range(rows)", "x[row], out"),
    ),
)
def launch_in_loop(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel is launched for each row or batch in a Python loop.

    A launch costs some microseconds on the CPU, and a kernel that works on one row fills a small part of
    the GPU. The rows do not depend on each other, so they can run at once.

    Fix: launch once and give the grid an axis for them: tl.program_id then takes the place of the loop's
    variable.
    """
    written = {access.pointer for access in kernel.accesses if access.writes and access.pointer}
    if not written:
        return
    for launch in kernel.launches:
        loops = launch.flow.loops(launch.call)
        loop = loops[0] if loops else None
        if not isinstance(loop, ast.For) or is_trial(kernel.file, launch.function):
            continue
        if _counts_rows(loop, launch) and _is_independent(loop, kernel, launch, written):
            rows = ast.unparse(loop.iter)
            yield Fault(
                launch.call,
                f"{kernel.name} is launched once for each of {rows}; every launch costs microseconds "
                "and fills a small part of the GPU.",
                f"Launch it once with a grid axis for {ast.unparse(loop.target)}, and pass the stride "
                "between rows.",
            )


def _counts_rows(loop: ast.For, launch: LaunchSite) -> bool:
    """`for row in range(x.shape[0])`"""
    match loop:
        case ast.For(target=ast.Name(), iter=ast.Call(func=ast.Name(id="range"), args=[end])):
            match end:
                case ast.Call(func=ast.Name(id="len"), args=[ast.Name()]):
                    return True
            return size_of(end, launch) is not None
    return False


def _is_independent(loop: ast.For, kernel: SourceKernel, launch: LaunchSite, written: set[str]) -> bool:
    """Whether the iterations could run in any order: each writes its own row, and reads no other's."""
    if any(
        isinstance(node, ast.If | ast.While | ast.Break | ast.For)
        for statement in loop.body
        for node in ast.walk(statement)
    ):
        return False
    row = ast.unparse(loop.target)
    given = launch.given
    outputs = [given[name] for name in written if name in given]
    tensors = {_row_of(value, row) for value in outputs}
    if len(outputs) != len(written) or None in tensors or any(escapes(kernel, name) for name in given):
        return False
    others = [value for name, value in given.items() if name not in written]
    changed = {str(tensor) for tensor in tensors} | (bound_in(*loop.body) - {row})
    return not any(names_in(value) & changed and _row_of(value, row) is None for value in others)


def _row_of(value: ast.expr, row: str) -> str | None:
    """x of `x[row]` and `x[row, :]`."""
    match value:
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
            return name if isinstance(first, ast.Name) and first.id == row else None
        case ast.Call(func=ast.Attribute(value=owner, attr="contiguous"), args=[]):
            return _row_of(owner, row)
    return None


_SYNCED = _COPY + run(_LAUNCH, "torch.cuda.synchronize()", "return out")
_MAY_NOT_RUN = (*get_args(Definition), ast.Lambda, ast.Try, ast.TryStar)


@file_rule(
    "medium",
    "performance",
    bad=(_SYNCED,),
    good=(_SYNCED.replace("run", "test_run"),),
)
def host_sync_in_run(file: SourceFile) -> Iterator[Fault]:
    """A function that launches a kernel makes the CPU wait for the GPU.

    Launches are queued: the CPU runs ahead, and the GPU is never idle. `.item()`, `.cpu()` and
    torch.cuda.synchronize() wait until all queued work is done, so that the GPU then waits for the CPU in
    turn.

    Fix: keep values on the GPU: pass a tensor and load it in the kernel. Where a value sets a shape or a
    grid, let the caller pass it. Synchronize where results are used.
    """
    functions = {launch.function: launch.flow.scope for launch in file.launches if launch.function}
    for function, scope in functions.items():
        if is_trial(file, function) or not any(
            isinstance(node, ast.Return) and node.value for node in _always_run(function)
        ):
            continue
        for node in _always_run(function):
            if isinstance(node, ast.Call) and (what := _wait(node, scope.path(node.func))):
                yield Fault(
                    node,
                    f"{what} in {function.name} stops the CPU until the GPU has done all queued work.",
                    "Load the value in the kernel, or let the caller pass it; wait where results are used.",
                )


def _wait(call: ast.Call, path: str | None) -> str | None:
    """The call as text where it waits for the GPU."""
    if path == "torch.cuda.synchronize":
        return "torch.cuda.synchronize()"
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="item" | "cpu" as name), args=[], keywords=[]):
            return None if "cpu" in ast.unparse(owner) else f".{name}()"
    return None


def _always_run(function: Function) -> Iterator[ast.AST]:
    """The nodes that run whenever the function does, in source order; early returns are not considered."""
    ahead: list[ast.AST] = [*reversed(function.body)]
    while ahead:
        node = ahead.pop()
        yield node
        match node:
            case ast.If(test=test) | ast.IfExp(test=test):
                ahead.append(test)
            case _ if not isinstance(node, _MAY_NOT_RUN):
                ahead += reversed([*ast.iter_child_nodes(node)])


_ON_CPU = _COPY + run("out = torch.empty(x.shape, dtype=x.dtype)", _LAUNCH, takes="x")
_ALLOCATE = frozenset(f"torch.{name}" for name in ("empty", "zeros", "ones", "full", "empty_strided"))
_PLACED = frozenset({"device", "pin_memory", "out", None})
"""Keywords that place a tensor elsewhere; None: `**` may."""
_INPUTS = frozenset(f"torch.{name}" for name in ("rand", "randn", "randint", "tensor"))
_MOVES = frozenset({"cuda", "to"})
_DEFAULTS = frozenset({"set_default_device", "set_default_tensor_type"})


@kernel_rule(
    "critical",
    "correctness",
    bad=(_ON_CPU,),
    good=(
        # Run by the interpreter, on the CPU.
        _ON_CPU + "\ndef test_run():\n    run(torch.randn(64))\n",
    ),
)
def output_on_cpu(kernel: SourceKernel) -> Iterator[Fault]:
    """An output is allocated without a device, so it lies in the CPU's memory.

    torch.empty and its kind allocate on the CPU unless a device is given. A GPU cannot write there: the
    launch raises ValueError (cannot be accessed from Triton).

    Fix: pass `device=x.device` of an input, or use torch.empty_like or `x.new_empty`.
    """
    for launch in kernel.launches:
        for parameter, name in tensors_of(launch).items():
            made = allocation(name, launch)
            if not made or made[0] not in _ALLOCATE or not _is_placed_nowhere(made[1], launch):
                continue
            if not _works_there(kernel.file):
                yield Fault(
                    made[1],
                    f"{name} is allocated in the CPU's memory and passed for {parameter}: the launch of "
                    f"{kernel.name} raises ValueError.",
                    "Pass the device of an input, as in `device=x.device`.",
                )


def _is_placed_nowhere(call: ast.Call, launch: LaunchSite) -> bool:
    """Whether nothing says where the tensor lies, neither a keyword nor a `with` around it."""
    return (
        not any(keyword.arg in _PLACED for keyword in call.keywords)
        and not any(isinstance(outer, ast.With) for outer in launch.flow.around(call))
        and bool(callers_parameters(launch))
    )


def _works_there(file: SourceFile) -> bool:
    """Whether the file sets a default device, or makes inputs without one, for the interpreter."""
    nodes = file.nodes
    moved = {node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr in _MOVES}
    inputs = (
        node
        for node in nodes
        if isinstance(node, ast.Call) and file.scope.path(node.func) in _INPUTS and node not in moved
    )
    return any(isinstance(node, ast.Attribute) and node.attr in _DEFAULTS for node in nodes) or any(
        not any(keyword.arg in _PLACED for keyword in call.keywords) for call in inputs
    )


_MADE = jit(
    "x = tl.make_tensor_descriptor(x_ptr, shape=[n, n], strides=[n, 1], block_shape=[B, B])",
    "x.store([tl.program_id(0) * B, 0], tl.zeros((B, B), tl.float32))",
) + run("kernel[(triton.cdiv(x.shape[0], 64),)](x, out, x.shape[0], B=64)")


@file_rule(
    "low",
    "correctness",
    bad=(_MADE,),
    good=("from project.memory import install_allocator\n" + _MADE,),
)
def descriptor_without_allocator(file: SourceFile) -> Iterator[Fault]:
    """A kernel makes tensor descriptors, and the file sets no allocator.

    tl.make_tensor_descriptor keeps each descriptor in global memory that Triton asks an allocator for, and
    it has none by itself: the launch raises "Kernel requires a runtime memory allocation, but no allocator
    was set" unless other code has set one.

    Fix: call triton.set_allocator before the launch, or make the descriptors outside of the kernel with
    triton.tools.tensor_descriptor.TensorDescriptor.
    """
    if not file.launches or "allocator" in "\n".join(_names(file)).lower():
        return
    descriptors = ("make_tensor_descriptor", "_experimental_make_tensor_descriptor")
    made = (operation for kernel in file.kernels for operation in kernel.calls(*descriptors))
    for operation in itertools.islice(made, 1):
        yield Fault(
            operation.call,
            "The descriptor needs global memory from an allocator, and this file sets none: the launch "
            "fails unless other code has called triton.set_allocator.",
            "Call triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, "
            'device="cuda")) before the launch.',
        )


def _names(file: SourceFile) -> Iterator[str]:
    """All names that the file uses or imports, attributes included."""
    for node in ast.walk(file.tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name

"""Calling a target so that each launch of a Triton kernel is compiled, and none is run.

Triton itself decides what is compiled: its own binder specialises the actual arguments, its own autotuner
prunes and tries the configurations. Only the launch is left out, and the clock of the autotuner.
"""

import functools
import gc
import inspect
import math
import os
import re
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triton import knobs
from triton.compiler.errors import CompilationError
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools import disasm

from .. import wire
from ..failure import causes, describe_failure
from ..job_report import JobReport
from ..loading.redirect import in_original_terms, original
from ..passed_bytes import launch_bytes
from ..replacement import all_replaced, replaced
from ..untimed_tuning import configuration_name, tuned_without_cache
from ..wire import Failure
from .offline_gpu import resources, run_once

Launch = tuple[tuple[Any, ...], dict[str, Any], Any]
"""Positional arguments, keyword arguments, grid; no grid in a warm-up."""
INSTRUCTION = re.compile(disasm.FLINE_RE.pattern.replace(r"\w{4}", r"\w{4,}"))
"""What Triton reads of SASS, beyond addresses of four digits: 4,096 instructions and no more."""
DIVISIBLE = ["tt.divisibility", 16]


@dataclass
class CompilingKernel:
    """One kernel in one specialisation, from the moment that Triton starts on it."""

    number: int
    kernel: JITFunction[Any]
    what: dict[str, Any]
    """Triton's own description: `signature`, `constants`, `configs`, `num_warps`, ..."""
    started: float
    cached: bool = False
    """Triton had it on disk already."""


def forget_compiled() -> None:
    """Have Triton compile again what a file launched while it was imported: that launch was not recorded."""
    for thing in gc.get_objects():
        if isinstance(thing, JITFunction):
            thing.device_caches.clear()


class DryRun:
    """Compiles launches; the report gets an item for each.

    A launch that the wrapper gets wrong raises, as on a GPU; one that the compiler refuses does not, so that
    the others are seen.
    """

    def __init__(self, report: JobReport, request: wire.CompileRequest) -> None:
        self.trials: list[dict[str, str]] = []
        """`kernel` and `configuration` of each trial, compiled or not."""
        self._report = report
        self._request = request
        self._seen: set[tuple[Any, str]] = set()
        self._current: CompilingKernel | None = None
        self._warmed_up: dict[int, int] = {}
        """The numbers of kernels not launched so far, by their identity; Triton keeps the kernels."""
        self._configuration: str | None = None

    @contextmanager
    def in_place_of_launches(self) -> Iterator[None]:
        """Inside, each launch is compiled, and none is run."""
        forget_compiled()
        with all_replaced(
            [
                (JITFunction, "run", self._launched_by(JITFunction.run)),
                (Autotuner, "_bench", self._trial_by(Autotuner._bench)),
                # What is no measurement must not be found on disk by a process that tunes on a real GPU.
                (Autotuner, "check_disk_cache", tuned_without_cache),
                (knobs.runtime, "jit_cache_hook", self._compiling),
                (knobs.compilation, "listener", self._listen),
            ]
        ):
            yield

    def _launched_by(self, original: Any) -> Any:
        """`JITFunction.run` that only compiles; None where nothing was compiled."""

        @functools.wraps(original)
        def run(kernel: JITFunction[Any], *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            self._current = None
            args, kwargs = self._changed(kernel, args, kwargs)
            launch = (args, kwargs, None if warmup else grid)
            log = LogExcerpt(self._report.folder / "log.txt")
            try:
                compiled = original(kernel, *args, grid=grid, warmup=True, **kwargs)
            except Exception as error:
                if self._current is None:
                    raise
                failure = described_refusal(error, kernel, log.text())
                self._report_kernel(self._current, launch, {"failure": failure})
                return None
            if self._current is not None:
                self._report_kernel(self._current, launch, self._result(self._current, compiled))
                if warmup:
                    self._warmed_up[id(compiled)] = self._current.number
            elif not warmup and id(compiled) in self._warmed_up:
                grid = grid_of(grid, bound_arguments(kernel, launch))
                number = self._warmed_up.pop(id(compiled))
                self._report.item(wire.LaunchedItem(number=number, grid=grid))
            return compiled

        return run

    def _changed(
        self, kernel: JITFunction[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a launch with those values that the request gives in place of them."""
        names = [*inspect.signature(kernel.fn).parameters]
        instead = {n: v for n, v in self._request.what_if.items() if n in wire.LAUNCH_OPTIONS or n in names}
        changed = (instead.pop(name, value) for name, value in zip(names, args, strict=False))
        return tuple(changed), {**kwargs, **instead}

    def _trial_by(self, original: Any) -> Any:
        """`Autotuner._bench` that calls each configuration once."""

        @functools.wraps(original)
        def bench(tuner: Autotuner, *args: Any, config: Any, **meta: Any) -> Any:
            vars(tuner)["do_bench"] = run_once
            self._configuration = configuration_name(config.all_kwargs())
            self.trials.append({"kernel": tuner.base_fn.__name__, "configuration": self._configuration})
            try:
                return original(tuner, *args, config=config, **meta)
            finally:
                self._configuration = None

        return bench

    def _compiling(self, *, key: str, fn: Any, compile: dict[str, Any], **_: Any) -> bool:
        """Triton's hook before it compiles: True leaves it out."""
        specialisation = (fn.jit_function, key)
        number = len(self._seen)
        if specialisation in self._seen:
            return True
        self._seen.add(specialisation)
        if self._configuration is not None and len(self.trials) - 1 not in self._request.trials:
            return True
        self._report.during(f"compile {fn.name}")
        self._current = CompilingKernel(number, fn.jit_function, compile, time.perf_counter())
        return False

    def _listen(self, *, cache_hit: bool, **_: Any) -> None:
        if self._current is not None:
            self._current.cached = cache_hit

    def _result(self, compilation: CompilingKernel, compiled: Any) -> dict[str, Any]:
        seconds = time.perf_counter() - compilation.started
        return {
            "resources": resources(compiled),
            "num_warps": compiled.metadata.num_warps,
            "compile_seconds": None if compilation.cached else seconds,
            "texts": self._written(compilation, compiled),
        }

    def _written(self, compilation: CompilingKernel, compiled: Any) -> dict[str, str]:
        """The paths of the compiler's texts, by their kinds."""
        folder = self._report.folder / "texts"
        folder.mkdir(parents=True, exist_ok=True)
        paths = {}
        for kind in self._request.texts:
            if kind in compiled.asm or (kind == "sass" and "cubin" in compiled.asm):
                name = f"{compilation.number:02}-{compilation.kernel.fn.__name__}.{kind}"
                path = folder / name
                with replaced(disasm, "FLINE_RE", INSTRUCTION):
                    path.write_text(compiled.asm[kind], encoding="utf-8")
                paths[kind] = str(path)
        return paths

    def _report_kernel(self, compilation: CompilingKernel, launch: Launch, result: dict[str, Any]) -> None:
        file, line = place_of(compilation.kernel.fn)
        bound = bound_arguments(compilation.kernel, launch)
        record = {
            "number": compilation.number,
            "name": compilation.kernel.fn.__name__,
            "file": file,
            "line": line,
            "configuration": self._configuration,
            "arguments": described_arguments(compilation, bound),
            "grid": grid_of(launch[2], bound),
            "tensor_bytes": launch_bytes(launch[:2]),
            **{name: compilation.what[name] for name in ("num_warps", "num_stages", "num_ctas")},
            **result,
        }
        self._report.item(wire.KernelItem(kernel=record))


def bound_arguments(kernel: JITFunction[Any], launch: Launch) -> dict[str, Any]:
    """The kernel's arguments by name, defaults included."""
    args, kwargs, _ = launch
    signature = inspect.signature(kernel.fn)
    bound = signature.bind(*args, **{k: v for k, v in kwargs.items() if k in signature.parameters})
    bound.apply_defaults()
    return dict(bound.arguments)


def grid_of(grid: Any, bound: dict[str, Any]) -> tuple[int, ...] | None:
    """The extents of the grid; None for a warm-up without one."""
    extents = grid(bound) if callable(grid) else grid
    return None if extents is None else tuple(int(extent) for extent in extents)


def described_arguments(compilation: CompilingKernel, bound: dict[str, Any]) -> list[dict[str, Any]]:
    """Name, type, value and known divisibility of each argument."""
    constants, attributes = compilation.what["constants"], compilation.what["configs"][0]
    return [
        {
            "name": str(name),
            "type": str(kind),
            "value": plain(constants.get((position,), bound.get(name))),
            "divisible_by_16": DIVISIBLE in map(list, attributes.get((position,), ())),
        }
        for position, (name, kind) in enumerate(compilation.what["signature"].items())
    ]


def plain(value: Any) -> bool | int | float | str | None:
    """A scalar as it is; anything else as what a reader recognises, None for a tensor."""
    if isinstance(value, bool | int | str | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if hasattr(value, "data_ptr") or hasattr(value, "block_shape"):
        return None
    return str(value.fn.__name__ if isinstance(value, JITFunction) else value)


PASS_ERROR = re.compile(r"^(?:loc\()?\"?([^\s\":]+)\"?:(\d+):\d+\)?: error: (.+)$", re.MULTILINE)
"""How MLIR reports an error, on the process's own streams."""
EXCERPT_BYTES = 65536


class LogExcerpt:
    """What this process's streams, which go to the run folder's log, add to it from here on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._start = log.stat().st_size if log.exists() else 0

    def text(self) -> str:
        """Nothing where the job runs in the foreground and has no log."""
        if not self._log.exists():
            return ""
        with self._log.open("rb") as file:
            file.seek(self._start)
            return file.read(EXCERPT_BYTES).decode(errors="replace")


def described_refusal(error: Exception, kernel: JITFunction[Any], log: str) -> Failure:
    """A Failure whose file and line are the kernel's, where the compiler names one."""
    failure = describe_failure(error, f"compile {kernel.fn.__name__}")
    file, line = place_of(kernel.fn)
    changes: dict[str, Any] = {"file": file, "line": line, "traceback": ""}
    innermost = innermost_error(error)
    if innermost is not None:
        place = place_in_source(innermost, kernel)
        message = innermost.error_message or cause_of(innermost) or str(innermost)
        changes |= {"message": in_original_terms(message), **place}
        excerpt = str(innermost).removesuffix(innermost.error_message or "").rstrip()
        changes["traceback"] = in_original_terms(excerpt)
    elif passed := PASS_ERROR.search(log):
        changes |= {"file": passed[1], "line": int(passed[2]), "message": f"{failure.message}: {passed[3]}"}
    return replace(failure, **changes)


def innermost_error(error: BaseException) -> CompilationError | None:
    """The compilation error that others lead to, where one kernel calls another; None where there is none."""
    errors = [cause for cause in causes(error) if isinstance(cause, CompilationError)]
    return errors[-1] if errors else None


def cause_of(error: CompilationError) -> str:
    cause = error.__cause__
    return "" if cause is None else f"{type(cause).__name__}: {cause}"


def place_in_source(error: CompilationError, kernel: JITFunction[Any]) -> dict[str, Any]:
    """File and line of the node that the error is about."""
    for function in reachable(kernel):
        source, first = dedent(function)
        if error.src and source.startswith(error.src.rstrip()):
            line = first + getattr(error.node, "lineno", 1) - 1
            return {"file": place_of(function)[0], "line": line}
    return {}


def reachable(kernel: JITFunction[Any]) -> Iterator[Callable[..., Any]]:
    """The kernel's function, then the functions of kernels that it can name."""
    yield kernel.fn
    for value in vars(inspect.getmodule(kernel.fn) or kernel).values():
        if isinstance(value, JITFunction):
            yield value.fn


def dedent(function: Callable[..., Any]) -> tuple[str, int]:
    """The function's source from its `def` on, as the compiler sees it, and that line's number."""
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:
        return "", 1
    source = textwrap.dedent("".join(lines))
    start = re.search(r"^def\s", source, re.MULTILINE)
    skipped = source[: start.start()] if start else ""
    return source[len(skipped) :], first + skipped.count("\n")


def place_of(function: Callable[..., Any]) -> tuple[str, int]:
    """File and line of the function's `def`."""
    file = os.path.abspath(function.__code__.co_filename)
    return str(original(file)), dedent(function)[1]

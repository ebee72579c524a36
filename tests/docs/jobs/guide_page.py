"""Run the code of guides as its tags say, and report what does not behave so.

Under the interpreter, launches run on the CPU, under the watch over bounds and races, and the code's
assertions hold. In the compiled mode each launch is compiled for every target and not run, so nothing is
computed: assertions are left out, except those of blocks tagged `compiled`.
"""

import ast
import contextlib
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler.errors import CompilationError
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

Block = dict[str, Any]
"""`kind`, `line`, `text`; one tagged `wrong` also has its comment's `verb`, `name` and line: `mark`."""

AMD, AMPERE, HOPPER = GPUTarget("hip", "gfx942", 64), GPUTarget("cuda", 80, 32), GPUTarget("cuda", 90, 32)
"""`compiled` blocks see the last one."""
PAGES_FOR_AMD = 3
"""One of so many pages is compiled for AMD too."""


def work(report: Any, pages: list[dict[str, Any]], everywhere: bool) -> dict[str, Any]:
    """Each page is its `source`, the path of the file that holds all its blocks, and the `blocks`.

    `everywhere`: kernels are compiled for every target. Returns {"problems": [[[line, text], ...], ...]}, a
    list for each page.
    """
    found = []
    for number, page in enumerate(pages):
        usual = [AMD, HOPPER] if number % PAGES_FOR_AMD == 0 else [HOPPER]
        found.append(problems_of(report, [AMD, AMPERE, HOPPER] if everywhere else usual, **page))
    return {"problems": found}


def problems_of(
    report: Any, targets: list[GPUTarget], source: str, blocks: list[Block]
) -> list[tuple[int, str]]:
    interprets = triton.knobs.runtime.interpret
    page = InterpretedPage(source) if interprets else CompiledPage(source, targets)
    with warnings.catch_warnings(), page.prepared():
        warnings.simplefilter("error")
        # Triton 3.9 says at its first compilation that a default will change in 3.10.
        warnings.filterwarnings("ignore", "TRITON_DEFAULT_FP_FUSION")
        for block in blocks:
            report.during(f"{source}, line {block['line']}")
            page.do(block)
            if page.broken:
                break
    return page.problems


class Page:
    """One guide's namespace, and what was found wrong with the guide."""

    def __init__(self, source: str) -> None:
        self.source = source
        with open(source, encoding="utf-8") as file:
            self.lines = [line.strip() for line in file]
        self.module = types.ModuleType("guide")
        vars(self.module).update(__file__=source, DEVICE="cpu")
        self.problems: list[tuple[int, str]] = []
        self.broken = False

    def execute(self, block: Block, *, assertions: bool = True) -> None:
        """Run the block's code in the page's namespace, at its line in the source."""
        text = "\n" * (block["line"] - 1) + block["text"]
        exec(compile(text, self.source, "exec", optimize=0 if assertions else 1), vars(self.module))

    def expect(self, block: Block, *, assertions: bool = True) -> None:
        """Run code that must not raise; what comes after it may need it, so its failure ends the page."""
        try:
            self.execute(block, assertions=assertions)
        except Exception as error:
            place = [block["line"], *self.places(error)][-1]
            self.problems.append((place, one_line(error)))
            self.broken = True

    def expect_failure(self, block: Block) -> None:
        """Run code that must raise the exception it names, on the line where it names it."""
        try:
            self.execute(block)
        except Exception as error:
            names = {kind.__name__ for cause in chain(error) for kind in type(cause).__mro__}
            if block["name"] not in names:
                self.problems.append((block["mark"], f"raised no {block['name']}: {one_line(error)}"))
            elif block["mark"] not in self.places(error):
                self.problems.append((block["mark"], f"was not raised on this line: {one_line(error)}"))
        else:
            self.problems.append((block["mark"], f"raised nothing, {block['name']} was promised"))

    def places(self, error: BaseException) -> list[int]:
        """The lines of the source that the exception and what caused it came through, innermost last."""
        places = []
        for cause in chain(error):
            trace = cause.__traceback__
            while trace is not None:
                if trace.tb_frame.f_code.co_filename == self.source:
                    places.append(trace.tb_lineno)
                trace = trace.tb_next
            if isinstance(cause, CompilationError) and cause.src and hasattr(cause.node, "lineno"):
                places.append(self.line_of(cause.src) + cause.node.lineno)
        return places

    def line_of(self, function: str) -> int:
        """How many lines of the source come before this function of it; 0 where it is not found."""
        wanted = [line.strip() for line in function.strip().split("\n")]
        starts = range(len(self.lines) - len(wanted) + 1)
        return next((start for start in starts if self.lines[start : start + len(wanted)] == wanted), 0)


class InterpretedPage(Page):
    """A guide whose kernels run under the interpreter."""

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        from pytorch_to_triton_worker.interpreter.memory_guard import MemoryGuard

        self.guard = MemoryGuard(lambda: ())
        with self.guard.watching():
            yield

    def do(self, block: Block) -> None:
        self.guard.clear()
        match block["kind"], block.get("verb"):
            case "run", _:
                self.expect(block)
                self.problems += [(fault.line, fault.detail) for fault in self.guard.faults]
            case "wrong", "fails":
                self.expect_failure(block)
            case "wrong", "wrong":
                self.expect(block)
            case "wrong", "unsafe":
                self.expect(block)
                if block["mark"] not in [fault.line for fault in self.guard.faults]:
                    self.problems.append((block["mark"], "touches no memory that it must not"))


class CompiledPage(Page):
    """A guide whose launches are compiled for each of some targets, and not run."""

    def __init__(self, source: str, targets: list[GPUTarget]) -> None:
        super().__init__(source)
        self.targets = targets

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        offline = OfflineDriver()
        driver.set_active(offline)
        launch, compare = JITFunction.run, torch.testing.assert_close
        JITFunction.run = compiling(launch, offline, self.targets)
        torch.testing.assert_close = lambda *_, **__: None
        try:
            yield
        finally:
            JITFunction.run, torch.testing.assert_close = launch, compare

    def do(self, block: Block) -> None:
        match block["kind"], block.get("verb"):
            case "run", _:
                self.expect(block, assertions=False)
            case "compiled", _:
                self.expect(block)
            case "wrong", "fails" | "refused":
                self.expect_failure(block)
            case "wrong", _:
                self.expect(block, assertions=False)
            case "no-run", _:
                self.look_up(block)

    def look_up(self, block: Block) -> None:
        """Import what the block imports, and find each dotted name that starts with a module."""
        tree = ast.parse("\n" * (block["line"] - 1) + block["text"])
        names = dict(vars(self.module))
        for node in ast.walk(tree):
            try:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    exec(compile(ast.Module([node], []), self.source, "exec"), names)
                elif isinstance(node, ast.Attribute):
                    value_of(node, names)
            except (ImportError, AttributeError) as error:
                self.problems.append((node.lineno, one_line(error)))


class OfflineDriver:
    """Answers what compiling asks of a device, where there is none."""

    target = HOPPER

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> str:
        """Kernels are kept apart by it: one name a target."""
        return f"{self.target.backend}:{self.target.arch}"

    def get_current_stream(self, device: Any) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_benchmarker(self) -> Callable[..., list[float]]:
        def call_once(kernel_call: Callable[[], object], **_: Any) -> list[float]:
            """Every configuration is compiled; they tie."""
            kernel_call()
            return [0.0, 0.0, 0.0]

        return call_once


def compiling(
    launch: Callable[..., Any], offline: OfflineDriver, targets: list[GPUTarget]
) -> Callable[..., Any]:
    """A `JITFunction.run` that compiles for all targets, or, where a warm-up was asked for, for the last."""

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        for target in targets[-1:] if warmup else targets:
            offline.target = target
            kernel = launch(self, *args, grid=grid, warmup=True, **named)
        return kernel

    return run


def value_of(node: ast.expr, names: dict[str, Any]) -> Any:
    """What `module.a.b` is; None for an expression that does not start with a module's name."""
    match node:
        case ast.Name(id=name):
            root = names.get(name)
            return root if isinstance(root, types.ModuleType) else None
        case ast.Attribute(value=value, attr=name):
            owner = value_of(value, names)
            return None if owner is None else getattr(owner, name)
    return None


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, then what caused it, outermost first."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def one_line(error: BaseException) -> str:
    """The exception and its causes in one line."""
    return " <- ".join(" ".join(f"{type(cause).__name__}: {cause}".split()) for cause in chain(error))

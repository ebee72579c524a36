"""What Triton's compiler says of a kernel's source: launches are read for a GPU, and go no further.

It takes milliseconds: the compiler's first step infers all types, and refuses what the language lacks.
"""

import functools
import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import triton.compiler
from triton._C.libtriton import ir
from triton.compiler import make_backend
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction

from ..dispatch import AroundFunctions
from ..integrity.operators import READINGS
from ..replacement import all_replaced
from ..wire.validation import CompilerRefusal
from .dry_run import described_refusal

COMPILED = object()
"""In the place of a compiled kernel."""
ASKING_FOR_VALUES = frozenset(
    {*READINGS, "item", "equal", "allclose", "is_nonzero"}
    | {f"__{name}__" for name in ("bool", "contains", "float", "index", "int")}
)
"""Functions of torch that give Python what elements hold."""


class ResultMissing(Exception):
    """The wrapper reads elements once a kernel was launched, and that has not run."""


class FrontEnd:
    """In its block launches are read by the compiler, and none is run. Raises what the compiler raises."""

    def __init__(self) -> None:
        self.kernel: JITFunction[Any] | None = None
        """The last that was launched."""

    @contextmanager
    def in_place_of_launches(self) -> Iterator[None]:
        with all_replaced(
            [
                (JITFunction, "run", self._launched_by(JITFunction.run)),
                (triton.compiler, "compile", read_source),
            ]
        ):
            yield

    def _launched_by(self, original: Any) -> Any:
        """`JITFunction.run` that launches nothing."""

        @functools.wraps(original)
        def run(kernel: JITFunction[Any], *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            self.kernel = kernel
            return original(kernel, *args, grid=grid, warmup=True, **kwargs)

        return run

    def refusal(self, error: BaseException) -> CompilerRefusal | None:
        """What the compiler refused; None for an error of another kind."""
        if self.kernel is None or not isinstance(error, CompilationError):
            return None
        failure = described_refusal(error, self.kernel, "")
        assert failure.file is not None
        assert failure.line is not None
        return CompilerRefusal(
            kernel=self.kernel.fn.__name__,
            file=failure.file,
            line=failure.line,
            source=linecache.getline(failure.file, failure.line).strip(),
            message=failure.message,
        )

    def unless_read(self) -> AroundFunctions:
        """A mode in which nobody reads elements once a kernel was launched. Raises ResultMissing."""
        self.kernel = None

        def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self.kernel is not None and getattr(function, "__name__", "") in ASKING_FOR_VALUES:
                raise ResultMissing
            return function(*args, **kwargs)

        return AroundFunctions(call)


def read_source(source: Any, target: Any, options: dict[str, Any]) -> object:
    """In the place of triton.compiler.compile: its first step alone."""
    backend = make_backend(target)
    parsed = backend.parse_options(options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    generate = backend.get_codegen_implementation(parsed)
    source.make_ir(target, parsed, generate, backend.get_module_map(), context)
    return COMPILED

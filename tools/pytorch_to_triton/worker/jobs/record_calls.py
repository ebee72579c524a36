"""Job `record_calls`: run a function of the user's, and note each call that it makes of the target."""

import inspect
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from torch import nn

from .. import wire
from ..job_report import JobReport
from ..loading.packing import unpacked
from ..loading.target_file import NameMissing, described, load_file
from ..runtime import as_on_a_gpu
from ..tracing.description import described_example
from ..wire.packing import ContainerKind

MOST_CALLS = 64
"""Those that follow are not noted."""


class ExampleFailed(Exception):
    """The user's function raised before it called the target."""


def work(report: JobReport, target: wire.Target, example: wire.Target) -> dict[str, Any]:
    """The arguments of each call; of a module also those of its constructor.

    Raises NameMissing where there is no such function, ExampleFailed where it does not get to the target.
    """
    report.during("load")
    path = Path(example["path"])
    with as_on_a_gpu():
        contents = load_file(path)
        function = getattr(contents, example["name"] or "", None)
        if not callable(function):
            raise NameMissing(f"{path} has no function `{example['name']}`")
        report.during("call")
        recorder = Recorder(Path(target["path"]).resolve(), str(target["name"]))
        sys.setprofile(recorder.event)
        try:
            function()
        except Exception as error:
            if not recorder.calls:
                raise ExampleFailed(
                    f"the example {example['name']}() raised {described(error, path)}"
                ) from error
        finally:
            sys.setprofile(None)
    return {"calls": recorder.calls}


class Recorder:
    """Knows a call of the target by its code, under whichever name it was imported."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.function, self.forward, self.constructor = name, f"{name}.forward", f"{name}.__init__"
        self.calls: list[dict[str, Any]] = []
        self._made: dict[int, dict[str, Any]] = {}
        """The constructor's arguments of each module, by its id."""

    def event(self, frame: FrameType, event: str, _: Any) -> None:
        """What sys.setprofile calls."""
        code = frame.f_code
        if event != "call" or code.co_qualname not in (self.function, self.forward, self.constructor):
            return
        if Path(code.co_filename).resolve() != self.path:
            return
        count = code.co_argcount + code.co_kwonlyargcount + len(variadic_of(code))
        names = code.co_varnames[:count]
        arguments = {name: frame.f_locals[name] for name in names}
        if code.co_qualname == self.function:
            self._note(arguments, {}, frame)
            return
        module = arguments.pop(names[0])
        if code.co_qualname == self.constructor:
            self._made[id(module)] = self._constructed(type(module), arguments)
        elif isinstance(module, nn.Module):
            self._note(arguments, self._made.get(id(module), {}), frame, training=module.training)

    def _constructed(self, kind: type, arguments: dict[str, Any]) -> dict[str, Any]:
        """The constructor's arguments, but for objects that are the defaults themselves."""
        parameters = inspect.signature(kind).parameters
        return {
            name: plain(value)
            for name, value in arguments.items()
            if is_plain(value) or name not in parameters or parameters[name].default is not value
        }

    def _note(
        self, values: dict[str, Any], constructor: dict[str, Any], frame: FrameType, *, training: bool = False
    ) -> None:
        if len(self.calls) < MOST_CALLS:
            flat = unpacked(values, frame.f_globals, variadic_of(frame.f_code))
            arguments = [described_example(name, value) for name, value in flat.items()]
            self.calls.append({"arguments": arguments, "constructor": constructor, "training": training})


def variadic_of(code: CodeType) -> dict[str, ContainerKind]:
    """The parameters that collect."""
    names = iter(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    kinds: dict[int, ContainerKind] = {inspect.CO_VARARGS: "args", inspect.CO_VARKEYWORDS: "kwargs"}
    return {next(names): kind for flag, kind in kinds.items() if code.co_flags & flag}


def plain(value: Any) -> Any:
    """A constant as JSON; the type's name, as a list of one, of what is none."""
    return value if is_plain(value) else [type(value).__name__]


def is_plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str | None)

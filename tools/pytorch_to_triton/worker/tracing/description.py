"""What a target takes, and what its file declares about it (schema/description.py)."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from .. import wire
from ..calls.call_inputs import made_inputs, parameter_names
from ..loading.packing import container
from ..loading.target import Loaded, Role
from ..loading.target_file import TargetError
from ..tuning.config_selector import tuners_in
from ..untimed_tuning import variants
from ..wire.packing import Packing
from .fake import FakeWhenEntered, example_inputs, fake_inputs, fake_mode, load_fake, range_of

Plain = Any
SCALAR = re.compile(r"(?:(?:typing\.)?Optional\[)?(int|float|bool|str|torch\.dtype)\]?(?: \| None)?")


class ExamplesFailed(TargetError):
    """get_inputs() raised."""


class DeclarationUnusable(TargetError):
    """INPUTS, DIMS, REQUIRES or COMPARE holds something that is neither text, a number, a list nor a dict."""


class WorkUnusable(TargetError):
    """BYTES or FLOPS holds something that is neither text nor an integer."""


def description(target: wire.Target, loaded: Loaded, role: Role) -> wire.Json:
    """Of a loaded target, which is not called; without what its get_inputs() returns."""
    contents = loaded.contents
    parameters, unsaved = parameter_names(loaded), loaded.unsaved
    return {
        "target": target,
        "kind": loaded.kind,
        "name": loaded.name,
        "parameters": [described_parameter(p) for p in loaded.signature.parameters.values()],
        "inputs": plain(getattr(contents, "INPUTS", None), "INPUTS", vars(contents)),
        "dims": plain(getattr(contents, "DIMS", {}), "DIMS"),
        "requires": plain(listed(contents, "REQUIRES"), "REQUIRES"),
        "compare": plain(listed(contents, "COMPARE"), "COMPARE"),
        "bytes_moved": expression(contents, "BYTES"),
        "flops": expression(contents, "FLOPS"),
        "generates_inputs": callable(getattr(contents, "inputs", None)),
        "state": [
            {
                **tensor_facts(value),
                "name": name,
                "trained": name in parameters,
                "saved": name not in unsaved,
            }
            for name, value in loaded.state.items()
        ],
        "examples": None,
        "configurations": most_configurations(loaded) if role == "candidate" else 1,
    }


def most_configurations(loaded: Loaded) -> int:
    """Of an autotuned kernel that the file's globals lead to; one that a function makes cannot be known."""
    return max(map(variants, tuners_in([loaded.contents])), default=1)


def described_parameter(parameter: inspect.Parameter) -> dict[str, Any]:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return {
        "name": parameter.name,
        "variadic": variadic,
        "by_keyword": parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD),
        "required": parameter.default is parameter.empty and not variadic,
        "default": "" if parameter.default is parameter.empty else repr(parameter.default),
        "scalar": scalar_type(parameter),
    }


def scalar_type(parameter: inspect.Parameter) -> str:
    """The name of a type of constants where the annotation, else the default, says that it takes one."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        annotation = type(parameter.default)
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    scalar = SCALAR.fullmatch(text)
    return scalar[1] if scalar else ""


def plain(value: Any, where: str, types: Mapping[str, Any] | None = None) -> Plain:
    """The value as JSON; a tuple and what `types` make as inputs/packed_input.py has them.

    Raises DeclarationUnusable, with the place, where that cannot be.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    if isinstance(value, torch.dtype):
        return str(value)
    taken = container(value, types or {})
    if taken is None and isinstance(value, list | tuple | range):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if taken is not None:
        packing, held = taken
        items = [plain(item, place, types) for item, place in zip(held, packing.places(where), strict=True)]
        match packing.kind:
            case "dict":
                return dict(zip(packing.words(), items, strict=True))
            case "fields":
                return {f"{packing.type}()": dict(zip(packing.keys, items, strict=True))}
            case "tuple":
                return {"()": items}
        return items
    raise DeclarationUnusable(
        f"{where} is {value!r}; declare a tensor as text such as 'float32[M, N]', "
        "anything else as a finite number, text, bool, None, or a dict, list, tuple or object of those"
    )


def expression(contents: Any, name: str) -> str | None:
    """The text of an expression that the file may declare; a number is one too."""
    value = getattr(contents, name, None)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise WorkUnusable(f"{name} is {value!r}, which is no expression over the dims")


def has_examples(loaded: Loaded) -> bool:
    """Whether the file has a get_inputs() for its target."""
    return loaded.kind != "kernel_file" and hasattr(loaded.contents, "get_inputs")


def examples(loaded: Loaded, mode: FakeWhenEntered) -> list[dict[str, Any]] | None:
    """What get_inputs() returns, made in `mode` and named after forward's parameters; None without one."""
    if not has_examples(loaded):
        return None
    try:
        given = example_inputs(loaded, mode)
    except Exception as error:
        raise ExamplesFailed(
            f"get_inputs() in {loaded.file} raised {type(error).__name__}: {error}"
        ) from error
    return [described_example(name, value) for name, value in given.items()]


def shown_inputs(target: wire.Target, points: Sequence[Mapping[str, int]]) -> Iterator[list[dict[str, Any]]]:
    """What the file's inputs() returns at these points. Raises ExamplesFailed."""
    mode = fake_mode()
    loaded = load_fake(target, mode)
    for dims in points:
        try:
            given = fake_inputs(lambda dims=dims: made_inputs(loaded, dims), mode)  # type: ignore[misc]
        except Exception as error:
            raise ExamplesFailed(
                f"inputs() in {loaded.file} raised {type(error).__name__}: {error}"
            ) from error
        yield [described_example(name, value) for name, value in given.items()]


def described_example(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, torch.Tensor):
        return {"form": "tensor", "name": name, **tensor_facts(value)}
    if isinstance(value, Packing):
        return {"form": "packed", "name": name, "packing": value.as_json()}
    return {"form": "constant", "name": name, "value": plain(value, name)}


def tensor_facts(tensor: torch.Tensor) -> dict[str, Any]:
    """dtype and shape; of an integer tensor also the half-open range of its values."""
    low, high = range_of(tensor)
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "low": low,
        "high": high,
    }


def listed(contents: Any, name: str) -> Any:
    """REQUIRES or COMPARE as a list; a single one may stand as plain text."""
    given = getattr(contents, name, [])
    return given if isinstance(given, list | tuple) else [given]

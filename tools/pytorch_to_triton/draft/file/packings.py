"""Parameters that hold several inputs: whether they hold what was traced, and its names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytorch_to_triton.draft.file.lines import WIDTH
from pytorch_to_triton.worker.wire.packing import Packing


def mismatches(packings: Mapping[str, Packing]) -> Iterator[tuple[str, str]]:
    """When a container holds something else than it held, as source, and what it should."""
    for name, packing in packings.items():
        for place, container in packing.containers(name):
            label, count = place.replace('"', ""), len(container.items)
            if container.kind in ("dict", "kwargs"):
                keys = ", ".join(container.quoted())
                test = f"set({place}) != {{{keys}}}" if keys else place
                yield test, f"{label} takes {', '.join(container.words()) or 'nothing'}"
            elif container.kind != "fields":
                yield f"len({place}) != {count}", f"{label} takes {count} item{'s' if count != 1 else ''}"


def taken_out(packings: Mapping[str, Packing]) -> Iterator[str]:
    """Lines that give what containers hold its own names."""
    for name, packing in packings.items():
        sources = packing.sources(name)
        if packing.kind in ("list", "tuple", "args") and len(sources) == len(packing.items) > 1:
            yield f"{', '.join(sources)} = {name}"
            continue
        line = f"{', '.join(sources)} = {', '.join(sources.values())}"
        yield from [line] if sources and len(line) < WIDTH else [f"{n} = {s}" for n, s in sources.items()]

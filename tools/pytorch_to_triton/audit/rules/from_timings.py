"""Rules on measured times, most of which name a red flag of `benchmark`.

Their examples are JSON: one object per size, with the timings by label; `_size` writes one. Each size moves
twice the bytes of the one before it, the first 1 MiB, and has a limit only where `limit_ms` gives it one. The
flags and the verdict are those that `benchmark` derives from such figures.
"""

import json
from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import TimedTarget
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import timed_rule
from pytorch_to_triton.benchmark.figures import size_of
from pytorch_to_triton.benchmark.flags import SLOWER_THAN, flag_text
from pytorch_to_triton.schema.benchmark import KERNEL

_SLOW_MS = 3000.0


def _size(kernel_ms: float, eager_ms: float, **more: float) -> str:
    """One size as JSON: `limit_ms` and `tuned` are of the size, and other figures of the kernel's timing."""
    of_size = {name: more.pop(name) for name in ("limit_ms", "tuned") if name in more}
    timings = {"kernel": {"median_ms": kernel_ms, **more}, "eager": {"median_ms": eager_ms}}
    return json.dumps({**of_size, "timings": timings})


def _files(*sizes: str) -> tuple[str, ...]:
    return tuple(f"[{text}]" for text in sizes)


@timed_rule(
    "low",
    "performance",
    bad=_files(_size(0.2, 0.4, limit_ms=0.05)),
    good=_files(
        _size(0.06, 0.4, limit_ms=0.05),
        _size(0.02, 0.4, limit_ms=0.001),
        f"{_size(0.05, 0.4, limit_ms=0.02)}, {_size(0.55, 4.0, limit_ms=0.5)}",
    ),
)
def far_from_limit(timed: TimedTarget) -> Iterator[Fault]:
    """A kernel takes more than twice the time that its work must take on this GPU.

    The limit is what the memory moves or the arithmetic units compute at their measured best. At the largest
    size launching no longer matters, so the kernel itself takes the rest.

    Fix: look for what it reads twice, for narrow accesses, and for too few programs or warps.
    """
    # The largest size alone: smaller ones have launches to pay for.
    for table in timed.result.tables[-1:] if timed.result.verdict != "void" else ():
        for flag in (flag for flag in table.flags if flag.kind == "below_half_of_limit"):
            yield Fault(
                timed.place,
                f"{timed.who} takes more than twice the least possible time at its largest size.",
                "Look for what it reads twice, for narrow accesses, and for too few programs or warps.",
                proof=flag_text(size_of(table), flag),
            )


@timed_rule(
    "info",
    "performance",
    bad=_files(_size(0.1, 0.2, first_call_ms=8000, tuned=True)),
    good=_files(_size(0.1, 0.2, first_call_ms=900, tuned=True), _size(0.1, 0.2, first_call_ms=8000)),
)
def first_call_slow(timed: TimedTarget) -> Iterator[Fault]:
    """The first call takes seconds, because the autotuner tries each configuration.

    So does the first call at each new key: services stall, and tests are slow.

    Fix: freeze the configurations that were found, or give fewer of them.
    """
    # The slowest first call of an autotuned kernel.
    first = {
        size_of(table): kernel.first_call_ms
        for table in timed.result.tables
        if (kernel := table.of(KERNEL)) and kernel.first_call_ms
    }
    size = max(first, key=lambda one: first[one], default="")
    if timed.result.tuned and size and first[size] > _SLOW_MS:
        yield Fault(
            timed.place,
            f"The first call of {timed.who} tries each configuration, and again at every new key.",
            "Freeze the configurations that were found, or give fewer of them.",
            proof=f"At {size} the first call took {first[size] / 1000:.1f} s.",
        )


@timed_rule(
    "info",
    "performance",
    bad=_files(_size(0.1, 0.2, spread=0.4)),
    good=_files(
        _size(0.1, 0.2, spread=0.04),
        '{"timings": {"kernel": {"median_ms": 0.1}, "eager": {"median_ms": 0.2, "spread": 0.4}}}',
    ),
)
def noisy_timing(timed: TimedTarget) -> Iterator[Fault]:
    """The times of a kernel vary widely.

    Small differences between such times mean nothing.

    Fix: measure again on a GPU that nothing else uses, at its full clock.
    """
    # All sizes at which the kernel's own times spread, in one finding.
    if noisy := [flag_text(*one) for one in timed.flagged("noisy") if one[1].label == KERNEL]:
        yield Fault(
            timed.place,
            f"The times of {timed.who} vary widely: small differences mean nothing.",
            "Measure again on a GPU that nothing else uses.",
            proof=" ".join(noisy),
        )


@timed_rule(
    "medium",
    "performance",
    bad=_files(_size(0.2, 0.1), f"{_size(0.1, 0.2)}, {_size(0.5, 0.4).replace('eager', 'compile')}"),
    good=_files(_size(0.1, 0.2), _size(0.101, 0.1), _size(0.2, 0.1).replace("eager", "other.py")),
)
def slower_than_pytorch(timed: TimedTarget) -> Iterator[Fault]:
    """A kernel is slower than PyTorch at some size.

    The difference exceeds the spread of both timings: at that size PyTorch is the better choice.

    Fix: tune it at these sizes, or leave them to PyTorch.
    """
    # All sizes at which it is slower, in one finding.
    if timed.result.verdict != "slower":
        return
    if slower := timed.flagged(*SLOWER_THAN.values()):
        sizes = ", ".join(dict.fromkeys(size for size, _ in slower))
        yield Fault(
            timed.place,
            f"{timed.who} is slower than PyTorch at {sizes}.",
            "Tune it at these sizes, or call PyTorch there.",
            proof=" ".join(flag_text(size, flag) for size, flag in slower),
        )

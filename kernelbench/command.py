"""What the commands of all yardsticks do alike: their arguments, a deadline, and how a run ends."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio

from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.jobs.client import WorkerClient, open_client
from pytorch_to_triton.sweep.journal import Journal, open_journal

Report = Callable[[Path, Journal], Path]
"""Writes what the journal says into the results folder; the path of its table."""
Run = Callable[[argparse.Namespace, WorkerClient], Awaitable[int]]


def parser_of(name: str, about: str | None, results: Path) -> argparse.ArgumentParser:
    """A parser with the options of every yardstick."""
    parser = argparse.ArgumentParser(prog=name, description=(about or "").partition("\n")[0])
    parser.add_argument("--out", default=results, type=Path, help=f"the results folder; default: {results}")
    parser.add_argument("--deadline", type=float, help="end cleanly after so many seconds")
    return parser


def words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Cancels what is inside after so many seconds, and says so."""
    with anyio.move_on_after(seconds) as limit:
        yield
    if limit.cancelled_caught:
        print(f"Not done within {seconds:g} s. The same command goes on from here.")


def start(given: argparse.Namespace, run: Run, variables: Mapping[str, str]) -> int:
    """Run with a client and these variables, where nothing else is set; the exit status."""

    async def with_client() -> int:
        async with open_client() as worker:  # what is cancelled in there, the client ends in an orderly way
            return await run(given, worker)

    for name, value in variables.items():
        os.environ.setdefault(name, value)
    try:
        return anyio.run(with_client)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return refusal.exit_code
    except KeyboardInterrupt:
        return 130


def write_again(write: Report, usage: str | None) -> int:
    """Write the table of the results folder that the command line names, and print it; the exit status."""
    if len(sys.argv) != 2:
        print(usage, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    with open_journal(folder) as journal:
        print(write(folder, journal).read_text(encoding="utf-8"))
    return 0


def table_row(cells: Sequence[object]) -> str:
    """A row of a Markdown table; each cell on one line, without a bar of its own."""
    return f"| {' | '.join(flat(str(cell)) for cell in cells)} |"


def flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

"""Add releases of Triton to history.json, once a release is out:

    python -m pytorch_to_triton.triton_api.make_history PYTHON...

Each PYTHON has torch and the release to add; a release of the same minor version is replaced.
"""

import sys
from collections.abc import Sequence

import anyio

from pytorch_to_triton.jobs.client import open_client
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.triton_api.history import FILE, History, history
from pytorch_to_triton.triton_api.surface import surface


async def make(pythons: Sequence[str]) -> History:
    """The history with the Triton of each Python added. Raises MissingRequirement where one has none."""
    made = history() if FILE.exists() else History((), {})
    async with open_client() as worker:
        for python in pythons:
            made = made.adding(await surface(worker, Runtime(python=python, interpreter=False)))
    return made


def main() -> None:
    """Rewrite history.json and say what it holds."""
    made = anyio.run(make, sys.argv[1:])
    FILE.write_text(made.text(), encoding="utf-8")
    print(f"{FILE} knows {len(made.names)} names of Triton {', '.join(made.releases)}.")


if __name__ == "__main__":
    main()

"""Start the worker under any Python that has torch and triton.

    PYTHON -P bootstrap.py RUN_FOLDER     do that folder's job once more, in the foreground
    PYTHON -P bootstrap.py --serve MODE   be a fork server; MODE is a job's mode as JSON, stdin a socket

The folder of this file is loaded as the package `pytorch_to_triton_worker`: nothing of this project has to
be installed in that Python, and no module here can meet one of the user's.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path

PACKAGE = "pytorch_to_triton_worker"


def load_package() -> None:
    """Make the folder of this file importable as `pytorch_to_triton_worker`."""
    folder = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(
        PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)


def main(arguments: list[str]) -> int:
    """Exit status: 0 served or answered, 1 the job raised, 2 wrong arguments."""
    load_package()
    match arguments:
        case ["--serve", runtime]:
            importlib.import_module(f"{PACKAGE}.fork_server").serve(json.loads(runtime))
            return 0
        case [folder] if (Path(folder) / "job.json").is_file():
            return 0 if importlib.import_module(f"{PACKAGE}.job_report").rerun(Path(folder).resolve()) else 1
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

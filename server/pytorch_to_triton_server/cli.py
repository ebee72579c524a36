"""The command line's first moments: all else loads inside of `main`, so that Ctrl-C ends it quietly.

With `--json` stdout is always one JSON object: the result, or `{"error": {"kind", "message", "hint"}}`.
"""

import sys

TYPE_CHECKING = False  # typing itself takes a while to load
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command; `arguments` without the program's name. Returns the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        from pytorch_to_triton_server.run_command import run_and_flush

        return run_and_flush(given)
    except KeyboardInterrupt:
        from pytorch_to_triton_server.terminal import interrupted

        return interrupted(as_json="--json" in given)

"""Ctrl-C is never lost, wherever a command is just then."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytorch_to_triton_server.progress import run_interruptible

INTERRUPTED = Path(__file__).with_name("interrupted.py")


def says(call: str) -> str:
    """What interrupted.py prints of a call, in a session of its own: no signal of it reaches the tests."""
    command = [sys.executable, str(INTERRUPTED), call]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    return done.stdout


@pytest.mark.parametrize("call", ["waiting", "together", "nested"])
def test_ctrl_c_ends_it_every_time(call: str) -> None:
    assert says(call) == "as it should be\n"


def test_a_second_ctrl_c_does_not_wait_and_where_it_is_ignored_it_stays_ignored() -> None:
    assert says("twice") == "as it should be\n"
    assert says("ignored") == "as it should be\n"


def test_without_ctrl_c_the_result_is_returned_and_an_error_raised_as_it_is() -> None:
    async def result(value: int) -> int:
        return value

    async def fails() -> None:
        raise ValueError("as it is")

    before = signal.getsignal(signal.SIGINT)
    assert run_interruptible(result, 3) == 3
    with pytest.raises(ValueError, match="as it is"):
        run_interruptible(fails)
    assert signal.getsignal(signal.SIGINT) is before

"""NVIDIA's tools, and this command on PATH."""

import shutil
from pathlib import Path

from pytorch_to_triton.command_line import NAME, program
from pytorch_to_triton.doctor.outcomes import CheckOutcome, absent, doubtful, fine


def read_command() -> str | None:
    """Where a shell finds this command."""
    return shutil.which(NAME)


def check_sanitizer(path: Path | None) -> CheckOutcome:
    """It is asked by validate --thorough."""
    if path is None:
        return absent(
            "compute-sanitizer is not installed; only validate --thorough asks it.",
            "Install the CUDA toolkit, or set CUDA_HOME to it.",
        )
    return fine(f"{path}.")


def check_ncu(path: Path | None) -> CheckOutcome:
    """It is asked by inspect --profile ncu."""
    if path is None:
        return absent(
            "Nsight Compute (ncu) is not installed; only inspect --profile ncu asks it.",
            "Install the CUDA toolkit or Nsight Compute, or set CUDA_HOME.",
        )
    return fine(f"{path}.")


def check_command(command: str | None) -> CheckOutcome:
    """Whether the commands that answers suggest can be typed as they stand."""
    if command is None:
        return absent(
            f"A shell does not find {NAME}: answers name it as {' '.join(program())}.",
            f"Add its folder to PATH: export PATH={Path(program()[0]).parent}:$PATH",
        )
    if program() != [NAME]:
        return doubtful(
            f"A shell finds {command}, which is another installation than this one.",
            f"Put this one first: export PATH={Path(program()[0]).parent}:$PATH",
        )
    return fine(f"{command}.")

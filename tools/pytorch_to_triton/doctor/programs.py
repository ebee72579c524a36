"""NVIDIA's tools, this command on PATH, and variables that change what Triton and torch do."""

import os
from collections.abc import Mapping
from pathlib import Path

from pytorch_to_triton.command_line import NAME, program
from pytorch_to_triton.doctor.outcomes import CheckOutcome, absent, broken, doubtful, fine


def check_sanitizer(path: Path | None) -> CheckOutcome:
    """validate --thorough uses it."""
    missing = "compute-sanitizer is not installed; only validate --thorough uses it."
    return fine(f"{path}.") if path else absent(missing, "Install the CUDA toolkit, or set CUDA_HOME to it.")


def check_ncu(path: Path | None) -> CheckOutcome:
    """inspect --profile ncu uses it."""
    missing = "Nsight Compute (ncu) is not installed; only inspect --profile ncu uses it."
    fix = "Install the CUDA toolkit or Nsight Compute, or set CUDA_HOME."
    return fine(f"{path}.") if path else absent(missing, fix)


def check_command(command: str | None) -> CheckOutcome:
    """Whether the commands that answers suggest can be typed as they stand."""
    if command is None:
        return absent(
            f"{NAME} is not on PATH: messages name it as {' '.join(program())}.",
            f"Add its folder to PATH: export PATH={Path(program()[0]).parent}:$PATH",
        )
    if program() != [NAME]:
        return doubtful(
            f"PATH leads to {command}, which is a different installation.",
            f"Put this one first: export PATH={Path(program()[0]).parent}:$PATH",
        )
    return fine(f"{command}.")


_WITHOUT_COMPILE = "turns torch.compile off, so that benchmark compares with eager PyTorch"
EFFECTS = {
    "TRITON_INTERPRET": "has your own scripts run kernels on the CPU; the tools here choose themselves",
    "TRITON_DISABLE_LINE_INFO": "leaves findings of compute-sanitizer without lines",
    "TRITON_ALWAYS_COMPILE": "has every kernel compiled again in every process",
    "TRITON_DEBUG": "adds checks to kernels, which slows them",
    "CUDA_LAUNCH_BLOCKING": "makes every launch wait, which spoils times",
    "TORCH_COMPILE_DISABLE": _WITHOUT_COMPILE,
    "TORCHDYNAMO_DISABLE": _WITHOUT_COMPILE,
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "makes every allocation slow, which spoils times",
    "LD_PRELOAD": "loads libraries into every process",
}
"""What a variable does that one may not expect, where it is neither empty nor 0."""
_PATHS = (
    "PYTORCH_TO_TRITON_PYTHON", "TRITON_PTXAS_PATH", "TRITON_LIBCUDA_PATH", "TRITON_LIBDEVICE_PATH",
    "CUDA_HOME", "CC",
)  # fmt: skip
"""Variables that name files or folders."""


def read_environment() -> Mapping[str, str]:
    """The variables that the checks look at."""
    return {
        name: os.environ[name] for name in (*EFFECTS, *_PATHS, "CUDA_VISIBLE_DEVICES") if name in os.environ
    }


def hides_gpus(environment: Mapping[str, str]) -> bool:
    """Whether CUDA_VISIBLE_DEVICES keeps every GPU from torch."""
    return environment.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1")


def check_variables(environment: Mapping[str, str]) -> CheckOutcome:
    """Whether any variable spoils results or hides the GPU."""
    if hides_gpus(environment):
        return doubtful("CUDA_VISIBLE_DEVICES hides every GPU.", "Unset it to run kernels on the GPU.")
    for name in _PATHS:
        value = environment.get(name, "")
        if value.startswith("/") and not Path(value.split()[0]).exists():
            return broken(f"{name}={value} names nothing that exists.", f"Correct it, or unset {name}.")
    effective = [
        f"{name}={value} {EFFECTS[name]}"
        for name, value in environment.items()
        if name in EFFECTS and value not in ("", "0")
    ]
    if effective:
        names = " ".join(text.partition("=")[0] for text in effective)
        return doubtful(f"{'; '.join(effective)}.", f"Unless that is meant: unset {names}")
    return fine("No environment variable changes what Triton and torch do.")

"""`doctor`: what its checks say of the facts, and what it says of this machine."""

import dataclasses
import json
import os
import sys
import time
from pathlib import Path

import anyio
import pytest
from filelock import FileLock
from packaging.requirements import Requirement

from pytorch_to_triton import places
from pytorch_to_triton.doctor import disk, gpu, programs, stack
from pytorch_to_triton.doctor.doctor import check_fact, conclude
from pytorch_to_triton.doctor.facts import Inquiry, in_thread
from pytorch_to_triton.doctor.outcomes import CheckOutcome, NotSeen
from pytorch_to_triton.doctor.stack import KernelTrial, check_kernel
from pytorch_to_triton.hardware.versions import Assembler, Device, Versions
from pytorch_to_triton.schema.diagnosis import CheckResult, Diagnosis
from pytorch_to_triton_server.cli import main
from pytorch_to_triton_server.doctor_command import client_checks, show_diagnosis
from tests.house.test_package import PROJECT

H200 = gpu.GpuState(
    name="NVIDIA H200",
    memory_bytes=140 << 30,
    free_bytes=139 << 30,
    persistent=True,
    shared_by_processes=True,
    partitioned=False,
    processes=(),
)
DRIVER = gpu.DriverState("580.10", (13, 0), (H200,))
NO_DRIVER = NotSeen("LibraryNotFound: NVML Shared Library Not Found")
NODES = tuple(gpu.DeviceNode(f"/dev/{name}", usable=True) for name in ("nvidia0", "nvidiactl", "nvidia-uvm"))
VERSIONS = Versions(
    python="3.12.3",
    torch="2.11.0+cu130",
    triton="3.6.0",
    interpreter=False,
    cuda="13.0",
    rocm=None,
    devices=(Device(name="NVIDIA H200", capability=(9, 0), memory_bytes=140 << 30),),
)
HERE = stack.Surroundings(
    gpu_problem="", assembler="/bin/ptxas 12.8", compiler="gcc", compiler_problem="", triton_cache="/c"
)
FOLDER = disk.FolderState(
    path=Path("/c"), problem="", bytes=2**20, files=3, whole=True, free_bytes=2**40, runs_code=True
)


def with_gpu(**changes: object) -> gpu.DriverState:
    return dataclasses.replace(DRIVER, gpus=(dataclasses.replace(H200, **changes),))  # type: ignore[arg-type]


def on_gpu(versions: Versions, driver: gpu.DriverState | NotSeen = DRIVER) -> CheckOutcome:
    around = HERE.model_copy(update={"gpu_problem": "No CUDA GPUs are available"})
    return stack.check_torch_on_gpu(versions, around, driver, NODES if driver is DRIVER else ())


def with_ptxas(version: str, triton: str = "3.6.0") -> Versions:
    assemblers = (Assembler(version=version, path="/bin/ptxas"),)
    return VERSIONS.model_copy(update={"assemblers": assemblers, "triton": triton})


CPU = VERSIONS.model_copy(update={"devices": (), "cuda": None, "torch": "2.11.0+cpu"})
NEWER = VERSIONS.model_copy(update={"devices": (), "cuda": "14.1"})
GONE = VERSIONS.model_copy(update={"devices": ()})
JUDGED: tuple[tuple[CheckOutcome, str, str, str], ...] = (
    (gpu.check_driver(DRIVER, NODES), "ok", "580.10 runs CUDA up to 13.0", ""),
    (gpu.check_driver(NO_DRIVER, ()), "not here", "No GPU driver", ""),
    (gpu.check_driver(NO_DRIVER, NODES), "failed", "LibraryNotFound", "--gpus all"),
    (gpu.check_driver(NO_DRIVER, (gpu.DeviceNode("/dev/kfd", usable=True),)), "ok", "AMD", ""),
    (gpu.check_nodes(NODES), "ok", "3 device files", ""),
    (gpu.check_nodes(()), "not here", "no device files", ""),
    (gpu.check_nodes((gpu.DeviceNode("/dev/kfd", usable=False),)), "failed", "/dev/kfd", "Join the group"),
    (gpu.check_nodes(NODES[:2]), "failed", "/dev/nvidia-uvm is missing", "nvidia-modprobe"),
    (gpu.check_gpus(DRIVER), "ok", "NVIDIA H200 with 140.0 GiB", ""),
    (gpu.check_gpus(with_gpu(shared_by_processes=False)), "failed", "Only one process", "-c DEFAULT"),
    (gpu.check_gpus(with_gpu(persistent=False)), "warning", "Persistence mode is off", "-pm 1"),
    (gpu.check_gpus(with_gpu(persistent=None)), "ok", "NVIDIA H200", ""),
    (gpu.check_gpus(with_gpu(partitioned=True)), "warning", "MIG is on", "whole GPU"),
    (gpu.check_others(DRIVER), "ok", "Nobody else", ""),
    (gpu.check_others(with_gpu(processes=("python3 (7), 1.0 GiB",))), "warning", "python3 (7)", "Wait"),
    (gpu.check_others(with_gpu(free_bytes=9 << 30)), "warning", "only 9.0 GiB", "nvidia-smi"),
    (stack.check_python(VERSIONS, "python3"), "ok", "Python 3.12.3", ""),
    (stack.check_python(NotSeen("no torch", "Install torch."), "p"), "failed", "no torch", "Install torch."),
    (stack.check_torch(VERSIONS), "ok", "built for CUDA 13.0", ""),
    (stack.check_torch(VERSIONS.model_copy(update={"torch": "2.9.1"})), "failed", "too old", "2.11"),
    (on_gpu(VERSIONS), "ok", "torch uses NVIDIA H200", ""),
    (on_gpu(CPU), "failed", "built for the CPU only", "torch's build"),
    (on_gpu(CPU, NO_DRIVER), "not here", "no GPU", ""),
    (on_gpu(NEWER), "failed", "CUDA 14.1, the driver runs CUDA up to 13.0", "CUDA 13"),
    (on_gpu(GONE), "failed", "No CUDA GPUs are available", "CUDA_VISIBLE_DEVICES"),
    (stack.check_triton(VERSIONS), "ok", "3.6 to ", ""),
    (stack.check_triton(VERSIONS.model_copy(update={"triton": "3.5.1"})), "failed", "too old", "3.6"),
    (stack.check_triton(VERSIONS.model_copy(update={"triton": "4.0"})), "warning", "newer", "Update"),
    (stack.check_assembler(HERE), "ok", "ptxas 12.8", ""),
    (stack.check_miscompilations(with_ptxas("12.8")), "warning", "triton/issues/9433", "ptxas 13.3 or newer"),
    (stack.check_miscompilations(with_ptxas("13.4", "3.10.0")), "ok", "Triton 3.10.0 with ptxas 13.4", ""),
    (stack.check_miscompilations(CPU), "not here", "no NVIDIA GPU", ""),
    (stack.check_assembler(HERE.model_copy(update={"assembler": ""})), "failed", "no ptxas", "wheel"),
    (stack.check_compiler(HERE, needed=True), "ok", "gcc", ""),
    (check_kernel(KernelTrial(seconds=0.5, seen="on NVIDIA H200"), "on the GPU"), "ok", "0.5 s", ""),
    (
        check_kernel(KernelTrial(seconds=50, seen="under it"), "interpreted"),
        "warning",
        "slowly",
        "local disk",
    ),
    (check_kernel(NotSeen("boom", "Fix it."), "compiled"), "failed", "boom", "Fix it."),
    (check_kernel(None, "on the GPU"), "not here", "no GPU", ""),
    (disk.check_space([FOLDER]), "ok", "1024.0 GiB are free", ""),
    (disk.check_space([dataclasses.replace(FOLDER, free_bytes=2**30)]), "warning", "1.0 GiB", "TMPDIR"),
    (disk.check_space([dataclasses.replace(FOLDER, free_bytes=9)]), "failed", "0 MiB", "TMPDIR"),
    (disk.check_runs(200), "ok", "200 run folders", ""),
    (disk.check_runs(5000), "warning", "5000 run folders", "rm -r"),
    (programs.check_sanitizer(None), "not here", "not installed", "CUDA toolkit"),
    (programs.check_ncu(Path("/x/ncu")), "ok", "/x/ncu", ""),
    (programs.check_variables({}), "ok", "No environment variable", ""),
    (programs.check_variables({"CUDA_LAUNCH_BLOCKING": "0"}), "ok", "No environment variable", ""),
    (programs.check_variables({"CUDA_VISIBLE_DEVICES": "-1"}), "warning", "hides", "Unset"),
    (programs.check_variables({"CUDA_VISIBLE_DEVICES": ""}), "warning", "hides", "Unset"),
    (
        programs.check_variables({"TRITON_INTERPRET": "1"}),
        "warning",
        "TRITON_INTERPRET=1 has",
        "unset TRI",
    ),
    (programs.check_variables({"CC": "/no/gcc"}), "failed", "CC=/no/gcc names nothing", "unset CC"),
    (
        check_fact(NotSeen("no answer within 10 s"), disk.check_runs),
        "warning",
        "no answer within 10 s",
        "again",
    ),
)


def test_a_check_says_what_was_seen_and_what_to_do() -> None:
    for outcome, state, said, fix in JUDGED:
        assert outcome.state == state, outcome
        assert said in outcome.seen
        assert fix in outcome.fix
        assert outcome.seen.endswith(".")
        assert bool(outcome.fix) >= (state in ("warning", "failed"))


def test_a_c_compiler_is_missed_only_where_there_is_a_gpu() -> None:
    without = HERE.model_copy(update={"compiler_problem": "there is neither gcc nor clang on PATH"})
    assert stack.check_compiler(without, needed=True).state == "failed"
    assert stack.check_compiler(without, needed=False).state == "not here"
    assert "apt install gcc python3-dev" in stack.check_compiler(without, needed=True).fix


def test_the_oldest_versions_are_those_that_the_package_requires() -> None:
    required = {r.name: str(r.specifier) for r in map(Requirement, PROJECT["dependencies"])}
    assert required["torch"] == f">={stack.version_text(stack.OLDEST_TORCH)}"
    assert required["triton"] == f">={stack.version_text(stack.OLDEST_TRITON)}"
    assert PROJECT["requires-python"] == f">={stack.version_text(stack.OLDEST_PYTHON)}"


def test_a_folder_that_cannot_be_written_or_holds_much_is_reported(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"x" * 100)
    read = disk.read_folder(tmp_path)
    assert (read.bytes, read.files, read.whole, read.problem) == (100, 1, True, "")
    assert disk.check_cache(read).state == "ok"
    absent = disk.read_folder(tmp_path / "not" / "yet")
    assert (absent.bytes, absent.problem) == (0, "")
    assert not (tmp_path / "not").exists()
    unwritable = disk.read_folder(Path("/proc/self"))
    assert disk.check_cache(unwritable).state == "failed"
    assert "PYTORCH_TO_TRITON_CACHE" in disk.check_cache(unwritable).fix
    large = dataclasses.replace(read, bytes=1 << 40, whole=False)
    assert disk.check_triton_cache(large, gpu=True).seen.startswith("More than 1024.0 GiB")
    noexec = dataclasses.replace(read, runs_code=False)
    assert disk.check_triton_cache(noexec, gpu=True).state == "failed"
    assert disk.check_triton_cache(noexec, gpu=False).state == "ok"


def test_a_held_lock_is_reported_with_its_holder() -> None:
    places.locks().mkdir(parents=True, exist_ok=True)
    (places.locks() / "cuda-7.holder").write_text(str(os.getpid()))
    with FileLock(places.locks() / "cuda-7.lock"):
        checked = disk.check_locks(disk.read_locks())
    assert checked.state == "warning"
    assert f"({os.getpid()}) holds cuda-7" in checked.seen
    assert disk.check_locks(disk.read_locks()).state == "ok"


def test_an_environment_of_a_launch_that_is_gone_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_TO_TRITON_CACHE", str(tmp_path))
    assert disk.check_environments(disk.read_environments()).state == "not here"
    folder = tmp_path / "environments" / "0.1.0-ab12"
    (folder / "bin").mkdir(parents=True)
    (tmp_path / "environments" / "0.1.0").symlink_to(folder.name)
    assert disk.check_environments(disk.read_environments()).state == "warning"
    (folder / "bin" / "python").touch()
    assert disk.check_environments(disk.read_environments()).state == "ok"


class Silent:
    async def progress(self, done: float, total: float | None, message: str) -> None: ...

    async def item(self, result: dict[str, object]) -> None: ...


@pytest.mark.anyio
async def test_a_look_that_hangs_or_raises_is_given_up_and_named() -> None:
    inquiry = Inquiry(Silent())
    hung = await inquiry.ask("the driver", lambda: in_thread(lambda: time.sleep(60)), 0.05)
    assert isinstance(hung, NotSeen)
    assert hung.why == "the driver: no answer within 0.05 s"
    raised = await inquiry.look("locks", lambda: 1 // 0)
    assert isinstance(raised, NotSeen)
    assert "ZeroDivisionError" in raised.why
    assert await inquiry.look("two", lambda: 2) == 2


def check(name: str, state: str, fix: str = "") -> CheckResult:
    return CheckResult.model_validate(
        {"name": name, "group": "GPU", "state": state, "seen": "So it is.", "fix": fix}
    )


def test_the_first_failure_says_what_to_do_next_and_a_person_sees_the_fixes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    checks = (check("a", "ok"), check("b", "failed", "Repair b."), check("c", "warning", "Mind c."))
    failed = conclude(checks, "python3", 1.0)
    assert (failed.verdict, failed.next_step) == ("unhealthy", "Repair b. Then run doctor again.")
    assert "1 of 3 checks failed: b." in failed.summary
    fine = conclude((checks[0], checks[2]), "python3", 1.0)
    assert (fine.verdict, fine.next_step) == ("healthy", "Mind c.")
    checks = (check("a", "ok"), check("b", "failed", "Repair b."), check("d", "not here", "Get d."))
    diagnosis = conclude(checks, "python3", 1.0)
    show_diagnosis(diagnosis)
    out = capfd.readouterr().out
    assert " ".join(out.split()).startswith(f"{diagnosis.summary} {diagnosis.next_step} GPU")
    assert "failed    b" in out
    assert "→ Repair b." in out
    assert "Get d." not in out
    assert "\x1b" not in out


def test_assistants_are_checked_for_an_entry_that_starts_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [one.state for one in client_checks()] == ["not here"]
    (tmp_path / ".cursor").mkdir()
    entry = {"command": "/gone/program", "args": ["serve"]}
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"pytorch-to-triton": entry}}))
    (tmp_path / ".claude.json").write_text("{}")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text("[mcp")
    found = {one.name: one for one in client_checks()}
    assert found["Cursor"].state == "warning"
    assert "/gone/program, which does not exist" in found["Cursor"].seen
    assert found["Cursor"].fix.endswith("install --client cursor")
    assert found["Claude Code"].state == "not here"
    assert found["Codex"].state == "warning"
    assert main(["install", "--client", "cursor"]) == 0
    assert {one.name: one.state for one in client_checks()}["Cursor"] == "ok"


def test_a_python_without_torch_fails_its_checks_and_no_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    assert main(["doctor", "--python", str(bare), "--json"]) == 3
    diagnosis = Diagnosis.model_validate_json(capfd.readouterr().out)
    states = {one.name: one for one in diagnosis.checks}
    assert states["Python and worker"].state == "failed"
    assert "torch" in states["Python and worker"].seen
    assert states["torch"].state == "not here"
    assert states["interpreted"].state == "failed"
    assert states["cache"].state == "ok"
    assert main(["doctor", "--python", "/no/python", "--json"]) == 3
    assert "cannot be started" in capfd.readouterr().out


def test_this_machine_is_looked_at_and_a_small_kernel_run_although_the_cache_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTORCH_TO_TRITON_CACHE", "/proc/self/cache")
    assert main(["doctor", "--json"]) == 3
    diagnosis = Diagnosis.model_validate_json(capfd.readouterr().out)
    assert diagnosis.python == sys.executable
    states = {check.name: check.state for check in diagnosis.checks}
    assert states["cache"] == "failed"
    for name in ("interpreted", "compiled", "Python and worker", "assembler"):
        assert states[name] == "ok"


@pytest.mark.gpu
@pytest.mark.anyio
async def test_on_a_gpu_the_kernel_runs_there(device: object) -> None:
    command = [sys.executable, "-m", "pytorch_to_triton_server", "doctor", "--json"]
    diagnosis = Diagnosis.model_validate_json((await anyio.run_process(command)).stdout)
    states = {(one.group, one.name): one.state for one in diagnosis.checks}
    assert states["kernels", "on the GPU"] == "ok"
    assert states["GPU", "driver"] == "ok"

"""A device has one holder at a time, whoever asks."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytorch_to_triton.jobs.device_lock import device_lock, device_of
from pytorch_to_triton.schema.job import Runtime

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_TO_TRITON_CACHE", str(tmp_path))


class Listener:
    def __init__(self) -> None:
        self.heard = anyio.Event()
        self.message = ""

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.message = message
        self.heard.set()

    async def item(self, result: dict[str, Any]) -> None:
        raise AssertionError("a lock has no items")


async def test_the_second_one_waits_is_reported_who_holds_it_and_gets_it_next() -> None:
    listener = Listener()
    order: list[str] = []

    async def second() -> None:
        async with device_lock("cuda-0", listener):
            order.append("second in")

    async with anyio.create_task_group() as tasks, device_lock("cuda-0"):
        tasks.start_soon(second)
        await listener.heard.wait()
        order.append("first out")
    assert order == ["first out", "second in"]
    assert listener.message == f"waiting for cuda-0, which process {os.getpid()} holds"


async def test_waiting_can_be_cancelled() -> None:
    async with device_lock("cuda-0"):
        with anyio.move_on_after(0.2) as limit:
            async with device_lock("cuda-0"):
                raise AssertionError("two hold one device")
        assert limit.cancelled_caught


async def test_two_devices_do_not_wait_for_each_other() -> None:
    async with device_lock("cuda-0"), device_lock("cuda-1"):
        pass


@pytest.mark.parametrize(
    ("devices", "visible", "name"),
    [
        (None, None, "cuda-0"),
        ("1", None, "cuda-1"),
        (None, "3,4", "cuda-3"),
        ("1", "3,4", "cuda-1"),
        (None, "GPU-8f/2", "cuda-GPU-8f_2"),
    ],
)
def test_the_device_is_the_first_that_a_runtime_sees(
    devices: str | None, visible: str | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert device_of(Runtime(python="python", interpreter=False, devices=devices)) == name


async def test_a_failing_holder_lets_go() -> None:
    with pytest.raises(LookupError):
        async with device_lock("cuda-0"):
            raise LookupError
    with anyio.fail_after(120):
        async with device_lock("cuda-0"):
            pass

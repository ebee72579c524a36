"""Each GPU of a machine has lanes of its own."""

import pytest

from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.sweep.executor import runtimes_of

DEVICE = Runtime(python="python", interpreter=False)


@pytest.mark.parametrize(
    ("visible", "count", "devices"),
    [
        (None, 1, [None]),
        ("3", 1, [None]),
        (None, 2, ["0", "1"]),
        ("2,3", 2, ["2", "3"]),
    ],
)
def test_a_runtime_for_each_gpu_that_may_be_used(
    visible: str | None, count: int, devices: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [runtime.devices for runtime in runtimes_of(DEVICE, count)] == devices

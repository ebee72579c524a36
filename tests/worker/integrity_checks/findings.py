"""Operators, launches, patches, flags, leftovers and tensors: each finds what is there."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from torch._subclasses.fake_tensor import FakeTensorMode
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from pytorch_to_triton.worker.integrity.operators import Launches, Operators
from pytorch_to_triton.worker.integrity.returned_tensors import aliases, plain
from pytorch_to_triton.worker.integrity.settings import Leftovers, Patches, SettingsSnapshot
from pytorch_to_triton.worker.interpreter.cuda_answers import Event
from pytorch_to_triton.worker.replacement import replaced


def until(condition: Callable[[], bool]) -> None:
    """Wait for what other threads and processes are about to do; a minute, and it is a fault."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never was so")


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def add_to(out_ptr, value):
    tl.atomic_add(out_ptr, value)


@triton.jit
def summing_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    add_to(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK))))


@triton.jit
def descriptor_kernel(source, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), source.load([0]))


def operators_are_counted_without_their_overloads() -> None:
    with Operators() as operators:
        x = torch.ones(2, 2)
        x @ x + x.mm(x)
        torch.nn.functional.softmax(x, -1)
    assert operators.counts == {"aten.ones": 1, "aten.mm": 2, "aten.add": 1, "aten._softmax": 1}


def operators_in_a_thread_are_counted() -> None:
    x = torch.ones(2, 2)
    with Operators() as operators:
        thread = threading.Thread(target=torch.mm, args=(x, x))
        thread.start()
        thread.join()
    assert operators.counts == {"aten.mm": 1}


def operators_of_a_backward_pass_are_counted() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    with Operators() as operators:
        (x @ x).sum().backward()
    assert operators.counts["aten.mm"] == 3


def an_operator_handed_to_triton_is_counted() -> None:
    x, out = torch.ones(4), torch.empty(4)
    config = triton.Config({"BLOCK": 4}, pre_hook=lambda arguments: torch.neg(x, out=out))
    tuned = triton.autotune([config], key=["n"])(copy_kernel)
    with Operators() as operators:
        tuned[(1,)](x, out, 4)
    assert operators.counts == {"aten.neg": 1}


def what_follows_from_a_kernels_tensor_is_made_by_triton() -> None:
    x, out, other, target = torch.ones(4), torch.empty(4), torch.ones(4), torch.zeros(4)
    with Operators() as operators, Launches(operators):
        copy_kernel[(1,)](x, out, 4, 4)
        view, cast = out.view(2, 2), out.to(torch.float64)
        target.copy_(out)
        later, unrelated = (cast + 1).clone(), other + 1
    for tensor in (out, view, cast, target, later, torch.as_strided(out, (2,), (1,))):
        assert operators.made_by_triton(tensor)
    assert not operators.made_by_triton(unrelated)


def a_new_tensor_in_freed_memory_is_not_made_by_triton() -> None:
    with Operators() as operators:
        for _ in range(50):
            tensor = torch.empty(64)
            assert not operators.made_by_triton(tensor)
            operators.touched(tensor, "add_kernel")
            del tensor


def a_launch_is_recorded_with_its_place() -> None:
    x, out = torch.ones(4), torch.empty(4)
    with Operators() as operators, Launches(operators) as launches:
        for _ in range(3):
            copy_kernel[(1,)](x, out, 4, 4)
    (launch,) = launches.launched
    line = Path(__file__).read_text().splitlines()[launch["line"]]
    assert line.startswith("def copy_kernel")
    assert (launch["kernel"], launch["file"], launch["count"]) == ("copy_kernel", __file__, 3)
    assert launch["atomics"] is False


def a_warm_up_and_an_empty_grid_are_no_launch() -> None:
    x, out = torch.ones(4), torch.empty(4)
    with Operators() as operators, Launches(operators) as launches:
        copy_kernel[(0,)](x, out, 4, 4)
        copy_kernel[lambda meta: (0, 1)](x, out, 4, 4)
        copy_kernel.run(x, out, 4, 4, grid=(1,), warmup=True)
    assert launches.launched == []
    assert not operators.made_by_triton(out)


def atomics_are_found_in_functions_that_a_kernel_calls() -> None:
    x, out = torch.ones(4), torch.zeros(1)
    with Operators() as operators, Launches(operators) as launches:
        summing_kernel[(1,)](x, out, 4)
    assert [launch["atomics"] for launch in launches.launched] == [True]


def a_tensor_behind_a_descriptor_is_an_argument() -> None:
    x, out = torch.ones(4), torch.zeros(4)
    with Operators() as operators, Launches(operators):
        descriptor_kernel[(1,)](TensorDescriptor.from_tensor(x, [4]), out, 4)
    assert operators.made_by_triton(x)


def changed(owner: Any, name: str, value: object) -> list[str]:
    """The names of patches found while one attribute is another."""
    patches = Patches()
    with replaced(owner, name, value):
        return [patch.name for patch in patches.changed()]


def replaced_functions_are_found() -> None:
    def fake(*args: Any, **kwargs: Any) -> None: ...

    places: tuple[tuple[Any, str, str], ...] = (
        (torch, "allclose", "torch.allclose"),
        (torch.Tensor, "add", "torch.Tensor.add"),
        (torch.cuda, "synchronize", "torch.cuda.synchronize"),
        (torch.cuda.Event, "elapsed_time", "torch.cuda.Event.elapsed_time"),
        (torch.testing, "assert_close", "torch.testing.assert_close"),
        (triton.testing, "do_bench", "triton.testing.do_bench"),
        (tl, "dot", "triton.language.dot"),
        (JITFunction, "run", "triton.runtime.jit.JITFunction.run"),
        (time, "perf_counter", "time.perf_counter"),
        (os, "replace", "os.replace"),
        (Event, "elapsed_time", f"{Event.__module__}.Event.elapsed_time"),
    )
    for owner, name, full in places:
        assert full in changed(owner, name, fake), full
    assert changed(torch.cuda, "synchronize", torch.cuda.current_device) == ["torch.cuda.synchronize"]


def new_attributes_are_no_patches() -> None:
    assert changed(torch, "my_own_function", print) == []


def changed_settings_are_found() -> None:
    def set_cache(folder: str) -> None:
        os.environ.update(TRITON_CACHE_DIR=folder) if folder else os.environ.pop("TRITON_CACHE_DIR")

    allow_tf32 = partial(setattr, torch.backends.cuda.matmul, "allow_tf32")
    on_alarm = partial(signal.signal, signal.SIGALRM)
    changes: tuple[tuple[str, Callable[[Any], object], object, object], ...] = (
        ("torch.get_default_dtype", torch.set_default_dtype, torch.float64, torch.float32),
        ("torch.backends.cuda.matmul.allow_tf32", allow_tf32, True, False),
        ("os.getcwd", os.chdir, "/", os.getcwd()),
        ("os.environ['TRITON_CACHE_DIR']", set_cache, "/tmp", ""),
        ("signal SIGALRM", on_alarm, lambda *_: None, signal.getsignal(signal.SIGALRM)),
    )
    missed = []
    for name, change, value, before in changes:
        for to in (value, before):  # the latter removes a variable
            flags = SettingsSnapshot()
            change(to)
            if name not in [setting.name for setting in flags.changed()]:
                missed.append((name, to))
    assert missed == []


def unchanged_settings_are_none() -> None:
    assert SettingsSnapshot().changed() == ()


def a_setting_that_is_put_back_after_the_call_is_found() -> None:
    flags = SettingsSnapshot()
    sys.setprofile(lambda *_: None)
    flags.note()
    sys.setprofile(None)
    assert [change.name for change in flags.changed()] == ["sys.setprofile"]


def threads_that_still_run_are_found() -> None:
    leftovers, done = Leftovers(), threading.Event()
    x, out = torch.ones(4), torch.empty(4)
    threads = [
        threading.Thread(target=done.wait, name="lingering"),
        threading.Thread(target=lambda: done.wait() and copy_kernel[(1,)](x, out, 4, 4), name="launching"),
    ]
    for thread in threads:
        thread.start()
    until(lambda: len(leftovers.running()) == 2)
    found = leftovers.running()
    done.set()
    for thread in threads:
        thread.join()
    assert [(thread.kind, thread.name) for thread in found] == [
        ("thread", "lingering"),
        ("thread", "launching"),
    ]
    until(lambda: leftovers.running() == ())


def a_thread_that_torch_runs_is_no_leftover() -> None:
    leftovers, done = Leftovers(), threading.Event()
    code_of_torch = eval(compile("lambda done: done.wait()", torch.__file__, "eval"))
    thread = threading.Thread(target=code_of_torch, args=(done,))
    thread.start()
    assert leftovers.running() == ()
    done.set()
    thread.join()


class Proxy(torch.Tensor):
    """A subclass."""


def tensors_that_are_not_what_they_seem() -> None:
    x = torch.ones(4)
    x.sum = lambda: 0  # type: ignore[assignment]
    short = torch.ones(4)
    short.untyped_storage().resize_(4)
    with FakeTensorMode():
        fake = torch.ones(4)
    reasons = {
        "subclass": torch.ones(4).as_subclass(Proxy),
        "attribute sum": x,
        "4 bytes and it needs 16": short,
        "meta device": torch.ones(4, device="meta"),
        "FakeTensor": fake,
        "sparse": torch.ones(4).to_sparse(),
    }
    for reason, value in reasons.items():
        assert reason in str(plain(value)), (reason, plain(value))


def plain_tensors_are_plain() -> None:
    x = torch.ones(4, 4)
    for value in (x, x.t(), x[1:, ::2], torch.nn.Parameter(x), torch.empty(0), x.expand(2, 4, 4), 3, None):
        assert plain(value) is None


def shared_memory_is_named() -> None:
    x, both = torch.ones(4), torch.ones(8)
    outputs = [
        ("out[0]", x[1:]),
        ("out[1]", both[:5]),
        ("out[2]", both[4:]),
        ("out[3]", torch.ones(4)),
        ("out[4]", x.view(torch.int32)[::2]),
        ("n", 3),
    ]
    assert aliases(outputs, [("x", x)]) == [
        ("out[0]", "x"),
        ("out[2]", "out[1]"),
        ("out[4]", "x"),
        ("out[4]", "out[0]"),
    ]


def tensors_in_each_others_gaps_share_no_memory() -> None:
    pairs, row = torch.ones(6, 2), torch.ones(1, 4).expand(3, 4)
    outputs = [("even", pairs[:, 0]), ("odd", pairs[:, 1]), ("left", row[:, :2]), ("right", row[:, 2:])]
    assert aliases(outputs, [("nothing", pairs[:0])]) == []
    assert aliases([("last", row[2:])], outputs) == [("last", "left"), ("last", "right")]


def a_number_of_a_kernels_is_told_from_one_of_an_input() -> None:
    x, total = torch.ones(4), torch.empty(())
    with Operators([x]) as operators:
        x[0].item()
        assert not operators.reads_kernels
        operators.touched(total, "add_kernel")
        (total * 2).item()
    assert operators.reads_kernels


def origins_name_what_a_tensor_was_copied_or_computed_from() -> None:
    x = torch.ones(2, 4)
    with Operators([x]) as operators:
        copied, cast = x.t().contiguous(), x.to(torch.float64).view(-1)
        indices = x.topk(2).indices
        routed = indices.to(torch.int32)
        zeros = torch.zeros_like(x)
    assert operators.origins(copied) == operators.origins(cast) == operators.origins(x[1:]) == {"input"}
    assert operators.origins(routed) == operators.origins(indices) == {"aten.topk"}
    assert operators.origins(zeros) == {"aten.zeros_like"}

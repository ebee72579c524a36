"""What torch.cuda and triton's driver answer on the fake GPU."""

import torch
import triton
from run_checks import refusal
from torch import Tensor
from triton.runtime import driver


def there_is_one_gpu_and_it_is_current() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(0)
    torch.cuda.set_device("cuda:0")
    assert torch.accelerator.current_accelerator().type == "cuda"
    assert torch.get_device_module("cuda") is torch.get_device_module() is torch.cuda
    with torch.cuda.device(0), torch.cuda.device_of(torch.empty(3, device="cuda")):
        torch.cuda.synchronize("cuda")


def torch_and_the_driver_describe_the_same_gpu() -> None:
    device, limits = torch.cuda.get_device_properties("cuda"), driver.active.utils.get_device_properties(0)
    assert device.multi_processor_count == limits["multiprocessor_count"]
    assert device.shared_memory_per_block == limits["max_shared_mem"]
    assert device.warp_size == limits["warpSize"] == driver.active.get_current_target().warp_size
    assert (device.major, device.minor) == torch.cuda.get_device_capability() == (8, 0)
    assert driver.active.get_current_target().backend == "cuda"
    assert driver.active.get_current_target().arch == 80
    assert device.name == torch.cuda.get_device_name(0)
    assert device.total_memory == torch.cuda.mem_get_info()[1] > 1 << 30
    assert driver.active.get_active_torch_device() == torch.empty(1, device="cuda").device


def streams_and_events_are_always_ready() -> None:
    stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() is stream
        x = torch.ones(3, device="cuda")
        x.record_stream(stream)
        event.record()
    stream.wait_stream(torch.cuda.current_stream())
    stream.wait_event(event)
    assert event.query()
    assert torch.cuda.current_stream().cuda_stream == 0
    assert not torch.cuda.is_current_stream_capturing()


def nothing_is_timed_or_captured() -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    assert "time" in refusal(start.elapsed_time, end)
    assert "time" in refusal(triton.testing.do_bench, lambda: None)
    assert "CUDA graph" in refusal(torch.cuda.CUDAGraph)


def a_generator_of_the_gpu_gives_the_same_numbers_for_the_same_seed() -> None:
    generator = torch.Generator(device="cuda").manual_seed(3)
    assert generator.device == torch.device("cuda:0")
    assert isinstance(generator, torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)
    first = torch.randn(8, device="cuda", generator=generator)
    assert torch.equal(first, torch.randn(8, device="cuda", generator=generator.manual_seed(3)))
    torch.cuda.manual_seed_all(5)
    state = torch.cuda.get_rng_state()
    first = torch.rand(8, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.rand(8, device="cuda"))
    torch.manual_seed(5)
    assert torch.equal(first, torch.rand(8, device="cuda"))
    with torch.random.fork_rng():
        torch.rand(8)


def mixed_precision_and_memory_questions_are_answered() -> None:
    class Squared(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, grad: Tensor) -> Tensor:
            return 2 * ctx.saved_tensors[0] * grad

    x = torch.ones(3, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        Squared.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == 0
    assert x.detach().type() == "torch.cuda.FloatTensor"
    torch.cuda.nvtx.range_push("part")
    torch.cuda.nvtx.range_pop()


def what_would_reach_a_real_gpu_says_so() -> None:
    assert "needs a GPU" in refusal(torch.cuda._lazy_init)

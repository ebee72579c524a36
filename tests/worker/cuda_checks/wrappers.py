"""Wrappers written for a GPU run as they are; memory on the host and on the GPU is distinguished."""

import numpy as np
import torch
import triton
import triton.language as tl
from run_checks import refused
from torch import Tensor

from pytorch_to_triton.worker.interpreter.fake_cuda import device_of, reachable_by_kernels


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def doubled(x: Tensor, out: Tensor) -> Tensor:
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        assert x.is_cuda
        return doubled(x, torch.empty(x.shape, device="cuda"))

    @staticmethod
    def backward(ctx, grad):
        assert grad.is_cuda
        assert grad.device.type == "cuda"
        return doubled(grad.contiguous(), torch.empty(grad.shape, device="cuda"))


def a_wrapper_that_asks_for_cuda_everywhere_computes_what_it_should() -> None:
    x = torch.randn(100, device="cuda")
    assert x.is_cuda
    assert not x.is_cpu
    assert x.device.type == "cuda"
    assert x.get_device() == x.device.index == 0
    assert str(x.device) == "cuda:0"
    assert isinstance(x.device, torch.device)
    with torch.cuda.device(x.device):
        out = doubled(x, torch.empty_like(x, device=x.device))
    torch.cuda.synchronize()
    assert out.device == x.device == torch.device("cuda:0")
    assert torch.equal(out, x + x)


def every_way_to_name_the_gpu_allocates_on_it() -> None:
    for device in ("cuda", "cuda:0", 0, torch.device("cuda"), torch.device(0), torch.device("cuda", 0)):
        assert torch.empty(3, device=device).device == torch.device("cuda:0")
        assert torch.zeros(3).to(device).is_cuda
        assert torch.zeros(3).to(device, torch.float16).dtype == torch.float16
        assert torch.zeros(3).to(device=device, dtype=torch.int32).is_cuda
        assert torch.as_tensor([1.0], device=device).is_cuda
        assert torch.as_tensor(torch.zeros(2), device=device).is_cuda
    for device in (None, 0, "cuda", torch.device("cuda:0")):
        assert torch.zeros(3).cuda(device).is_cuda
        assert torch.zeros(3).cuda(device=device, non_blocking=True).is_cuda
    assert torch.ops.aten.empty.memory_format([2], device=torch.device("cuda")).is_cuda


def a_second_gpu_is_not_there() -> None:
    for call in (lambda: torch.empty(3, device="cuda:1"), lambda: torch.zeros(3).cuda(1)):
        assert "invalid device ordinal" in refused(RuntimeError, call)


def memory_that_was_not_asked_for_on_the_gpu_lies_on_the_host() -> None:
    x = torch.randn(4, device="cuda")
    on_host = [torch.empty(3), torch.tensor([1.0]), torch.from_numpy(np.ones(3)), torch.zeros(3) + 1, x.cpu()]
    on_host += [x.to("cpu"), torch.empty(3)[1:], torch.empty_like(x, device="cpu"), *torch.ones(4).split(2)]
    on_gpu = [x[1:], x.view(2, 2), x + 1, torch.zeros_like(x), x.new_empty(3), torch.zeros(3).cuda() * 2]
    on_gpu += [torch.zeros(4).to(x), torch.zeros(4).type_as(x) + x, x * torch.tensor(2.0), *x.split(2)]
    assert {tensor.device.type for tensor in on_host} == {"cpu"}
    assert {tensor.device.type for tensor in on_gpu} == {"cuda"}
    assert not any(map(reachable_by_kernels, on_host))
    assert all(map(reachable_by_kernels, on_gpu))
    assert [tensor.get_device() for tensor in (x, x.cpu())] == [0, -1]


def an_output_allocated_on_the_host_is_noticed_even_after_a_kernel_wrote_it() -> None:
    x = torch.randn(40, device="cuda")
    forgotten = doubled(x, torch.empty(x.shape))
    assert device_of(forgotten).type == "cpu"
    assert not reachable_by_kernels(forgotten)


def a_copy_between_host_and_gpu_is_a_copy() -> None:
    x = torch.zeros(3, device="cuda")
    for copy in (x.cpu(), x.to("cpu"), torch.as_tensor(x, device="cpu")):
        copy += 1
    host = torch.zeros(3)
    copy = host.cuda()
    copy += 1
    assert x.tolist() == host.tolist() == [0.0] * 3
    assert x.cuda() is x
    assert x.to("cuda") is x
    assert host.cpu() is host


def numpy_takes_a_tensor_from_the_host_only() -> None:
    x = torch.ones(3, device="cuda")
    assert "Tensor.cpu()" in refused(TypeError, x.numpy)
    assert "Tensor.cpu()" in refused(TypeError, np.asarray, x)
    assert x.cpu().numpy().tolist() == x.numpy(force=True).tolist() == [1.0] * 3


def operands_on_two_devices_are_refused_as_a_gpu_refuses_them() -> None:
    x = torch.ones(3, device="cuda")
    for call in (lambda: x + torch.ones(3), lambda: torch.cat([x, torch.ones(3)]), lambda: x @ torch.ones(3)):
        assert "same device" in refused(RuntimeError, call)
    assert (x * torch.tensor(2.0)).tolist() == [2.0] * 3
    assert x[torch.arange(2)].is_cuda


def pinned_memory_is_on_the_host_and_reachable() -> None:
    for pinned in (torch.ones(3).pin_memory(), torch.empty(3, pin_memory=True)):
        assert pinned.is_pinned()
        assert pinned.device.type == "cpu"
        assert reachable_by_kernels(pinned)
    assert not torch.ones(3).is_pinned()


def a_backward_pass_finds_the_gpu_too() -> None:
    x = torch.randn(30, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 30
    assert x.grad.is_cuda
    (grad,) = torch.autograd.grad(Double.apply(Double.apply(x)).sum(), x)
    assert grad.tolist() == [4.0] * 30


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        assert self.linear.weight.is_cuda
        return doubled(self.linear(x) * self.scale, torch.empty(x.shape, device=x.device))


def a_module_moves_to_the_gpu_with_its_parameters() -> None:
    x = torch.randn(3, 4, device="cuda")
    for module in (Scaled().cuda(), Scaled().to("cuda"), Scaled().to(x.device, torch.float32)):
        with torch.no_grad():
            assert module(x).is_cuda
            state = {key: torch.zeros_like(value) for key, value in module.state_dict().items()}
            assert torch.func.functional_call(module, state, (x,)).tolist() == [[0.0] * 4] * 3
    assert Scaled().linear.weight.device.type == "cpu"


def a_default_device_of_cuda_is_the_gpu() -> None:
    with torch.device("cuda"):
        assert torch.zeros(3).is_cuda
        assert torch.nn.Linear(2, 2).weight.is_cuda
        assert torch.zeros(3, device="cpu").device.type == "cpu"
    torch.set_default_device("cuda")
    assert torch.get_default_device() == torch.device("cuda:0")
    assert torch.zeros(3).is_cuda
    assert torch.zeros(3, device="cpu").device.type == "cpu"
    assert torch.nn.functional.one_hot(torch.tensor([1, 2])).is_cuda
    torch.set_default_device(None)
    assert torch.zeros(3).device.type == "cpu"


def a_meta_tensor_stays_one() -> None:
    assert torch.empty(3, device="meta").device.type == "meta"
    assert not torch.empty(3, device="meta").is_cuda


def an_operator_registered_for_gpus_runs() -> None:
    @torch.library.custom_op("fake_cuda::double", mutates_args=(), device_types="cuda")
    def double(x: Tensor) -> Tensor:
        assert x.is_cuda
        return doubled(x, torch.empty(x.shape, device="cuda"))

    @double.register_kernel("cpu")
    def _(x):
        raise AssertionError("the CPU's kernel was taken")

    library = torch.library.Library("fake_cuda", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: doubled(x, torch.empty(x.shape, device=x.device)), "CUDA")
    x = torch.randn(20, device="cuda")
    assert torch.equal(double(x), x * 2)
    assert torch.equal(torch.ops.fake_cuda.twice(x), x * 2)
    assert double(x).is_cuda


def a_triton_operator_runs() -> None:
    @torch.library.triton_op("fake_cuda::triton_double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        out = torch.empty(x.shape, device="cuda")
        torch.library.wrap_triton(double_kernel)[(2,)](x, out, x.numel(), BLOCK=16)
        return out

    x = torch.randn(20, device="cuda")
    assert torch.equal(double(x), x * 2)

"""Products with a stride of another tensor, by its name or by a launch, where the own one is not used."""

import ast
from collections.abc import Iterator, Mapping

from pytorch_to_triton.audit.analysis.launched_tensors import allocation, stride_of, tensors_of
from pytorch_to_triton.audit.call_arguments import factors
from pytorch_to_triton.audit.examples import ROW, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel

_POINTER_WORDS = frozenset({"ptr", "pointer", "ptrs", "p"})
_SWAPPED = jit(
    "x = tl.load(x_ptr + tl.program_id(0) * x_row_stride + tl.arange(0, B))",
    "y_ptr += tl.program_id(0) * x_row_stride",
    "tl.store(y_ptr + tl.arange(0, B), x)",
    takes="x_ptr, y_ptr, x_row_stride, y_row_stride, B: tl.constexpr",
)
_HEADS = jit(
    ROW,
    "q = tl.load(q_ptr + tl.program_id(0) * stride_qb + i * stride_qm)",
    "tl.store(k_ptr + tl.program_id(0) * stride_qb + i * stride_kn, q)",
    takes="q_ptr, k_ptr, stride_qb, stride_qm, stride_kb, stride_kn, B: tl.constexpr",
)
_LIKE = jit(
    ROW,
    "tl.store(dst + i[:, None] * sx + i[None, :], tl.load(src + i[None, :] * sx + i[:, None]))",
    takes="src, dst, sx, so, B: tl.constexpr",
) + run("out = torch.empty_like(x)", "kernel[(1,)](x, out, x.stride(0), out.stride(0), B=32)", takes="x")


@kernel_rule(
    "high",
    "correctness",
    bad=(_HEADS, _SWAPPED),
    # The output is laid out as the input is.
    good=(_LIKE,),
)
def stride_of_other_tensor(kernel: SourceKernel) -> Iterator[Fault]:
    """The address of one tensor is computed with the strides of another.

    It is right only as long as both tensors have the same shape and layout.

    Fix: multiply each offset with the stride of the tensor that the address is in.
    """
    yield from _misnamed(kernel)
    yield from _mispassed(kernel)


def _misnamed(kernel: SourceKernel) -> Iterator[Fault]:
    """By their names."""
    if not any(_is_stride(name) for name in kernel.parameters):
        return
    stems = {access.pointer: _stem(access.pointer) for access in kernel.accesses if access.pointer}
    for access in kernel.accesses:
        if access.pointer is None:
            continue
        for stride, other, own in _swapped_strides(access, stems, kernel):
            yield Fault(
                stride,
                f"{stride.id} is a stride of {other}, and the address is in {access.pointer}, whose own "
                f"{own} is not used for it: the address is wrong where the two tensors differ in layout.",
                f"Use {own} here.",
                own,
                severity="low" if _is_meant(stems[access.pointer], kernel) else None,
            )


def _is_meant(stem: str, kernel: SourceKernel) -> bool:
    """Whether none of several strides of a tensor is ever used: the kernel takes its layout for another's."""
    own = {name for name in kernel.parameters if _is_stride(name) and _other_name(name, stem, "") is not None}
    used = {node.id for node in kernel.nodes if isinstance(node, ast.Name)}
    return len(own) > 1 and not own & used


def _mispassed(kernel: SourceKernel) -> Iterator[Fault]:
    """By what the launch passes: the stride of one tensor for a place in another, whose own is left over."""
    for launch in kernel.launches:
        tensors = tensors_of(launch)
        strides = {name: stride_of(value, launch) for name, value in launch.given.items()}
        passed = {name: one.tensor for name, one in strides.items() if one and one.tensor in tensors.values()}
        for access in kernel.accesses:
            tensor = tensors.get(access.pointer or "", "")
            for foreign, own in _foreign(access, tensor, passed, kernel) if tensor else ():
                if _is_laid_out_like(tensor, passed[foreign.id], launch):
                    continue
                yield Fault(
                    foreign,
                    f"The launch passes a stride of {passed[foreign.id]} for {foreign.id}, and the address "
                    f"is in {access.pointer}, which is {tensor}, and whose own {own} is not used for it.",
                    f"Use {own} here.",
                    own,
                )


def _foreign(
    access: KernelAccess, tensor: str, passed: Mapping[str, str], kernel: SourceKernel
) -> Iterator[tuple[ast.Name, str]]:
    """Each stride of another tensor in an address, with the one own stride that is left over."""
    used, multiplied = _names_in(access, kernel)
    left = [name for name, owner in passed.items() if owner == tensor and name not in used]
    if len(left) == 1:
        yield from ((name, left[0]) for name in multiplied if passed.get(name.id, tensor) != tensor)


def _names_in(access: KernelAccess, kernel: SourceKernel) -> tuple[set[str], list[ast.Name]]:
    """All names that an address is made from, and those of them that are factors."""
    made_from = kernel.direct_origins(access.address)
    multiplied = [factor for node in made_from for factor, _ in factors(node) if isinstance(factor, ast.Name)]
    return {node.id for node in made_from if isinstance(node, ast.Name)}, multiplied


def _is_laid_out_like(one: str, other: str, launch: LaunchSite) -> bool:
    """Whether one of two tensors is made like the other, so that their strides agree."""
    for made, like in ((one, other), (other, one)):
        path, call = allocation(made, launch) or ("", None)
        is_copy = path.endswith(("_like", "clone", "contiguous"))
        if call and is_copy and like in {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}:
            return True
    return False


def _swapped_strides(
    access: KernelAccess, stems: dict[str, str], kernel: SourceKernel
) -> Iterator[tuple[ast.Name, str, str]]:
    """Each stride in an address that is another pointer's, with that pointer and the stride to use."""
    used, multiplied = _names_in(access, kernel)
    strides = [name for name in multiplied if name.id in kernel.parameters and _is_stride(name.id)]
    for node in sorted(strides, key=lambda stride: (stride.lineno, stride.col_offset)):
        for other, stem in stems.items():
            if access.pointer is None or other == access.pointer or stem == stems[access.pointer]:
                continue
            own = _other_name(node.id, stem, stems[access.pointer])
            if own in kernel.parameters and own not in used:
                yield node, other, own


def _is_stride(name: str) -> bool:
    return "stride" in name.lower()


def _stem(pointer: str) -> str:
    """`q` for q_ptr, Q and p_q; the whole name where it says nothing else."""
    words = [word for word in pointer.split("_") if word and word.lower() not in _POINTER_WORDS]
    return "_".join(words).lower() or pointer.lower()


def _other_name(stride: str, stem: str, to: str) -> str | None:
    """`stride_kb` for stride_qb, and `y_row_stride` for x_row_stride; None where the name lacks the stem."""
    before, after = f"_{stride}_", None
    if f"_{stem}_" in before:
        after = before.replace(f"_{stem}_", f"_{to}_", 1)
    else:
        words = stride.split("_")
        for place, word in enumerate(words):
            if len(stem) == 1 and len(word) == 2 and word.startswith(stem):
                after = "_".join(["", *words[:place], to + word[1:], *words[place + 1 :], ""])
                break
    return after[1:-1] if after else None

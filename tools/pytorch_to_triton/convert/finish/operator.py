"""The registration: `run` as an operator of PyTorch, with shapes for tracing and with gradients.

An operator is opaque to torch.compile, so it takes any `run`: one with branches, a kernel of the interpreter,
launches that nothing could trace.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytorch_to_triton.convert.finish.recipe import Recipe

OPERATOR = '''\
def {owned}(results, inputs):
    """The results contiguous, in memory of their own: all that an operator of PyTorch may return."""
    taken = {{tensor.untyped_storage().data_ptr() for tensor in inputs}}
    found = []
    for result in results:
        result = result.contiguous()
        if result.untyped_storage().data_ptr() in taken:
            result = result.clone()
        taken.add(result.untyped_storage().data_ptr())
        found.append(result)
    return found


def {like}(tensor):
    """An empty tensor of the same shape and dtype, contiguous."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


@torch.library.custom_op("{namespace}::{name}", mutates_args={written})
def {operator}({annotated}) -> {returns}:
    """`run` as one operator, which torch.compile takes as it is."""
    {result}


@{operator}.register_fake
def _({names}):
    """Shapes and dtypes alone, as PyTorch's own function gives them."""
    {shapes}'''

GRADIENTS = '''\
OUTSIDE = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()


@torch.library.custom_op("{namespace}::{name}_backward", mutates_args=())
def {backward}(grads: list[torch.Tensor], {annotated}) -> list[torch.Tensor]:
    """The gradients of its tensors: `run` once more, with gradients, as only its inputs are saved."""
    # Within an operator PyTorch records nothing for autograd, unless it is told to do as outside of it.
    with torch._C._ForceDispatchKeyGuard(*OUTSIDE), torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in ({leaves})]
        {unpacked} = leaves
        results = {results}
        pairs = [(r, grad) for r, grad in zip(results, grads) if r.requires_grad]
        outputs, given = zip(*pairs)
        found = torch.autograd.grad(outputs, leaves, given, allow_unused=True)
    found = [torch.zeros_like(x) if grad is None else grad for x, grad in zip(leaves, found)]
    return {owned}(found, leaves)


@{backward}.register_fake
def _(grads, {names}):
    """Each gradient is like its tensor."""
    return [{like}(tensor) for tensor in ({leaves})]


def {save}(ctx, inputs, output):
    {saved_names} = inputs
    ctx.save_for_backward({tensors})
    ctx.numbers = ({numbers})


def {differentiate}(ctx, {grad_names}):
    {saved_tensors} = ctx.saved_tensors
    {found} = {backward}([{grad_names}], {from_context})
    return {returned}


{operator}.register_autograd({differentiate}, setup_context={save})'''


def registration(recipe: Recipe, names: Mapping[str, str]) -> list[str]:
    """The blocks of source; `names` says what its functions are called, by what they are for."""
    texts = {**names, **of_operator(recipe, names), "namespace": recipe.module_name}
    if not recipe.backward or not any(operand.has_gradient for operand in recipe.operands):
        return [OPERATOR.format(**texts)]
    return [OPERATOR.format(**texts), GRADIENTS.format(**texts, **of_gradients(recipe))]


def of_operator(recipe: Recipe, names: Mapping[str, str]) -> dict[str, str]:
    """What the templates say of parameters and results."""
    called = f"run({recipe.from_operands})"
    traced = f"reference({recipe.from_copies})"
    inputs = tuple_source([tensor.name for tensor in recipe.tensors])
    match recipe.structure:
        case "none":
            result, shapes, returns = called, "return None", "None"
        case "single":
            result = f"return {names['owned']}([{called}], {inputs})[0]"
            shapes, returns = f"return {names['like']}({traced})", "torch.Tensor"
        case _:
            result = f"return tuple({names['owned']}({called}, {inputs}))"
            shapes = f"return tuple({names['like']}(result) for result in {traced})"
            returns = f"tuple[{', '.join(['torch.Tensor'] * recipe.outputs)}]"
    return {
        "name": recipe.name,
        "annotated": ", ".join(f"{operand.name}: {operand.annotation}" for operand in recipe.operands),
        "names": ", ".join(operand.name for operand in recipe.operands),
        "returns": returns,
        "result": result,
        "shapes": shapes,
        "written": tuple_source([f'"{name}"' for name in recipe.written]) if recipe.written else "()",
        "results": f"[{called}]" if recipe.structure == "single" else called,
    }


def of_gradients(recipe: Recipe) -> Mapping[str, str]:
    """What the templates say of saving and of the backward pass."""
    trained = [operand.name for operand in recipe.operands if operand.has_gradient]
    tensors = [tensor.name for tensor in recipe.tensors]
    numbers = [operand.name for operand in recipe.operands if not operand.is_tensor]
    grads = ["grad"] if recipe.outputs == 1 else [f"grad_{i}" for i in range(recipe.outputs)]
    from_context = [
        f"ctx.numbers[{numbers.index(operand.name)}]" if not operand.is_tensor else operand.name
        for operand in recipe.operands
    ]
    return {
        "leaves": ", ".join(trained) + ("," if len(trained) == 1 else ""),
        "unpacked": targets(trained),
        "saved_names": targets([operand.name for operand in recipe.operands]),
        "tensors": ", ".join(tensors),
        "numbers": "".join(f"{number}, " for number in numbers).rstrip(),
        "grad_names": ", ".join(grads),
        "saved_tensors": targets(tensors),
        "found": targets([f"grad_of_{name}" for name in trained]),
        "from_context": ", ".join(from_context),
        "returned": tuple_source(
            [f"grad_of_{operand.name}" if operand.has_gradient else "None" for operand in recipe.operands]
        ),
    }


def tuple_source(names: list[str]) -> str:
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def targets(names: list[str]) -> str:
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)

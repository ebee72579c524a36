"""When the kernels apply to a call: conditions as lines of source, each with why they do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pytorch_to_triton.convert.finish.recipe import Operand, Recipe, constant_source
from pytorch_to_triton.draft.file.run import mismatches, taken_out
from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.inputs.expression import names_in, other_factor, quotient, sizes_listed
from pytorch_to_triton.inputs.input_spec import ConstantSpec, SizeSpec
from pytorch_to_triton.inputs.listed_values import is_none_of, phrase


def conditions(recipe: Recipe, interpreted: str) -> list[str]:
    """The body of a function of the call's arguments; `interpreted` is the name of the flag that says so.

    It returns the reason as text, empty where the kernels apply. The values of tensors (the range of
    indices) are not looked at: that would wait for the device.
    """
    return [
        *containers(recipe),
        *tensors(recipe),
        *mixtures(recipe),
        *constants(recipe),
        *shapes(recipe),
        *surroundings(recipe, interpreted),
        'return ""',
    ]


def refuse(condition: str, reason: str) -> list[str]:
    return [f"if {condition}:", f"    return {reason}"]


def containers(recipe: Recipe) -> Iterator[str]:
    """What is packed is packed as it was; each of it under its own name."""
    packings = recipe.declaration.packings()
    for differs, takes in mismatches(packings):
        yield from refuse(differs, f'"{takes}"')
    yield from taken_out(packings)


def tensors(recipe: Recipe) -> Iterator[str]:
    """Kinds and dtypes: a loop over the tensors that have the same ones."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for tensor in recipe.tensors:
        groups.setdefault(tensor.shaped.dtypes, []).append(tensor.name)
    for dtypes, sources in groups.items():
        named = ", ".join(f'("{source}", {source})' for source in sources)
        accepted = "".join(f"torch.{dtype}, " for dtype in dtypes).removesuffix(
            " " if len(dtypes) == 1 else ", "
        )
        yield f"for name, tensor in ({named},):" if len(sources) == 1 else f"for name, tensor in ({named}):"
        kind = refuse("not isinstance(tensor, torch.Tensor)", 'f"{name} is a {type(tensor).__name__}"')
        dtype = refuse(f"tensor.dtype not in ({accepted})", 'f"{name} is {tensor.dtype}"')
        yield from (f"    {line}" for line in [*kind, *dtype])


def mixtures(recipe: Recipe) -> Iterator[str]:
    """Tensors that have one dtype in all that was traced; a module in float32 may be given bfloat16."""
    for first, *others in recipe.graph.alike if recipe.graph else ():
        differs = " or ".join(f"{other}.dtype != {first}.dtype" for other in others)
        yield from refuse(differs, f'"{first} and {", ".join(others)} are not of one dtype"')


def constants(recipe: Recipe) -> Iterator[str]:
    """What was validated with the declared values only."""
    for name, spec in recipe.inputs.items():
        if not isinstance(spec, ConstantSpec) or name not in recipe.fixed:
            continue
        if spec.others:
            reason = f" is not declared, as {phrase(spec.values)} are: declare it too, and convert again"
            yield from refuse(is_none_of(name, spec.values), f'f"{name}={{{name}!r}}" {reason!r}')
            continue
        value = constant_source(spec)
        if isinstance(spec.value, tuple):
            differs = f"list({name}) != {value}"
        elif spec.value is None or isinstance(spec.value, bool):
            differs = f"{name} is not {value}"
        else:
            differs = f"{name} != {value}"
        yield from refuse(differs, f'f"{name} is {{{name}!r}}, and the kernels are for " {value!r}')
    for operand in recipe.operands:
        if not operand.is_tensor and not operand.listed:
            taken = "int" if isinstance(operand.spec, SizeSpec) else "(int, float)"
            reason = f'f"{operand.name} is a {{type({operand.name}).__name__}}"'
            yield from refuse(f"not isinstance({operand.name}, {taken})", reason)


def shapes(recipe: Recipe) -> Iterator[str]:
    """Ranks and dims by the first tensor that has each, then the sizes that follow, then conditions."""
    dims: dict[str, str] = {}
    later: list[Operand] = []
    for tensor in recipe.tensors:
        shape, source = tensor.shaped.shape, tensor.name
        fresh_dims = [text for text in dict.fromkeys(shape) if text.isidentifier() and text not in dims]
        for dim in fresh_dims:
            dims[dim] = fresh(dim, {*recipe.inputs, *dims.values(), "torch", "name", "tensor"})
        if fresh_dims or any("*" in size for size in shape):
            reason = f'f"{source} has {{{source}.dim()}} dimensions, not {len(shape)}"'
            yield from refuse(f"{source}.dim() != {len(shape)}", reason)
        if fresh_dims:
            if len(fresh_dims) == len(shape) > 1:
                yield f"{', '.join(dims[dim] for dim in fresh_dims)} = {source}.shape"
            else:
                yield from (f"{dims[dim]} = {source}.shape[{shape.index(dim)}]" for dim in fresh_dims)
        if len(fresh_dims) < len(shape) or not shape:
            later.append(tensor)
    numbers = {o.name: o.spec.size for o in recipe.operands if isinstance(o.spec, SizeSpec)}
    for name, size in numbers.items():
        if size.isidentifier():
            dims.setdefault(size, name)
    for tensor in later:
        yield from by_products(tensor, dims, recipe)
    for tensor in later:
        yield from size_check(tensor, dims)
    for name, size in numbers.items():
        expected = in_terms_of(size, dims)
        if expected not in (None, name):
            yield from refuse(f"{name} != {expected}", f'f"{name} is {{{name}}}, not {{{expected}}}"')
    for text in recipe.declaration.requires:
        if (condition := in_terms_of(text, dims)) is not None:
            met = " and ".join([*divisors(condition), condition])
            yield from refuse(f"not ({met})", does_not_hold(text))


def does_not_hold(requirement: str) -> str:
    """The reason, as source; of a number whose values were listed how another one is converted."""
    for name, values in sizes_listed([requirement]).items():
        return repr(f"{name} is not one of {', '.join(map(str, values))}: declare it too, and convert again")
    return repr(f"{requirement} does not hold")


def by_products(tensor: Operand, dims: dict[str, str], recipe: Recipe) -> Iterator[str]:
    """The dims that a tensor's size has as the one factor that is not known: D of `G*D`."""
    for axis, size in enumerate(tensor.shaped.shape):
        if product := other_factor(size, dims):
            dim, factor = product
            dims[dim] = fresh(dim, {*recipe.inputs, *dims.values(), "torch", "name", "tensor"})
            yield f"{dims[dim]} = {quotient(f'{tensor.name}.shape[{axis}]', dims.get(factor, factor))}"


def size_check(tensor: Operand, dims: Mapping[str, str]) -> list[str]:
    """The whole shape, but for sizes that name a dim which is no tensor's size."""
    source, sizes = tensor.name, [in_terms_of(text, dims) for text in tensor.shaped.shape]
    constants = [(axis, size) for axis, size in enumerate(sizes) if size is not None]
    if len(constants) == len(sizes):
        expected = f"({', '.join(size for _, size in constants)}{',' if len(constants) == 1 else ''})"
        reason = f'f"{source} has shape {{tuple({source}.shape)}}, not {{{expected}}}"'
        return refuse(f"{source}.shape != {expected}", reason)
    differs = " or ".join(f"{source}.shape[{axis}] != {size}" for axis, size in constants)
    return refuse(differs, f'f"{source} has shape {{tuple({source}.shape)}}"') if constants else []


def in_terms_of(text: str, dims: Mapping[str, str]) -> str | None:
    """The expression over local variables; None where it names a dim that is no tensor's size."""
    if not names_in(text) <= set(dims):
        return None
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in dims:
            node.id = dims[node.id]
    return ast.unparse(tree)


def divisors(condition: str) -> list[str]:
    """What it divides by, where that is no literal and may be 0: an empty tensor has such sizes."""
    divisions = (n for n in ast.walk(ast.parse(condition)) if isinstance(n, ast.BinOp))
    divided = (n.right for n in divisions if isinstance(n.op, ast.FloorDiv | ast.Mod))
    return list(dict.fromkeys(f"({ast.unparse(d)})" for d in divided if not isinstance(d, ast.Constant)))


def surroundings(recipe: Recipe, interpreted: str) -> Iterator[str]:
    """The device, autocast, and whether gradients are wanted."""
    if not recipe.tensors:
        return
    sources = [tensor.name for tensor in recipe.tensors]
    first, *others = sources
    transform = (
        "not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is not None"
    )
    yield from refuse(transform, '"a transform of torch.func is at work"')
    if others:
        together = " or ".join(f"{other}.device != {first}.device" for other in others)
        yield from refuse(together, '"the tensors are on several devices"')
    where = f'f"{first} is on {{{first}.device}}, and Triton needs a GPU"'
    yield from refuse(f"not ({first}.is_cuda or {interpreted})", where)
    autocast = '"autocast is on, in which PyTorch chooses other dtypes"'
    yield from refuse(f"torch.is_autocast_enabled({first}.device.type)", autocast)
    short = [t.name for t in recipe.tensors if "bfloat16" in t.shaped.dtypes]
    if short and "tl.dot" in recipe.text:
        # Up to 3.9 it multiplies the bits of bfloat16 as integers.
        multiplied = " or ".join(f"{source}.dtype == torch.bfloat16" for source in short)
        reason = '"Triton\'s interpreter cannot multiply bfloat16"'
        yield from refuse(f"{interpreted} and ({multiplied})", reason)
    trained = [tensor.name for tensor in recipe.tensors if tensor.has_gradient]
    if trained and not recipe.backward:
        condition = " or ".join(f"{source}.requires_grad" for source in trained)
        reason = '"gradients are wanted, and the kernels have none"'
        yield from refuse(f"torch.is_grad_enabled() and ({condition})", reason)

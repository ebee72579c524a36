"""What a drafted `run` refuses: dtypes that it was not drafted for, several devices, missing gradients."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from pytorch_to_triton.draft.file.lines import tuple_text, wrapped
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.draft.fresh_names import underscored
from pytorch_to_triton.schema.graph import Graph

CHECK = '''\
def {check}(**tensors):
    """Refuse tensors that the kernels were not drafted for."""
    device = next(iter(tensors.values())).device
    for name, tensor in tensors.items():
        if tensor.dtype not in {dtypes}:
            drafted = " and ".join(str(dtype) for dtype in {dtypes})
            raise TypeError(
                f"{function} was drafted for {{drafted}} {{name}}; got {{tensor.dtype}}. "
                "Convert again for that dtype."
            )
        if tensor.device != device:
            raise ValueError(f"{{name}} is on {{tensor.device}}, not on {{device}}. Move it there.")'''
WITHOUT_BACKWARD = """\
        if tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{{name}} requires grad, and {function} was drafted without a backward. "
                f"Use torch.no_grad() or {{name}}.detach(), or train with the PyTorch function."
            )"""


@dataclass(frozen=True)
class Checks:
    """Pieces of the drafted file."""

    accepted: tuple[str, ...] = ()
    """The constant that holds the accepted dtypes."""
    definition: tuple[str, ...] = ()
    """The function that checks."""
    call: tuple[str, ...] = ()
    """Lines of `run`."""


def checks(graph: Graph, reference: Reference, locals_: Collection[str], *, backward: bool) -> Checks:
    """The checks of all tensors that the graph takes; `locals_` are names that `run` assigns.

    Without a `backward`, tensors that require grad are refused.
    """
    if not graph.inputs:
        return Checks()
    taken = names_in(reference) | set(locals_) | set(graph.dims)
    constant, check = (underscored(name, taken) for name in ("DTYPES", "check_inputs"))
    claims = {i.name: i.dtypes or (i.dtype,) for i in graph.inputs}
    texts = {name: tuple_text([f"torch.{dtype}" for dtype in dtypes]) for name, dtypes in claims.items()}
    if len(set(texts.values())) == 1:
        accepted, dtypes = next(iter(texts.values())), constant
    else:
        entries = "".join(f'    "{name}": {text},\n' for name, text in texts.items())
        accepted, dtypes = f"{{\n{entries}}}", f"{constant}[name]"
    template = CHECK if backward else f"{CHECK}\n{WITHOUT_BACKWARD}"
    definition = template.format(check=check, dtypes=dtypes, function=graph.function)
    given = ", ".join(f"{name}={name}" for name in claims)
    mixtures = [line for names in graph.alike for line in _one_dtype(names, graph)]
    return Checks((f"{constant} = {accepted}",), (definition,), (*wrapped(f"{check}({given})"), *mixtures))


def _one_dtype(names: tuple[str, ...], graph: Graph) -> tuple[str, ...]:
    """Lines that refuse a mixture: of inputs as torch does, of a module's own tensors as none was traced."""
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    says = f"{graph.function} takes {listed} of one dtype, as PyTorch does."
    if not graph.state.keys().isdisjoint(names):
        says = f"{graph.function} was drafted for {listed} of one dtype. Cast them, or call PyTorch's module."
    return (
        f"if len({{{', '.join(f'{name}.dtype' for name in names)}}}) > 1:",
        f'    raise TypeError("{says}")',
    )


def names_in(reference: Reference) -> set[str]:
    """All names that the reference's source binds or uses."""
    texts = [*reference.definitions, f"def run({reference.parameters}): ..."]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    names = {n.id for n in nodes if isinstance(n, ast.Name)} | {
        n.arg for n in nodes if isinstance(n, ast.arg)
    }
    return names | {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}

"""Tensors that a target takes packed, in `*args`, `**kwargs` or a list: a kernel takes them one by one."""

from __future__ import annotations

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.input_spec import InputSpec, ListSpec
from pytorch_to_triton.schema.description import Description


def packed_inputs(side: Description, declaration: Declaration) -> NotConvertible | None:
    """Why inputs like these cannot be converted, with a function that can; None where nothing is packed."""
    if not declaration.inputs:
        return NotConvertible(
            f"{side.target} makes its own inputs by `inputs`, whose shapes nothing declares.",
            'Declare them: INPUTS = {"x": "float32[M, N]"}; tensors in a dict, by a function that takes them '
            "one by one and makes the dict.",
        )
    plain = {p.name: p for p in side.parameters if not p.variadic}
    variadic = [p for p in side.parameters if p.variadic]
    lists = {name for name, spec in declaration.inputs.items() if isinstance(spec, ListSpec)}
    packed = [n for n in declaration.inputs if n in lists or (variadic and n not in plain)]
    if not packed:
        return None
    by_name = {n: plain.get(n, variadic[-1] if variadic else None) for n in declaration.inputs}
    taken = {n: _items(n, spec) for n, spec in declaration.inputs.items()}
    passed = []
    for name, parameter in by_name.items():
        items = ", ".join(taken[name])
        text = f"[{items}]" if name in lists and name in plain else items
        passed.append(f"{name}={text}" if parameter and parameter.by_keyword else text)
    call, names = f"({', '.join(passed)})", ", ".join(n for items in taken.values() for n in items)
    made = f"def {side.name}_of_tensors({names}): return {side.name}{call}"
    if side.kind in ("module", "model_file"):
        made = f"a module whose forward(self, {names}) returns self.module{call}"
    return NotConvertible(
        f"{side.target} takes {', '.join(packed)} packed, and a kernel takes tensors one by one.",
        f"Put beside it, and convert, {made}",
    )


def _items(name: str, spec: InputSpec) -> list[str]:
    """Names for the tensors of one input."""
    return [f"{name}_{i}" for i in range(len(spec.items))] if isinstance(spec, ListSpec) else [name]

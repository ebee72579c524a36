"""Inputs that list the values to try, and those whose one value is a list: a parameter's type tells which."""

from collections.abc import Mapping

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.input_spec import is_tensor, sizes_listed_for
from pytorch_to_triton.inputs.listed_values import as_text
from pytorch_to_triton.schema.description import Description

EXAMPLES = {
    "int": [1, 4, 8], "float": [30.0, 0.0], "bool": [True, False], "str": ["silu", "gelu"],
    "torch.dtype": ["torch.float32", "torch.bfloat16"],
}  # fmt: skip
"""Lists of values, by what a parameter takes."""
TAKEN = {"int": int, "float": int | float, "bool": bool, "str": str, "torch.dtype": str}


def with_values_listed(reference: Description, inputs: Mapping[str, object]) -> dict[str, object]:
    """Lists for parameters that take one value as the values to try: `[1, 4, 8]` is `1|4|8`.

    A list in a list is passed as it is. Raises BadDeclaration for a list of what it cannot take.
    """
    return {name: value_listed(name, value, scalars_of(reference)) for name, value in inputs.items()}


def value_listed(name: str, value: object, scalars: Mapping[str, str]) -> object:
    """What `with_values_listed` makes of one input."""
    if scalars.get(name) == "float":
        value = [*map(float, sizes_listed_for(name, value))] or value  # 30|0 are no sizes.
    if not isinstance(value, list) or name not in scalars:
        return value
    if len(value) == 1 and isinstance(value[0], list):
        return value[0]
    if not value or not all(may_be(scalars[name], one) for one in value):
        raise BadDeclaration(
            f"Input {name}: it takes one {scalars[name]}, and this is a list"
            f"{'' if value else ' of nothing'}.",
            f"{name}={value}",
            0,
            f"List the values to try, each a {scalars[name]} or None: {name}={EXAMPLES[scalars[name]]}. A "
            "list that is passed as it is reads [[...]].",
        )
    # A float that is written as a whole number is no size.
    values = [float(one) if scalars[name] == "float" and type(one) is int else one for one in value]
    return as_text(f"Input {name}", values) if len(values) > 1 else values[0]


def may_be(scalar: str, value: object) -> bool:
    """Whether a parameter that takes one value of this type may be given that."""
    is_other_number = isinstance(value, bool) and scalar != "bool"
    is_declaration = isinstance(value, str) and is_tensor(value)
    return value is None or (isinstance(value, TAKEN[scalar]) and not is_other_number and not is_declaration)


def with_lists_kept(reference: Description, inputs: Mapping[str, object]) -> dict[str, object]:
    """Values as they are declared, so that `with_values_listed` takes none of the lists for values to try."""
    scalars = scalars_of(reference)
    return {n: [v] if isinstance(v, list) and n in scalars else v for n, v in inputs.items()}


def scalars_of(reference: Description) -> dict[str, str]:
    """The parameters that take one value, with its type."""
    return {p.name: p.scalar for p in reference.parameters if p.scalar and not p.variadic}

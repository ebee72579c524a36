"""The cases of a plan that are run first where a wrong one is to end a validation at once."""

from collections.abc import Sequence

from pytorch_to_triton.inputs.case import Case, tensors_in

MOST_TELLING = 10
"""So many: seconds under the interpreter."""
LEFT_FOR_LATER = ("large_stride", "mixed", "repeat", "beyond")
"""What may turn out to be a limit, takes another case first, or takes long."""
MOST_ELEMENTS = 2**14
"""A case of more takes longer under the interpreter than all others together; one is taken all the same."""


def telling_cases(cases: Sequence[Case]) -> list[Case]:
    """The first case, then those with the most conditions that no earlier one has, large ones first."""
    eligible = [case for case in cases if not set(LEFT_FOR_LATER) & set(case.reasons)]
    small = [case for case in eligible if case.elements <= MOST_ELEMENTS] or eligible[:1]
    telling, rest = small[:1], small[1:]
    seen = set[str]().union(*map(conditions_of, telling))
    while rest and len(telling) < MOST_TELLING:
        best = max(rest, key=lambda case: (len(conditions_of(case) - seen), case.elements))
        telling.append(best)
        rest.remove(best)
        seen |= conditions_of(best)
    return telling


def conditions_of(case: Case) -> set[str]:
    """What is unusual about it: its groups, the dtypes, layouts and values of its tensors, and its sizes.

    Sizes within a factor of 8 of each other are alike, where both fill blocks or neither does; a
    configuration is tried with each.
    """
    tensors = tensors_in(case.arguments)
    of_tensors = {text for tensor in tensors for text in (tensor.dtype, tensor.layout, tensor.fill)}
    sizes = {
        f"{dim} {size.bit_length() // 3} {size.bit_count() > 1} in {case.configuration}"
        for dim, size in case.dims.items()
    }
    all_alike = {"square"} if len(case.dims) > 1 and len(set(case.dims.values())) == 1 else set[str]()
    return {*case.reasons, *of_tensors, *sizes, *all_alike}

"""How results are compared, as COMPARE and `--compare` declare it: `unordered(out[0], out[1], dim=-1)`."""

import re
from collections.abc import Sequence

from pytorch_to_triton.inputs.text_span import TextSpan
from pytorch_to_triton.worker.wire.comparison import Unordered

_PATH = r"out(?:\[\d+\]|\.\w+)*"
_UNORDERED = re.compile(
    rf"unordered\(\s*({_PATH}(?:\s*,\s*{_PATH})*)\s*(?:,\s*dim\s*=\s*(-?\d{{1,2}})\s*)?,?\s*\)"
)
_FORM = (
    "Entries that may come in any order are declared as unordered(out[0], out[1], dim=-1): the results by "
    "their places in what is returned (out, out[0], out.key), and the dim along which the entries lie."
)


def parse_comparisons(texts: object) -> tuple[Unordered, ...]:
    """One text, or a list of them. Raises BadDeclaration, with the form, for anything else."""
    listed: Sequence[object] = texts if isinstance(texts, list | tuple) else [texts]
    comparisons = tuple(map(_parse, listed))
    named = [path for each in comparisons for path in each.results]
    for path in named:
        if named.count(path) > 1:
            text = ", ".join(map(str, comparisons))
            raise TextSpan.of("COMPARE", text).refusal(f"{path} is named twice.", "Name each result once.")
    return comparisons


def refuse_unknown(comparisons: Sequence[Unordered], paths: Sequence[str]) -> None:
    """Raises BadDeclaration for a result that is not among the target's, by their `paths`."""
    for each in comparisons:
        if absent := [path for path in each.results if path not in paths]:
            problem = f"{', '.join(absent)} is no result: there are {', '.join(paths)}."
            raise TextSpan.of("COMPARE", str(each)).refusal(problem, _FORM)


def _parse(text: object) -> Unordered:
    found = _UNORDERED.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise TextSpan.of("COMPARE", str(text)).refusal("this is no comparison.", _FORM)
    paths = tuple(re.findall(_PATH, found[1]))
    return Unordered(results=paths, dim=int(found[2] or -1))

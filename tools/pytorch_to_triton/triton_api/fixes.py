"""What to write instead of a name or keyword that Triton does not have."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from pytorch_to_triton.triton_api.confusions import EVERY_OTHER, KEYWORDS, NAMES
from pytorch_to_triton.triton_api.surface import DESCRIPTOR, TENSOR, PublicName, Surface

_LIBDEVICE = "triton.language.extra.libdevice"
_MODULES = ("triton.language", _LIBDEVICE, "triton", "triton.testing", "triton.tools.tensor_descriptor")
"""Where a name may be, the likeliest first."""
_SIMILARITY = 0.72
"""From 0 to 1, as difflib measures it; below, the nearest names have nothing to do with the wrong one."""


def spelling_of(path: str) -> str:
    """A dotted path as people write it: `tl.load`, `libdevice.tanh`."""
    for long, short in ((_LIBDEVICE, "libdevice"), ("triton.language", "tl")):
        if path == long or path.startswith(f"{long}."):
            return short + path.removeprefix(long)
    return path


def name_suggestion(path: str, surface: Surface) -> str:
    """What to write for a name that is not there, or should not be used any more."""
    owner, _, name = path.rpartition(".")
    if path in NAMES:
        return NAMES[path]
    for home in _MODULES:
        if surface.find(f"{home}.{name}"):
            return _from(home, name, surface)
    if known := NAMES.get(f"triton.language.{name}"):
        return known
    entry = surface.find(owner)
    members = entry.members or () if entry else ()
    # Two letters of a short name in the other order are a third of it: not similar, but a slip.
    slips = [known for known in members if sorted(known) == sorted(name)]
    if near := slips or get_close_matches(name, members, cutoff=_SIMILARITY):
        return f"The nearest {_list([spelling_of(f'{owner}.{one}') for one in near])}."
    return "No replacement is known: compose it from what there is."


def new_home(path: str, surface: Surface) -> str | None:
    """How to reach a name whose module stands elsewhere: `tl.libdevice.tanh` is libdevice's.

    None where no module so called has it.
    """
    *_, module, name = path.split(".")
    for home in _MODULES:
        if home.rpartition(".")[2] == module and surface.find(f"{home}.{name}"):
            return _from(home, name, surface)
    return None


def keyword_suggestion(path: str, keyword: str, entry: PublicName) -> str:
    """What to write for a keyword that the function does not take."""
    rows = KEYWORDS.get(path, {})
    if keyword in rows:
        return rows[keyword]
    given = entry.keywords
    if near := get_close_matches(keyword, given, n=1):
        return f"The keyword is `{near[0]}`."
    if EVERY_OTHER in rows:
        return rows[EVERY_OTHER]
    return f"Its parameters are {_join([f'`{name}`' for name in given])}." if given else "It takes none."


def elsewhere(versions: Sequence[str], one: str, several: str) -> str:
    """`; Triton 3.6.0 and 3.7.1 have it`, to end a sentence; nothing where no release does."""
    if not versions:
        return ""
    return f"; Triton {_join(versions)} {one if len(versions) == 1 else several} it"


def _from(home: str, name: str, surface: Surface) -> str:
    """How to reach a name in its home."""
    path = f"{home}.{name}"
    if home == _LIBDEVICE:
        return f"Use {spelling_of(path)} of `from triton.language.extra import libdevice`."
    if surface.canonical[path] in (TENSOR, DESCRIPTOR):
        return f"The class is {spelling_of(path)}."
    return f"Use {spelling_of(path)}."


def _list(names: Sequence[str]) -> str:
    return f"name is {names[0]}" if len(names) == 1 else f"names are {_join(names)}"


def _join(parts: Iterable[str]) -> str:
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last

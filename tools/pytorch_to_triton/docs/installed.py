"""The installed Triton as pages: one for each public name, one that lists them all, one of missing names."""

from collections.abc import Iterator, Mapping, Sequence

from pytorch_to_triton.docs.docstrings import Docstring, read_docstring
from pytorch_to_triton.schema.page import Page
from pytorch_to_triton.triton_api.confusions import NAMES as CONFUSIONS
from pytorch_to_triton.triton_api.fixes import name_suggestion, spelling_of
from pytorch_to_triton.triton_api.history import history
from pytorch_to_triton.triton_api.surface import TENSOR, PublicName, Surface

MEMBERS = "Members"
"""The heading above the members of a class."""

_LANGUAGE = "triton.language."
_IMPORTS = {
    "libdevice": "from triton.language.extra import libdevice",
    "tl": "import triton.language as tl",
    "triton.tools.tensor_descriptor": "import triton.tools.tensor_descriptor",
    "triton.testing": "import triton.testing",
    "triton": "import triton",
}
_STANDING = {
    "deprecated": "**Deprecated** in this version: calling it warns.",
    "removed": "**Removed** in this version: calling it raises.",
}
NAMES = "names"
"""The page of all names."""
MISSING = "missing-names"
"""The page of names that Triton does not have."""
_FAMILIES = {
    "Programs and grid": "program_id num_programs",
    "Memory": "load store make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor "
    "tensor_descriptor make_block_ptr advance gather",
    "Atomics": "atomic_add atomic_and atomic_cas atomic_load atomic_max atomic_min atomic_or atomic_poll "
    "atomic_store atomic_xchg atomic_xor",
    "New blocks": "arange full zeros zeros_like to_tensor cat join",
    "Shapes": "broadcast broadcast_to expand_dims flip interleave permute ravel reshape split squeeze trans "
    "unsqueeze view",
    "Matrix product": "dot dot_scaled",
    "Reductions": "argmax argmin histogram max min reduce reduce_or sum xor_sum",
    "Scans and sorting": "associative_scan bitonic_merge cumprod cumsum sort topk",
    "Mathematics": "abs add cdiv ceil clamp cos div_rn erf exp exp2 fdiv floor fma log log2 maximum minimum "
    "mul rsqrt sigmoid sin softmax sqrt sqrt_rn sub umulhi",
    "Choice, conversion and inline code": "where cast inline_asm_elementwise map_elementwise swizzle2d",
    "Random numbers": "pair_uniform_to_normal philox philox_impl rand rand4x randint randint4x randn randn4x "
    "uint_to_uniform_float",
    "Loops and compile time": "range static_range condition constexpr static_assert static_print",
    "Hints to the compiler": "assume max_constancy max_contiguous multiple_of expect_zero",
    "Debugging": "debug_barrier device_assert device_print",
}
"""What the functions of triton.language are for; the others are listed as such."""


def installed_pages(surface: Surface) -> list[Page]:
    """The pages that list names, one page a name, and one a name that only other releases have.

    Modules, undocumented members of classes, and methods that are also functions have none of their own:
    see `spellings`.
    """
    names = [name for name in surface.entries if _home(surface, name) == name]
    here = f"Triton {surface.version} (installed)"

    def page(name: str, title: str, text: str, applies_to: str = here) -> Page:
        return Page(name=name, title=title, source="installed", applies_to=applies_to, text=text)

    return [
        page(NAMES, "All names", names_by_family(surface, names)),
        page(MISSING, "Names that Triton does not have", missing_names(surface)),
        *(page(name, spelling_of(name), _text_of(surface, name)) for name in names),
        *(
            page(
                name,
                f"{spelling_of(name)} (not in {surface.version})",
                _text_of_absent(surface, name, entry),
                f"Triton {_span(history().having(name))}, not {surface.version} (installed)",
            )
            for name, entry in _absent(surface).items()
        ),
    ]


def _absent(surface: Surface) -> dict[str, PublicName]:
    """The functions, classes and dtypes that other releases have and this one does not."""
    absent = {}
    for release in history().releases:
        there = history().surface(release).entries
        for name, entry in there.items():
            owner = there.get(name.rpartition(".")[0])
            if entry.kind != "module" and owner and owner.kind == "module" and not surface.find(name):
                absent[name] = entry
    return absent


def _text_of_absent(surface: Surface, name: str, entry: PublicName) -> str:
    spelled = spelling_of(name)
    return (
        f"# {spelled}\n\n{_code(_call(spelled, entry))}\n\n"
        f"Triton {_span(history().having(name))} has it; the installed {surface.version} does not. "
        f"{name_suggestion(name, surface)}\n"
    )


def spellings(surface: Surface) -> dict[str, str]:
    """Further ways to name a page, each with the page: `tl.load`, `tl.math.exp`, `tl.tensor.sum`."""
    homes = {}
    for name, entry in surface.entries.items():
        home = _home(surface, name)
        for spelled in (name, *entry.aliases):
            homes.update({way: home for way in (spelled, spelling_of(spelled)) if way != home})
    return homes


def _home(surface: Surface, name: str) -> str:
    """The name whose page describes a name."""
    entry = surface.entries[name]
    if entry.kind == "module":
        return NAMES
    owner, _, member = name.rpartition(".")
    if owner not in surface.entries or surface.entries[owner].kind == "module":
        return name
    if owner == TENSOR and entry.kind == "method" and _LANGUAGE + member in surface.entries:
        return _LANGUAGE + member
    return name if entry.doc else owner


def _text_of(surface: Surface, name: str) -> str:
    entry = surface.entries[name]
    parsed = read_docstring(entry.doc if entry.kind != "constant" else "")
    parts = [f"# {spelling_of(name)}", _code(_call(spelling_of(name), entry)), _about(surface, name)]
    if entry.standing in _STANDING:
        parts.append(f"{_STANDING[entry.standing]} {name_suggestion(name, surface)}")
    parts += [parsed.prose, _parameters(entry, parsed), *parsed.notes, _calls(entry), _releases(name, entry)]
    if entry.kind == "class":
        parts.append(_members(surface, name))
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(surface: Surface, name: str) -> str:
    """One line: what it is, where it comes from, what else it is called."""
    entry = surface.entries[name]
    kinds = {"builtin": "built-in function", "dtype": "data type"}
    what = f"`{name}`: {kinds.get(entry.kind, entry.kind)} of Triton {surface.version}."
    ways = [f"`{way}`" for way in dict.fromkeys(map(spelling_of, entry.aliases)) if way != spelling_of(name)]
    member = name.removeprefix(_LANGUAGE)
    method = surface.entries.get(f"{TENSOR}.{member}")
    if method is not None and method.kind == "method":
        ways.append(f"`x.{member}(...)` on a block x")
    also = f" Also called {', '.join(ways)}." if ways else ""
    module = next(module for module in _IMPORTS if spelling_of(name).startswith(f"{module}."))
    return f"{what}{also} Import: `{_IMPORTS[module]}`."


def _call(spelled: str, entry: PublicName) -> str:
    """The signature as Python writes it; the bare name where there is none."""
    if entry.parameters is None:
        return spelled
    parts: list[str] = []
    for parameter in entry.parameters:
        star = {"var_positional": "*", "var_keyword": "**"}.get(parameter.kind, "")
        if parameter.kind == "keyword_only" and not any(part.startswith("*") for part in parts):
            parts.append("*")
        default = f"={parameter.default}" if parameter.default is not None else ""
        parts.append(f"{star}{parameter.name}{default}")
    return f"{spelled}({', '.join(parts)})"


def _parameters(entry: PublicName, docstring: Docstring) -> str:
    """A list of the parameters that the docstring describes, in the order of the signature."""
    described = docstring.parameters
    known = [parameter.name for parameter in entry.parameters or () if parameter.name in described]
    rows = []
    for name in dict.fromkeys([*known, *described]):
        typed = f" ({docstring.types[name]})" if docstring.types.get(name) else ""
        rows.append(f"- `{name}`{typed}: {described[name]}")
    return _listing("Parameters", rows)


def _calls(entry: PublicName) -> str:
    """The device functions that libdevice calls, by dtypes."""
    symbols = [f"`{symbol}` for {dtypes}" for dtypes, symbol in entry.symbols.items()]
    return f"On NVIDIA GPUs it calls {', '.join(symbols)}." if symbols else ""


def _releases(name: str, entry: PublicName) -> str:
    """Which releases have it, where not all do, and those of its parameters that not all of these take."""
    known = history()
    having = known.having(name)
    notes = [f"Only in Triton {_span(having)}."] if having and having != known.releases else []
    for parameter in entry.parameters or ():
        taking = known.having(name, parameter.name)
        if taking and taking != having:
            notes.append(f"`{parameter.name}` only in {_span(taking)}.")
    return " ".join(notes)


def _span(releases: Sequence[str]) -> str:
    """Some releases: `3.7 to 3.9`, `3.6, 3.9`."""
    known = history().releases
    minor = [".".join(release.split(".")[:2]) for release in releases]
    first = known.index(releases[0])
    in_a_row = known[first : first + len(releases)] == tuple(releases)
    return f"{minor[0]} to {minor[-1]}" if in_a_row and len(releases) > 1 else ", ".join(minor)


def _members(surface: Surface, name: str) -> str:
    """The members of a class, without those that hold its constructor's arguments."""
    given = {parameter.name for parameter in surface.entries[name].parameters or ()}
    rows = []
    for member in surface.entries[name].members or ():
        entry = surface.entries.get(f"{name}.{member}")
        if entry is not None and not (entry.kind == "property" and member in given):
            rows.append(f"- `{_call(member, entry)}`")
    return _listing(MEMBERS, rows)


def _listing(heading: str, rows: Sequence[str]) -> str:
    """The rows below a heading; empty where there are none."""
    return "\n".join([f"## {heading}", "", *rows]) if rows else ""


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def names_by_family(surface: Surface, names: Sequence[str]) -> str:
    """Markdown that lists `names`, each once, with what it does in a sentence."""
    families: dict[str, list[str]] = {f"tl: {family}": [] for family in _FAMILIES}
    of = {f"{_LANGUAGE}{name}": f"tl: {family}" for family, row in _FAMILIES.items() for name in row.split()}
    for name in names:
        families.setdefault(of.get(name) or _family(surface, name), []).append(name)
    parts = [f"# All names\n\nThe public names of the installed Triton {surface.version} by family."]
    parts += [_listing(family, [*_rows(surface, members)]) for family, members in families.items()]
    return "\n\n".join(filter(None, parts)) + "\n"


def _family(surface: Surface, name: str) -> str:
    if surface.entries[name].kind == "dtype":
        return "tl: Data types"
    owner = spelling_of(name).rpartition(".")[0]
    return "tl: Other" if owner == "tl" else owner


def _rows(surface: Surface, names: Sequence[str]) -> Iterator[str]:
    """A line each with what it does; names without a docstring share one."""
    gists: Mapping[str, str] = {name: _gist(surface.entries[name]) for name in names}
    yield from (f"- `{spelling_of(name)}`: {gist}" for name, gist in gists.items() if gist)
    undocumented = [f"`{spelling_of(name)}`" for name, gist in gists.items() if not gist]
    if undocumented:
        yield f"- {', '.join(undocumented)}"


def _gist(entry: PublicName) -> str:
    """The first sentence of its docstring."""
    prose = read_docstring(entry.doc).prose if entry.kind != "constant" else ""
    return " ".join(prose.split("\n\n")[0].split()).split(". ")[0].rstrip(".:") if prose else ""


def missing_names(surface: Surface) -> str:
    """Markdown that lists names which people expect of Triton, with what to write instead."""
    families: dict[str, list[str]] = {}
    for path, suggestion in CONFUSIONS.items():
        if surface.find(path) is None:
            families.setdefault(spelling_of(path).rpartition(".")[0], []).append(
                f"- `{spelling_of(path)}`: {suggestion}"
            )
    parts = [
        "# Names that Triton does not have\n\n"
        f"PyTorch, NumPy, CUDA or other releases suggest these names; the installed Triton {surface.version} "
        "has none of them. Write what is given for each."
    ]
    parts += [_listing(owner, rows) for owner, rows in families.items()]
    return "\n\n".join(parts) + "\n"

"""Two lists of names, as Markdown: those that the installed Triton has, and those that it does not."""

from collections.abc import Iterator, Mapping, Sequence

from pytorch_to_triton.docs.docstrings import read_docstring
from pytorch_to_triton.triton_api.confusions import NAMES as CONFUSIONS
from pytorch_to_triton.triton_api.fixes import spelling_of
from pytorch_to_triton.triton_api.surface import PublicName, Surface

NAMES = "names"
"""The page of all names."""
MISSING = "missing-names"
"""The page of names that Triton does not have."""

_LANGUAGE = "triton.language."
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


def names_by_family(surface: Surface, names: Sequence[str]) -> str:
    """Markdown that lists `names`, each once, with what it does in a sentence."""
    families: dict[str, list[str]] = {f"tl: {family}": [] for family in _FAMILIES}
    of = {f"{_LANGUAGE}{one}": f"tl: {family}" for family, row in _FAMILIES.items() for one in row.split()}
    for name in names:
        families.setdefault(of.get(name) or _family(surface, name), []).append(name)
    parts = [f"# All names\n\nThe public names of the installed Triton {surface.version} by family."]
    for family, members in families.items():
        if members:
            parts.append("\n".join([f"## {family}", "", *_rows(surface, members)]))
    return "\n\n".join(parts) + "\n"


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
    parts += ["\n".join([f"## {owner}", "", *rows]) for owner, rows in families.items()]
    return "\n\n".join(parts) + "\n"

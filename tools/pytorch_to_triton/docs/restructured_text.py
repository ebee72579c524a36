"""reStructuredText as HTML, by docutils: pages of Triton's documentation, and its tutorials in Python."""

import re
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar

from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.readers.standalone import Reader
from docutils.writers.html5_polyglot import Writer

_SETTINGS = get_default_settings(Parser, Reader, Writer)
_SETTINGS.__dict__.update(
    {
        "doctitle_xform": False,
        "file_insertion_enabled": False,
        "halt_level": 6,
        "initial_header_level": 1,
        "embed_stylesheet": False,
        "math_output": "LaTeX",
        "output_encoding": "unicode",
        "raw_enabled": False,
        "report_level": 3,
        "smart_quotes": False,
        "stylesheet_path": None,
        "syntax_highlight": "none",
        "warning_stream": False,
    },
)
"""No page may read a file or bring HTML of its own; what is wrong with it is no reason to stop.

Made once: docutils makes settings under warning filters, which threads share."""

_CODE_ROLES = ("attr", "class", "const", "data", "exc", "func", "meth", "mod", "obj")
_LEFT_OUT = (
    "automodule", "contents", "default-role", "highlight", "include", "index",
    "literalinclude", "meta", "raw", "role", "sectnum",
)  # fmt: skip

_DOCSTRING = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[rRuU]?(\"\"\"|''')(.*?)\1", re.DOTALL)
_CELL = re.compile(r"^(?:# ?%%(.*)|#{20,} *)$\n?", re.MULTILINE)
_COMMENT = re.compile(r"(?:#.*\n?)*")
_INITIAL = re.compile(r"^(\.\. \[[^\]\n]+\] +)([A-Z]\.)", re.MULTILINE)
"""Of an author, at the beginning of a citation: no item of a list."""
_TARGET = re.compile(r"\s*<[^<>]*>$")


def from_restructured_text(text: str) -> str:
    """The HTML of a page. Where the markup is wrong, the text stays as it is written."""
    document = publish_doctree(_INITIAL.sub(r"\1\\\2", text), settings=_SETTINGS.copy())
    document.transform_messages.clear()
    # A complaint of docutils may quote the text that it is about.
    for node in list(document.findall(lambda n: isinstance(n, nodes.system_message | nodes.image))):
        at = node.parent.index(node)
        node.parent[at : at + 1] = [
            child for child in node.children if isinstance(child, nodes.literal_block)
        ]
    return str(publish_from_doctree(document, writer="html5", settings=_SETTINGS.copy()))


def from_tutorial(source: str) -> str:
    """The HTML of a Python file: the docstring and comment blocks are prose, what is between them code.

    Comment blocks begin with a line `# %%` or a long line of `#`.
    """
    docstring = _DOCSTRING.match(source)
    first, *rest = _CELL.split(source[docstring.end() :] if docstring else source)
    parts = [textwrap.dedent(docstring[2]) if docstring else "", _code_block(first)]
    for title, cell in zip(rest[::2], rest[1::2], strict=True):
        code = _COMMENT.sub("", cell, count=1)
        comment = cell.removesuffix(code).splitlines()
        prose = [(title or "").strip(), *(line[1:].removeprefix(" ") for line in comment)]
        parts += ["\n".join(prose), _code_block(code)]
    return from_restructured_text("\n\n".join(parts))


def _code_block(code: str) -> str:
    code = code.strip("\n")
    return ".. code-block:: python\n\n" + textwrap.indent(code, "    ") if code.strip() else ""


class _Sphinx(Directive):
    """A directive that Sphinx adds: it takes any option."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = defaultdict(lambda: directives.unchanged, {"class": directives.unchanged})


class _LeftOut(_Sphinx):
    def run(self) -> list[nodes.Node]:
        return []


class _Code(_Sphinx):
    def run(self) -> list[nodes.Node]:
        code = "\n".join(self.content)
        return [nodes.literal_block(code, code, classes=["code", *self.arguments])]


class _Module(_Sphinx):
    """Says to which module the names of the page's lists belong."""

    def run(self) -> list[nodes.Node]:
        self.state.document["module"] = f"{self.arguments[0]}." if self.arguments else ""
        return []


class _Listing(_Sphinx):
    """Names of other pages, one a line."""

    def run(self) -> list[nodes.Node]:
        module = self.state.document.get("module", "") if self.name == "autosummary" else ""
        entries = [_TARGET.sub("", line.strip()) for line in self.content if line.strip()]
        literals = [nodes.literal(text=module + entry) for entry in entries if "hidden" not in self.options]
        items = [nodes.list_item("", nodes.paragraph("", "", literal)) for literal in literals]
        return [nodes.bullet_list("", *items)] if items else []


def _as_prose(name: str, raw: str, text: str, *_: Any) -> tuple[Sequence[nodes.Node], Sequence[Any]]:
    """What a link to another page is called: `more` of `more <fpsan>`."""
    return [nodes.Text(_TARGET.sub("", text))], []


def _as_code(name: str, raw: str, text: str, *_: Any) -> tuple[Sequence[nodes.Node], Sequence[Any]]:
    """A name; of `~triton.language.load` the last part."""
    plain = _TARGET.sub("", text)
    return [nodes.literal(text=plain.rpartition(".")[2] if plain.startswith("~") else plain)], []


_DIRECTIVES = {
    **dict.fromkeys(_LEFT_OUT, _LeftOut),
    **dict.fromkeys(("code", "code-block", "prompt", "sourcecode", "testcode"), _Code),
    **dict.fromkeys(("currentmodule", "module"), _Module),
    **dict.fromkeys(("autosummary", "toctree"), _Listing),
}
_ROLES: dict[str, Any] = {
    **dict.fromkeys(("abbr", "doc", "download", "numref", "ref", "term"), _as_prose),
    **dict.fromkeys((prefix + role for role in _CODE_ROLES for prefix in ("", "py:")), _as_code),
}
for _name, _directive in _DIRECTIVES.items():
    directives.register_directive(_name, _directive)
for _name, _role in _ROLES.items():
    roles.register_local_role(_name, _role)

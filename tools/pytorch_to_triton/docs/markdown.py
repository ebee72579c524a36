"""Fetched pages as Markdown: the article of an HTML page, reStructuredText, and tutorials in Python.

Whatever a page holds, its Markdown is harmless: nothing hidden, no HTML, no image, links to the web alone,
and no prose that begins or ends code. That is seen to in the tree of elements, where text is not markup.
"""

import re
import unicodedata
from collections.abc import Callable
from itertools import chain
from typing import Literal
from urllib.parse import quote, urljoin, urlsplit

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString
from markdownify import ATX, MarkdownConverter

from pytorch_to_triton.docs.restructured_text import from_restructured_text, from_tutorial

Form = Literal["html", "rst", "tutorial"]
"""tutorial: a Python file whose comment blocks are reStructuredText, as sphinx-gallery reads it."""

_ARTICLES = ("[role=main] [itemprop=articleBody]", "[role=main]", "article", "main")
_REMOVED = (
    "script, style, template, noscript, iframe, object, embed, form, input, button, img, svg, video, audio,"
    "nav, footer, [hidden], [aria-hidden=true], a.headerlink, a.viewcode-link, .sphx-glr-download-link-note,"
    ".sphx-glr-footer, .sphx-glr-signature, .sphx-glr-timing, .backrefs"
)
_INLINE = "a, b, code, em, h1, h2, h3, h4, h5, h6, i, strong"
_KEPT = (
    f"{_INLINE}, article, blockquote, br, caption, div, figcaption, hr, li, ol, p, pre, section, table,"
    "tbody, td, tfoot, th, thead, tr, ul"
)
"""What has an effect on Markdown."""
_HIGHLIGHT = re.compile(r"(?:highlight-|\bcode (?!literal-block))([\w+-]+)")
_LANGUAGES = {
    "default": "python", "python3": "python", "pycon": "python", "ipython": "python", "none": "", "text": "",
    "sh": "bash", "shell": "bash", "console": "bash",
}  # fmt: skip
_WEB = r"\s*<?https?://"
_LIVE = re.compile(
    r"(\\*)(`|~(?=~~)|<(?!https?://[^\s<>]*>)(?=[A-Za-z/!?])|(?<=!)\["
    rf"|(?<=\])\((?!{_WEB})|(?<=\]):(?!{_WEB}|$)|\Z)"
)
"""What begins code, HTML, an image or a link, or ends the text, with the backslashes before it."""
_URL_CHARACTERS = "%/:?#[]@!$&'*+,;=~"
_LINK_CHARACTERS = 500
_SOURCE_CHARACTERS = 100_000
"""Of reStructuredText and tutorials: several times the longest; to read them takes a while."""
_BLANK = {
    *map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0)),
    *map(chr, chain(range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))),
}
"""Letters, marks and symbols that show nothing, though Python counts them as printable."""


_READERS: dict[Form, Callable[[str], str]] = {
    "html": str,
    "rst": from_restructured_text,
    "tutorial": from_tutorial,
}


class NotReadable(ValueError):
    """A document that cannot be turned into Markdown; its text is a whole sentence."""


def to_markdown(document: str, form: Form, url: str) -> str:
    """The document as harmless Markdown. Raises NotReadable where it has no article or cannot be followed."""
    if form != "html" and len(document) > _SOURCE_CHARACTERS:
        raise NotReadable(f"The page has more than {_SOURCE_CHARACTERS} characters.")
    try:
        soup = BeautifulSoup(_READERS[form](document), "html.parser")
        article = next((element for path in _ARTICLES if (element := soup.select_one(path))), None)
        if article is None:
            raise NotReadable("The page has no article.")
        _strip(article)
        _straighten(article, soup)
        _write_code(article)
        _link(article, url)
        _merge_text(article)
        converter = _Converter(heading_style=ATX, bullets="-", table_infer_header=True)
        return f"{converter.convert_soup(article).strip()}\n"
    except RecursionError as error:
        raise NotReadable("The page is nested too deeply.") from error


def _strip(article: Tag) -> None:
    """Remove what is no text, and what no reader sees."""
    for element in article.select(_REMOVED):
        element.decompose()
    for text in article.find_all(string=True):
        if type(text) is NavigableString:
            text.replace_with(visible(text))
        else:
            text.extract()  # a comment, or its like


def visible(text: str) -> str:
    """The text without control, format, private and blank characters."""
    odd = {char for char in set(text) if char in _BLANK or not (char.isprintable() or char in "\n\t")}
    return text.translate({ord(char): " " if unicodedata.category(char) == "Zs" else None for char in odd})


def _straighten(article: Tag, soup: BeautifulSoup) -> None:
    """Signatures become code, definition lists plain paragraphs; blocks of code stand outside of all else."""
    for signature in article.select("dt.sig"):
        code = soup.new_tag("pre", string=" ".join(signature.get_text().split()))
        signature.replace_with(code)
        code.wrap(soup.new_tag("div", attrs={"class": "highlight-python"}))
    for term in article.select("dt:not(dt dt)"):
        term.name = "p"
        term.wrap(soup.new_tag("div"))
        text = " ".join(term.get_text().split())
        term.clear()
        term.append(soup.new_tag("strong", string=text))
    for element in article.select("dl, dd"):
        element.name = "div"
    for inline in article.select(f":is({_INLINE}):not(code):has(pre)"):
        inline.unwrap()
    # No table of Markdown holds a block of code.
    for part in article.select("table:has(pre), table:has(pre) :is(thead, tbody, tr, th, td)"):
        part.name = "div"
    for title in article.select(".admonition-title"):
        title.name = "strong"
        title.string = f"{title.get_text().strip().removesuffix(':')}:"
        title.wrap(soup.new_tag("p"))


def _write_code(article: Tag) -> None:
    """Code is plain text, formulas are TeX between dollars, and no cell of a table has a bare bar."""
    for code in article.select(":is(cite, code, kbd, samp, span.literal):not(pre *)"):
        code.name = "code"
        code.string = " ".join(code.get_text().split())
    for formula in article.select(".math"):
        tex = formula.get_text().strip().removeprefix("\\(").removesuffix("\\)")
        display = formula.name == "pre" or tex.startswith("\\[")
        tex = tex.removeprefix("\\[").removesuffix("\\]").strip()
        formula.name = "div" if display else "span"
        formula.string = f"$${tex}$$" if display else f"${tex}$"
    for code in article.select("pre"):
        code.string = code.get_text()
    for cell in article.select("td, th"):
        for text in cell.find_all(string=re.compile(r"\|")):
            text.replace_with(text.replace("|", "\\|"))


def _link(article: Tag, url: str) -> None:
    """Make links absolute; those within the page or to anything but the web become plain text."""
    for anchor in article.select("a"):
        written = str(anchor.get("href") or "#")
        try:
            absolute = urljoin(url, written)
            scheme = urlsplit(absolute).scheme
        except ValueError:
            scheme = ""
        if written.startswith("#") or scheme not in ("http", "https") or len(absolute) > _LINK_CHARACTERS:
            anchor.unwrap()
            continue
        anchor.attrs = {"href": quote(absolute, safe=_URL_CHARACTERS)}


def _merge_text(article: Tag) -> None:
    """Let text that stands side by side in Markdown be one text, so that it is escaped as a whole."""
    for element in article.select(f":not({_KEPT})"):
        element.unwrap()
    for element in reversed(article.select(f"{_INLINE}, blockquote")):
        if not element.get_text().strip():
            element.unwrap()
    article.smooth()
    for code in article.select("code"):
        if isinstance(code.previous_sibling, Tag):
            code.insert_before(" ")
    for anchor in article.select("a"):
        if str(anchor.previous_sibling).endswith("!"):
            anchor.insert_before(" ")


class _Converter(MarkdownConverter):
    """Keeps names as they are written, and prose from having an effect."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        return _LIVE.sub(lambda live: f"{2 * live[1]}\\{live[2]}" if live[2] else 2 * live[1], text)

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A block in a fence that nothing in it closes, in the language that its highlighting names."""
        classes = (name for parent in [el, *el.parents][:3] for name in parent.get_attribute_list("class"))
        match = _HIGHLIGHT.search(" ".join(filter(None, classes)))
        language = match[1].lower() if match else ""
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        code = text.strip("\n")
        return f"\n\n{fence}{_LANGUAGES.get(language, language)}\n{code}\n{fence}\n\n"

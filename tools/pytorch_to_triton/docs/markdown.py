"""Fetched pages as Markdown: the article of an HTML page, reStructuredText, and tutorials in Python."""

import re
from typing import Literal
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup, Tag
from markdownify import ATX, MarkdownConverter

from pytorch_to_triton.docs.restructured_text import from_restructured_text, from_tutorial
from pytorch_to_triton.docs.untrusted_text import fence_code, harmless, quote_url, visible, without_code

Form = Literal["html", "rst", "tutorial"]
"""tutorial: a Python file whose comment blocks are reStructuredText, as sphinx-gallery reads it."""

_ARTICLES = ("[role=main] [itemprop=articleBody]", "[role=main]", "article", "main")
_REMOVED = (
    "script, style, template, noscript, iframe, object, embed, form, input, button, img, svg, video, audio,"
    "nav, footer, [hidden], [aria-hidden=true], a.headerlink, a.viewcode-link, .sphx-glr-download-link-note,"
    ".sphx-glr-footer, .sphx-glr-signature, .sphx-glr-timing, .backrefs"
)
_INLINE = "a, b, del, em, h1, h2, h3, h4, h5, h6, i, kbd, s, samp, strong, sub, sup"
_UNSEEN = re.compile(r"display:none|visibility:hidden|(?:font-size|opacity):0(?![.\d]*[1-9])")
_HIGHLIGHT = re.compile(r"(?:highlight-|\bcode (?!literal-block))([\w+-]+)")
_LANGUAGES = {
    "default": "python", "python3": "python", "pycon": "python", "ipython": "python", "none": "", "text": "",
    "sh": "bash", "shell": "bash", "console": "bash",
}  # fmt: skip
_SOURCE_CHARACTERS = 100_000
"""Of reStructuredText and tutorials: several times the longest; to read them takes a while."""
_LINK_CHARACTERS = 500


class NotReadable(ValueError):
    """A document that cannot be turned into Markdown; its text is a whole sentence."""


def to_markdown(document: str, form: Form, url: str) -> str:
    """The document as harmless Markdown. Raises NotReadable where it has no article or cannot be followed."""
    # Cleaned first as well: what is invisible could hide the marks that the conversion goes by.
    text = visible(document)
    if form != "html" and len(text) > _SOURCE_CHARACTERS:
        raise NotReadable(f"The page has more than {_SOURCE_CHARACTERS} characters.")
    try:
        if form == "rst":
            text = from_restructured_text(text)
        elif form == "tutorial":
            text = from_tutorial(text)
        return harmless(_from_html(text, url))
    except RecursionError as error:
        raise NotReadable("The page is nested too deeply.") from error


def _from_html(html: str, url: str) -> str:
    if "</html>" not in html[-1000:].lower():
        raise NotReadable("The page has no end, so the rest of it is probably missing too.")
    soup = BeautifulSoup(html, "html.parser")
    article = next((element for path in _ARTICLES if (element := soup.select_one(path))), None)
    if article is None:
        raise NotReadable("The page has no article.")
    _strip(article)
    _straighten(article, soup)
    _write_code(article)
    _link(article, url)
    return _Converter(heading_style=ATX, bullets="-", table_infer_header=True).convert_soup(article)


def _strip(article: Tag) -> None:
    """Remove what is no text, and text that no reader sees."""
    for element in article.select(_REMOVED):
        element.decompose()
    for element in article.select("[style]"):
        if not element.decomposed and _UNSEEN.search(re.sub(r"\s", "", str(element["style"]).lower())):
            element.decompose()


def _straighten(article: Tag, soup: BeautifulSoup) -> None:
    """Signatures become code, definition lists plain paragraphs; blocks of code stand outside of all else."""
    for signature in article.select("dt.sig"):
        code = soup.new_tag("pre")
        code.string = " ".join(signature.get_text().split())
        block = soup.new_tag("div", attrs={"class": "highlight-python"})
        block.append(code)
        signature.replace_with(block)
    for term in article.select("dt:not(dt dt)"):
        term.name = "p"
        term.wrap(soup.new_tag("div"))
        strong = soup.new_tag("strong")
        strong.string = " ".join(term.get_text().split())
        term.clear()
        term.append(strong)
    for element in article.select("dl, dd"):
        element.name = "div"
    for inline in article.select(f":is({_INLINE}):has(pre)"):
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
    for code in article.select("cite, code:not(pre code), span.literal"):
        code.name = "code"
        code.string = " ".join(code.get_text().split())
        if isinstance(code.previous_sibling, Tag):
            code.insert_before(" ")
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
        anchor.attrs = {"href": quote_url(absolute)}


class _Converter(MarkdownConverter):
    """Keeps names as they are written, and prose from opening fences."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        return without_code(text)

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A block in a fence, in the language that the highlighting around it names."""
        names = " ".join(
            name for parent in [el, *el.parents][:3] for name in parent.get_attribute_list("class") if name
        )
        match = _HIGHLIGHT.search(names)
        language = match[1].lower() if match else ""
        return f"\n\n{fence_code(text.strip(chr(10)), _LANGUAGES.get(language, language))}\n\n"

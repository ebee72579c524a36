"""Pages become Markdown that reads well, and that is harmless whatever was in them."""

from html import escape
from random import Random

import pytest
from markdown_it import MarkdownIt

from pytorch_to_triton.docs.markdown import Form, NotReadable, to_markdown
from pytorch_to_triton.docs.sections import lines_of

URL = "https://triton-lang.org/main/python-api/generated/triton.language.dot.html"


def page(article: str) -> str:
    """A page as Sphinx writes it, with the navigation around the article."""
    return f"""<!DOCTYPE html><html><head><title>T &mdash; Triton</title><style>p {{}}</style></head><body>
    <nav><a href="../index.html">Menu</a></nav>
    <div role="search">Search</div><div role="navigation">Home » T</div>
    <div role="main" class="document"><div itemprop="articleBody">{article}</div></div>
    <footer>Built with</footer><script>run()</script></body></html>"""


def html(article: str) -> str:
    return to_markdown(page(article), "html", URL)


def rst(text: str) -> str:
    return to_markdown(text, "rst", URL)


def tutorial(text: str) -> str:
    return to_markdown(text, "tutorial", URL)


def prose_of(markdown: str) -> str:
    return "\n".join(line.text for line in lines_of(markdown) if not line.fenced)


SIGNATURE = """<h1>triton.language.dot<a class="headerlink" href="#d">¶</a></h1>
<dl class="py function">
<dt class="sig sig-object py" id="d"><span class="sig-prename"><span class="pre">tl.</span></span><span
class="sig-name">dot</span><span class="sig-paren">(</span><em class="sig-param"><span>input</span></em>,
<em class="sig-param"><span>acc</span><span>=</span><span>None</span></em><span class="sig-paren">)</span><a
class="headerlink" href="#d">¶</a></dt>
<dd><p>Returns the product.</p><dl class="field-list"><dt>Parameters<span class="colon">:</span></dt><dd><ul>
<li><p><strong>input</strong> – of <code><span class="pre">float16</span></code>, <em>first</em></p></li>
<li><p><strong>acc</strong> – see <a href="load.html#l" title="t"><code>load()</code></a></p></li>
</ul></dd></dl></dd></dl>"""


def test_an_api_page_keeps_its_signature_as_code_and_its_parameters_as_a_list() -> None:
    assert html(SIGNATURE) == (
        "# triton.language.dot\n\n"
        "```python\ntl.dot(input, acc=None)\n```\n\n"
        "Returns the product.\n\n"
        "**Parameters:**\n\n"
        "- **input** – of `float16`, *first*\n"
        "- **acc** – see [`load()`](https://triton-lang.org/main/python-api/generated/load.html#l)\n"
    )


def test_code_is_fenced_in_its_language_and_loses_no_character() -> None:
    for highlight, language in [
        ("default", "python"),
        ("Python", "python"),
        ("bash", "bash"),
        ("console", "bash"),
        ("none", ""),
    ]:
        code = '<span class="k">if</span> a &lt; b:\n\n    x_y = <span>"* # &amp; ![x](y)"</span>\n'
        markdown = html(f'<h1>T</h1><div class="highlight-{highlight}"><div><pre>{code}</pre></div></div>')
        assert f'```{language}\nif a < b:\n\n    x_y = "* # & ![x](y)"\n```\n' in markdown


def test_only_the_article_is_kept_and_of_it_only_what_a_reader_sees() -> None:
    markdown = html("""<h1>T</h1><p>Seen.</p><script>bad()</script><style>bad</style><img src="x" alt="bad">
        <svg><text>bad</text></svg><iframe src="bad"></iframe><!-- bad --><p hidden>bad</p>
        <p aria-hidden="true">bad</p>
        <p>Seen too.</p><button>bad</button><nav>bad</nav>""")
    assert markdown == "# T\n\nSeen.\n\nSeen too.\n"


def test_links_are_absolute_and_lead_to_the_web_alone() -> None:
    markdown = html("""<h1>T</h1><p><a href="../triton.html">up</a> <a href="#here">here</a>
        <a href="javascript:alert(1)">run</a> <a href=" JavaScript:alert(1)">run</a>
        <a href="data:text/html,x">data</a> <a href="http://[">odd</a> <a>none</a>
        <a href="https://a.org/x) [y](javascript:z">breaks</a></p>""")
    assert "[up](https://triton-lang.org/main/python-api/triton.html)" in markdown
    assert "here run run data odd none" in " ".join(markdown.replace("\n", " ").split())
    assert "javascript:" not in markdown.replace("javascript:z)", "").lower()
    assert "https://a.org/x%29%20[y]%28javascript:z)" in markdown


def test_formulas_and_tables_are_kept() -> None:
    markdown = html(r"""<h1>T</h1><p><span class="math">\(x_{M} \in R\)</span></p>
        <div class="math">\[a_b\]</div>
        <table><tbody><tr><td><code>load</code></td><td>Reads.</td></tr></tbody></table>""")
    assert r"$x_{M} \in R$" in markdown
    assert "$$a_b$$" in markdown
    assert "| `load` | Reads. |" in markdown


def test_a_page_that_cannot_be_read_says_why() -> None:
    for document, reported in [
        ("<html><body><p>no article</p></body></html>", "has no article"),
        ("", "has no article"),
        (page("<div>" * 2_000), "nested too deeply"),
    ]:
        with pytest.raises(NotReadable, match=reported):
            to_markdown(document, "html", URL)


RST = r"""
================
Debugging
================

Read `the tips <https://example.org/a_(b)>`_, :doc:`more <fpsan>`, :code:`tl.load`, ``a ** b``, `c` and
`named`_.

------
Tools
------

- First::

    pip install x

- Second:

  .. code-block:: python
    :linenos:

    @triton.jit
    def kernel(x_ptr):
      pass

++++++
Deeper
++++++

.. note::
   Mind :math:`x \in R`, as in [LATTNER2004]_.

.. math::

   a_b

.. currentmodule:: triton.language

.. autosummary::
    :toctree: generated

    program_id

.. image:: x.png
    :width: 300

.. a comment
   of two lines

=====  ====
A      B
=====  ====
Loads  1
=====  ====

>>> tl.cdiv(3, 2)
2

.. _named: https://example.org/named
.. [LATTNER2004] C. Lattner
   et al.

Again
-----
"""


def test_restructured_text_becomes_markdown() -> None:
    markdown = rst(RST)
    assert markdown.startswith(
        "# Debugging\n\nRead [the tips](https://example.org/a_%28b%29), more, `tl.load`, `a ** b`, `c` and\n"
        "[named](https://example.org/named).\n\n## Tools\n"
    )
    assert "- First:\n\n  ```\n  pip install x\n  ```\n" in markdown
    assert "  ```python\n  @triton.jit\n  def kernel(x_ptr):\n    pass\n  ```\n" in markdown
    assert "### Deeper" in markdown
    assert "**Note:**\n\nMind $x \\in R$, as in [LATTNER2004]." in markdown
    assert "$$a_b$$" in markdown
    assert "- `triton.language.program_id`" in markdown
    assert "| A | B |\n| --- | --- |\n" in markdown
    assert "```python\n>>> tl.cdiv(3, 2)\n2\n```" in markdown
    assert "[LATTNER2004]\n\nC. Lattner\net al." in markdown
    assert markdown.endswith("#### Again\n")
    for gone in ("comment", "x.png", "::", "linenos", ".. "):
        assert gone not in prose_of(markdown)


TUTORIAL = '''"""
Fused Softmax
=============
Learn :code:`tl.max`.
"""

# %%
# Motivations
# -----------
#
# A softmax of :math:`M` rows:

import torch


def naive(x):
    """Not prose ``` here."""
    # a comment of the code
    return x
#%%
# Only prose.

####################################
# The old mark.
y = 1
'''


def test_a_tutorial_s_comment_blocks_are_prose_and_the_rest_is_code() -> None:
    assert tutorial(TUTORIAL) == (
        "# Fused Softmax\n\nLearn `tl.max`.\n\n## Motivations\n\nA softmax of $M$ rows:\n\n"
        '````python\nimport torch\n\n\ndef naive(x):\n    """Not prose ``` here."""\n'
        "    # a comment of the code\n    return x\n````\n\n"
        "Only prose.\n\nThe old mark.\n\n```python\ny = 1\n```\n"
    )
    assert tutorial("# a licence\nx = 1\n") == "```python\n# a licence\nx = 1\n```\n"


HIDDEN = {
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "bidirectional": "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u061c",
    "tags": "\U000e0041\U000e007f",
    "variation selectors": "\ufe0f\U000e0100",
    "fillers": "\u115f\u3164\uffa0\u2800\u034f",
    "controls": "\x00\x07\x08\x0e\x7f\x90",
    "private use": "\ue000",
    "soft hyphen": "\u00ad",
}


@pytest.mark.parametrize("form", ["html", "rst", "tutorial"])
def test_nothing_invisible_is_left(form: Form) -> None:
    for kind, hidden in HIDDEN.items():
        inside = f"be{hidden}fore"
        document = {
            "html": page(f"<h1>T</h1><p>{inside}</p><pre>{inside}</pre>"),
            "rst": f"T\n===\n\n{inside}\n\n::\n\n  {inside}\n",
            "tutorial": f'"""\nT\n===\n\n{inside}\n"""\nx = "{inside}"\n',
        }[form]
        markdown = to_markdown(document, form, URL)
        assert markdown.count("before") == 2, kind
        assert markdown.isascii(), kind


def test_entities_hide_nothing_either() -> None:
    assert html("<h1>T</h1><p>a&#8203;b&#x202e;c&nbsp;d</p>") == "# T\n\nabc d\n"


HOSTILE = """<h1>T</h1>
<p>```</p><p>~~~ x</p><ul><li>```python</li></ul><blockquote><p>````</p></blockquote>
<p>&lt;script&gt;alert(1)&lt;/script&gt; &lt;!-- hidden --&gt; ![x](https://example.org/?secret)</p>
<p>[x](javascript:alert(1)) [y]( data:text/html,x) &lt;javascript:alert(1)&gt;</p>
<p>[z]: javascript:alert(1)</p>
<pre>```
~~~~
closed?</pre><p>After.</p>"""


def live_in(markdown: str) -> list[str]:
    """What a renderer would run, load or follow elsewhere than to the web."""
    tokens = [
        token
        for block in MarkdownIt("commonmark").parse(markdown)
        for token in [block, *(block.children or ())]
    ]
    unsafe = [t.content for t in tokens if t.type in ("html_block", "html_inline", "image")]
    links = [str(token.attrs["href"]) for token in tokens if token.type == "link_open"]
    return unsafe + [link for link in links if not link.startswith(("http://", "https://"))]


def test_hostile_markdown_neither_breaks_out_nor_runs() -> None:
    markdown = html(HOSTILE)
    assert live_in(markdown) == []
    assert "closed?" not in prose_of(markdown)
    assert prose_of(markdown).endswith("After.")


PIECES = (
    "```", "~~~", "`", "``", "<script>", "</b>", "<!--", "-->", "![", "](", "](javascript:x)", "- ", "1. ",
    "[a]: javascript:x", "[", "]", "<javascript:x>", "https://e.org", "\n", "    ", "> ", "word", "\\", "*",
    "|", "#",
)  # fmt: skip
ELEMENTS = (
    "<b>{}</b>", "<p>{}</p>", "<code>{}</code>", "<pre>{}</pre>", "<ul><li>{}</li></ul>", "<em>{}</em>{}",
    "<blockquote>{}</blockquote>", "<a href='https://e.org/x'>{}</a>", "<a href='javascript:x'>{}</a>",
    "<table><tr><td>{}</td></tr></table>", "<h2>{}</h2>", "<dt>{}</dt>", "<span class=math>{}</span>",
    "{}<br>", "<sub>{}</sub>", "<font>{}</font>", "]<!-- x -->({})", "!<a href='https://e.org/y'>{}</a>",
    "<em> </em>", "<samp>{}</samp>", "<s>{}</s>", "<blockquote></blockquote>",
)  # fmt: skip


def hostile(chance: Random, depth: int = 0) -> str:
    """Elements within each other, and pieces of Markdown side by side as their text."""
    parts = []
    for _ in range(chance.randint(1, 3)):
        if depth < 4 and chance.random() < 0.5:
            element = chance.choice(ELEMENTS)
            parts.append(element.format(*(hostile(chance, depth + 1) for _ in range(element.count("{}")))))
        else:
            parts.append(escape("".join(chance.choices(PIECES, k=3))))
    return "".join(parts)


def test_whatever_a_page_is_made_of_a_renderer_finds_nothing_live_in_it() -> None:
    for seed in range(80):
        article = hostile(Random(seed))
        assert live_in(html(f"<h1>T</h1>{article}")) == [], article


def test_prose_opens_no_fence_and_code_cannot_leave_its_own() -> None:
    for text in ["```\nx", "~~~~py\nx\n~~~", "```", "> ```\n> x", "````\n```\n", "\\```", "\\\\~~~"]:
        assert prose_of(html(f"<h1>T</h1><p>{text}</p><p>After.</p>")).endswith("After.")
    for code in ["x", "```", "a\n````\n~~~\nb", "`" * 50, "```python\n"]:
        assert prose_of(html(f"<h1>T</h1><pre>{code}</pre><p>After.</p>")) == "# T\n\n\nAfter."


def test_code_in_a_line_keeps_what_would_be_changed_in_prose() -> None:
    assert html("<h1>T</h1><p>Say <code>&lt;b> ![x](y) `z`</code>, not &lt;b>.</p>").endswith(
        "Say `` <b> ![x](y) `z` ``, not \\<b>.\n"
    )


REPEATED = (
    "`", "``x`", "`a <", ":a:", "::\n", "=== ===\n", "`x`_ ", ".. a::\n ", "<!--", "<!-- -->", "![", "](",
    "[", "]:", "<http://", "\x1b]", "```\n", "` ``", "# %%\n", '"""', "\\",
)  # fmt: skip


@pytest.mark.parametrize("form", ["rst", "tutorial"])
def test_repetition_is_answered_with_bounded_text(form: Form) -> None:
    for piece in REPEATED:
        assert len(to_markdown(piece * (1_500 // len(piece)), form, URL)) < 25_000, piece


def test_directives_nested_beyond_reason_are_quoted() -> None:
    nested = "".join("   " * depth + ".. note::\n\n" for depth in range(60)) + "   " * 60 + "Deep.\n"
    assert "Deep." in rst(nested)

"""One entry of any JSON object is set and removed, and the rest keeps its meaning."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytorch_to_triton_server.install import json_text
from pytorch_to_triton_server.install.clients import SERVER

KEYS = st.text(alphabet='ab"\\/{}[],:é\n*', max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(
    others=st.dictionaries(KEYS, JSON, max_size=3),
    servers=st.dictionaries(KEYS, JSON, max_size=3),
    indent=st.sampled_from([None, 2, "\t"]),
    commented=st.booleans(),
)
def test_any_object_keeps_all_but_the_entry(
    others: dict[str, Any], servers: dict[str, Any], indent: int | str | None, commented: bool
) -> None:
    whole = {**others, "mcpServers": servers, "z": 1}
    text = json.dumps(whole, indent=indent, ensure_ascii=False)
    if commented and indent is not None:
        text = text.replace("\n", ' // a "comment", }\n', 1)
        text = "/* head */" + text[:-1] + ", /* { } */ }\n"
    assert json_text.read(text) == whole
    entered = json_text.with_entry(text, "mcpServers", SERVER, {"command": "c"})
    assert json_text.read(entered) == {**whole, "mcpServers": {**servers, SERVER: {"command": "c"}}}
    left = json_text.read(json_text.without_entry(entered, "mcpServers", SERVER))
    assert {"mcpServers": {}, **left} == whole

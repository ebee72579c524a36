"""One table of a TOML text, changed without touching the rest."""

from typing import Any

import tomlkit


def read(text: str) -> dict[str, Any]:
    """What the text says. Raises ValueError."""
    try:
        return tomlkit.parse(text).unwrap()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not valid TOML: {error}") from error


def with_entry(text: str, section: str, key: str, entry: dict[str, Any]) -> str:
    """The text with the table [section.key] set, a new one at the end: comments stay where they are."""
    document: Any = tomlkit.parse(text)
    if isinstance(document.get(section, {}).get(key), dict):
        document[section][key].update(entry)
        return tomlkit.dumps(document)
    servers = tomlkit.table(is_super_table=True).append(key, entry)
    table = tomlkit.dumps(tomlkit.document().append(section, servers))
    return f"{text.rstrip()}\n\n{table}" if text.strip() else table


def without_entry(text: str, section: str, key: str) -> str:
    """The text without the table [section.key]."""
    document: Any = tomlkit.parse(text)
    del document[section][key]
    return tomlkit.dumps(document).rstrip() + "\n"

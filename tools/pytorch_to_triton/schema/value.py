"""The base of every value that crosses a process or a tool: frozen, strict about unknown fields, no NaN."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """An immutable record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

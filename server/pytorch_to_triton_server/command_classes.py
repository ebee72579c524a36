"""What every command and group does beyond what typer's do: pages of help of our own, `--json` anywhere."""

from difflib import get_close_matches
from typing import Any

from typer.core import TyperCommand, TyperGroup

from pytorch_to_triton_server.help_page import write_page

_JSON = "--json"
WHOLE = "all"
"""The command that stands for its group, which may be left out: `convert TARGET`."""


class DocumentedCommand(TyperCommand):
    """A command with a page of help that ends with examples."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        write_page(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if all(parameter.name != "json" for parameter in self.params):
            # It has no result to print; its errors are still JSON, as `ctx.obj` says.
            args = [word for word in args if word != _JSON]
        return super().parse_args(ctx, args)


class DocumentedGroup(TyperGroup):
    """A group of commands with a page of help; `--json` may come before its command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        write_page(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        leading = next((i for i, word in enumerate(args) if not word.startswith("-")), len(args))
        options, rest = args[:leading], args[leading:]
        if _JSON in options:
            options = [word for word in options if word != _JSON]
            rest = [*rest, _JSON] if rest and _JSON not in rest else rest
        args = [*options, *rest]
        if WHOLE in self.commands and args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = args if self._is_misspelt(args[0]) else [WHOLE, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands, and what the one that may be left out takes first."""
        whole = self.commands.get(WHOLE)
        return super().shell_complete(ctx, incomplete) + (
            whole.params[0].shell_complete(ctx, incomplete) if whole else []
        )

    def _is_misspelt(self, word: str) -> bool:
        """Whether it is nearly one of the commands, and names no file."""
        return ".py" not in word and bool(get_close_matches(word, self.commands))

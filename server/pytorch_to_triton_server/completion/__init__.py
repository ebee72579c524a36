"""Completion of commands, options and their values in a shell, by typer."""

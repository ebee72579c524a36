"""Completion of commands, options and their values in a shell.

command.py   the command `completion`, which prints a shell's script
scripts.py   the scripts: each asks `answer` at every press of Tab
answer.py    which words may follow; it loads nothing but the standard library
values.py    the values that depend on the folder: targets, sessions, paths
table.py     commands and options as plain data, kept in the cache until the program changes
"""

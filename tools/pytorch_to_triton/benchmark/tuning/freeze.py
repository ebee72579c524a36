"""Measured configurations written into a kernel file: a table and a chooser in the place of @triton.autotune.

Nothing is tuned any more, so reset_to_zero, restore_value and the tuner's own pre_hook and post_hook, which
run only around trials, go with the decorator. An early_config_prune stays: a launch whose key was not
measured takes no configuration that it rules out.
"""

import ast
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytorch_to_triton.benchmark.tuning.tuners import CHOOSER, KernelSource, Tuner
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.benchmark import TunedConfig

OPTIONS: Mapping[str, object] = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None}
"""What every kernel takes beside its parameters, and triton.Config's defaults."""
ALWAYS_SHOWN = ("num_warps", "num_stages")
WIDTH = 88
"""Of the written lines: what formatters allow by default."""
DTYPE = " dtype"
MEASURED = "# Measured on "

_CHOOSER = '''\
def as_measured(table, sizes, tensors, prune=None):
    """Heuristics that give each meta-parameter the value that the table has for a launch.

    A key holds the values of `sizes`, then the dtypes of `tensors`. A launch whose key
    was not measured takes the nearest one's configuration: as many dtypes alike as can
    be, then the smallest ratios between the sizes, multiplied.
    """
    chosen = dict(table)

    def distance(key, wanted):
        differing, ratio = 0, 1.0
        for a, b in zip(key, wanted, strict=True):
            if type(a) is int and type(b) is int:
                ratio *= max(a, b, 1) / max(min(a, b), 1)
            else:
                differing += a != b
        return differing, ratio

    def row(args):
        dtypes = (getattr(args.get(name), "dtype", None) for name in tensors)
        key = (*(args.get(name) for name in sizes), *dtypes)
        if key not in chosen:
            nearest = sorted(table, key=lambda known: distance(known, key))
            left = prune(nearest, args) if prune else nearest
            chosen[key] = table[left[0]]
        return chosen[key]

    names = next(iter(table.values()))
    return {name: lambda args, name=name: row(args)[name] for name in names}
'''
_PRUNER = '''\
def pruned_by(early_config_prune, table):
    """For as_measured: of some keys those whose configurations it lets through."""
    taken_by_all = ("num_warps", "num_stages", "num_ctas", "maxnreg")

    def pruned(keys, args):
        configs = []
        for row in map(table.get, keys):
            options = {name: row[name] for name in row if name in taken_by_all}
            meta = {name: row[name] for name in row if name not in taken_by_all}
            configs.append(triton.Config(meta, **options))
        left = [*early_config_prune(configs, args, **args)]
        found = [k for k, config in zip(keys, configs, strict=True) if config in left]
        if not found:
            raise ValueError("no measured configuration suits this launch: measure it")
        return found

    return pruned
'''


def freeze(source: str, configs: Sequence[TunedConfig], where: str, file: str = "the source") -> str:
    """The kernel file with a table of `configs` and a chooser in the place of each autotuner they are for.

    `where` is where they were measured: GPU, Triton, date. A launch whose key is in the table takes that
    configuration, another one the nearest key's. Launches stay as they are, and so does every line but the
    decorators. A file that was frozen before gets new tables; configurations of kernels that it only imports
    are left out. Raises BadInput, with `file` and a line, where a kernel cannot be frozen as it is written,
    and where no configuration is of a kernel of this file.
    """
    kernels = KernelSource(source.replace("\r\n", "\n"), file)
    by_kernel: dict[str, list[TunedConfig]] = {}
    for config in configs:
        by_kernel.setdefault(config.kernel, []).append(config)
    tuners = {name: tuner for name in by_kernel if (tuner := kernels.tuner(name))}
    if by_kernel and not tuners:
        raise BadInput(
            f"{file}:1: {', '.join(by_kernel)} is defined elsewhere.",
            "Freeze the file that defines the kernel, with its own configurations.",
        )
    tables = [_Table(kernels, tuner, by_kernel[name], where) for name, tuner in tuners.items()]
    if not tables:
        return source
    written = [edit for table in tables for edit in table.edits()]
    edits = [*_choosers(kernels, tables), *written]
    edits = [*_imports(kernels, edits), *edits]
    edited = _apply(kernels.text, edits)
    return edited.replace("\n", "\r\n") if "\r\n" in source else edited


def autotuned_kernels(source: str, file: str = "the source") -> tuple[str, ...]:
    """The names of the kernels that have a @triton.autotune, in the file's order.

    Raises BadInput where the source is not Python.
    """
    return tuple(tuner.name for tuner in KernelSource(source, file).tuners if not tuner.is_frozen)


@dataclass(frozen=True)
class _Edit:
    """Lines `first` up to `end`, not included, become `lines`; counted from 0."""

    first: int
    end: int
    lines: Sequence[str]


@dataclass(frozen=True)
class _Table:
    """One kernel's measured configurations, to be written."""

    file: KernelSource
    tuner: Tuner
    configs: Sequence[TunedConfig]
    where: str

    @property
    def name(self) -> str:
        return f"{self.tuner.name.upper()}_MEASURED"

    @cached_property
    def sizes(self) -> list[str]:
        """The arguments whose values are in the keys."""
        return [*dict.fromkeys(name for c in self.configs for name in c.key if not name.endswith(DTYPE))]

    @cached_property
    def tensors(self) -> list[str]:
        """The arguments whose dtypes are in the keys."""
        names = (name for c in self.configs for name in c.key if name.endswith(DTYPE))
        return [*dict.fromkeys(name.removesuffix(DTYPE) for name in names)]

    @cached_property
    def columns(self) -> list[str]:
        """The meta-parameters in the author's order, then the options that any configuration gives."""
        meta = [name for name in self.configs[0].config if name not in OPTIONS]
        given = {name for c in self.configs for name in c.config}
        return meta + [name for name in OPTIONS if name in given or name in ALWAYS_SHOWN]

    @cached_property
    def prune(self) -> str | None:
        """The author's early_config_prune, as the file writes it."""
        return self.file.prune(self.tuner)

    def edits(self) -> list[_Edit]:
        """The table above the kernel, or in the place of its old one, and the decorator."""
        self.refuse_misfits()
        self.file.refuse_what_needs_the_tuner(self.tuner)
        lines, decorator = self.file.text.split("\n"), self.tuner.decorator
        head, indent = decorator.lineno - 1, " " * self.tuner.kernel.col_offset
        width = WIDTH - len(indent)
        table = [f"{indent}{line}" for line in self.lines(width)]
        chooser = [f"{indent}{line}" for line in self.decorator(width)]
        changed = _Edit(head, decorator.end_lineno or head + 1, chooser)
        if self.tuner.is_frozen:
            old = self.file.value(self.name)
            if old is None:
                problem = f"the value of {self.name}, the table of {self.tuner.name}, is not plain"
                raise self.file.refusal(decorator, problem, "Assign it once, then freeze again.")
            first = _top(lines, old.lineno - 1, MEASURED)
            return [_Edit(first, old.end_lineno or old.lineno, table), changed]
        above = _top(lines, _first_line(self.tuner.kernel))
        return [_Edit(above, above, [*table, "", *([] if indent else [""])]), changed]

    def lines(self, width: int) -> Iterator[str]:
        text = f"{MEASURED}{self.where}. A key that is not here takes the nearest one's."
        yield from _comment(text, width)
        yield f"{self.name} = {{"
        dtypes = [f"dtypes of {', '.join(self.tensors)}"] if self.tensors else []
        about = ", ".join([*self.sizes, *dtypes]) or "one configuration, whatever the launch"
        yield from (f"    {line}" for line in _comment(f"# {about}", width - 4))
        for key, row in self.rows():
            yield from (f"    {line}" for line in _entry(key, row, width - 4))
        yield "}"

    def rows(self) -> list[tuple[list[str], list[str]]]:
        """Keys and configurations as source, sorted; of one key the last configuration."""
        rows = {}
        for config in self.configs:
            key = [_literal(config.key.get(name)) for name in self.sizes]
            key += [self.dtype(config.key.get(f"{name}{DTYPE}")) for name in self.tensors]
            row = {**OPTIONS, **config.config}
            order = tuple((int(part), "") if part.isdigit() else (-1, part) for part in key)
            rows[order] = (key, [f"{_literal(name)}: {_literal(row[name])}" for name in self.columns])
        return [rows[order] for order in sorted(rows)]

    def dtype(self, name: object) -> str:
        return "None" if name is None else f"{_name_in_file(self.file, 'torch')}.{name}"

    def decorator(self, width: int) -> list[str]:
        arguments = [self.name, f"[{_names(self.sizes)}]", f"[{_names(self.tensors)}]"]
        arguments += [f"pruned_by({self.prune}, {self.name})"] if self.prune else []
        triton = _name_in_file(self.file, "triton")
        heuristics = self.file.imports.get("triton.heuristics", f"{triton}.heuristics")
        line = f"@{heuristics}({CHOOSER}({', '.join(arguments)}))"
        if len(line) <= width:
            return [line]
        spread = [f"        {line}" for argument in arguments for line in _spread(argument, width - 8)]
        return [f"@{heuristics}(", f"    {CHOOSER}(", *spread, "    )", ")"]

    def refuse_misfits(self) -> None:
        """Raises BadInput for configurations that are not this kernel's, or that a table cannot hold."""
        kernel, name = self.tuner.kernel, self.tuner.name
        if not self.tuner.is_frozen and (taken := self.file.scope.bindings.get(self.name)):
            problem = f"{self.name}, where the configurations of {name} go, is already defined"
            raise self.file.refusal(taken[0].node, problem, "Rename it, then freeze again.")
        named = {*self.sizes, *self.tensors, *self.columns} - {*OPTIONS}
        if unknown := sorted(named - self.tuner.parameters):
            problem = f"{name} has no parameter called {', '.join(unknown)}, which its configurations name"
            raise self.file.refusal(kernel, problem, "Measure the kernel of this very file again.")
        for config in self.configs:
            entries = {**config.key, **config.config}
            if opaque := [n for n, value in entries.items() if isinstance(value, dict | list)]:
                problem = f"{', '.join(opaque)} of {name} cannot be written to a table: {entries[opaque[0]]}"
                raise self.file.refusal(kernel, problem, "Leave this kernel autotuned and freeze the others.")
            if {*config.config} - {*OPTIONS} != {*self.columns} - {*OPTIONS}:
                problem = f"the configurations of {name} do not all give the same meta-parameters"
                raise self.file.refusal(
                    kernel, problem, "Let each Config name all of them, then measure again."
                )


def _choosers(file: KernelSource, tables: Sequence[_Table]) -> Iterator[_Edit]:
    """The functions that the decorators need, above the first kernel; those that are there stay."""
    wanted = {CHOOSER: _CHOOSER}
    if any(table.prune for table in tables):
        wanted["pruned_by"] = _PRUNER
    first = min((table.tuner.statement for table in tables), key=_first_line)
    above = _top(file.text.split("\n"), _first_line(first))
    for name, text in wanted.items():
        there = file.functions.get(name)
        if there is None:
            yield _Edit(above, above, [*text.splitlines(), "", ""])
        elif ast.dump(there) != ast.dump(ast.parse(text).body[0]):
            problem = f"{name}, which chooses among measured configurations, is already defined"
            raise file.refusal(there, problem, "Rename it, then freeze again.")


def _imports(file: KernelSource, edits: Sequence[_Edit]) -> Iterator[_Edit]:
    """What the written lines name and the file does not import, above its first import of Triton's."""
    written = "\n".join(line for edit in edits for line in edit.lines)
    missing = [
        module
        for module in ("torch", "triton")
        if file.imports.get(module) != module and re.search(rf"(?<![\w.]){module}\.\w", written)
    ]
    if missing:
        above = next(s.lineno for s in file.tree.body if _imports_triton(s)) - 1
        yield _Edit(above, above, [f"import {module}" for module in missing])


def _imports_triton(statement: ast.stmt) -> bool:
    imports = (node for node in ast.walk(statement) if isinstance(node, ast.Import | ast.ImportFrom))
    named = (getattr(node, "module", None) or node.names[0].name for node in imports)
    return any(name.partition(".")[0] == "triton" for name in named)


def _name_in_file(file: KernelSource, path: str) -> str:
    """The name that the file has for a module, or for something in it; else the path itself."""
    return file.imports.get(path, path)


def _apply(text: str, edits: Sequence[_Edit]) -> str:
    lines = text.split("\n")
    # From the end, so that line numbers hold; of two edits at one line the first given ends up above.
    for edit in sorted(edits, key=lambda edit: edit.first)[::-1]:
        lines[edit.first : edit.end] = edit.lines
    return "\n".join(lines)


def _first_line(statement: ast.stmt) -> int:
    """Of a statement with its decorators, counted from 0."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(node.lineno for node in decorators)]) - 1


def _top(lines: Sequence[str], line: int, start: str = "#") -> int:
    """The first of the comment lines right above a line, or the line; the topmost one begins with `start`."""
    top = line
    while top > 0 and lines[top - 1].lstrip().startswith("#"):
        top -= 1
    return next((n for n in range(top, line) if lines[n].lstrip().startswith(start)), line)


def _comment(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="# ", break_long_words=False)


def _entry(key: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    """One line of a dict, as many lines as formatters make of it where it is long."""
    name = f"({', '.join(key)}{',' if len(key) == 1 else ''})"
    line = f"{name}: {{{', '.join(row)}}},"
    if len(line) <= width:
        return [line]
    head = [f"{name}: {{"] if len(name) + 3 <= width else ["(", *(f"    {part}," for part in key), "): {"]
    return [*head, *(f"    {part}," for part in row), "},"]


def _spread(argument: str, width: int) -> list[str]:
    """An argument on a line of its own; a list that is too long for one, an element a line."""
    if len(argument) < width or not argument.startswith("["):
        return [f"{argument},"]
    return ["[", *(f"    {part}," for part in argument[1:-1].split(", ")), "],"]


def _names(names: Sequence[str]) -> str:
    return ", ".join(_literal(name) for name in names)


def _literal(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)

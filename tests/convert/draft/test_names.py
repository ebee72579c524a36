"""No two values of a drafted program have one name, and no name is read that nothing defines."""

import builtins
import symtable
from collections.abc import Iterator

import pytest

from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.draft.program import Step
from pytorch_to_triton.draft.reading import read_program
from pytorch_to_triton.schema.graph import Node

from .graphs import graph, node, text


def item(name: str, of: str, index: int) -> Node:
    return node(name, "any", (of, index), ("M",)).model_copy(update={"op": "getitem"})


@pytest.mark.parametrize("op", ["max.dim", "topk.default"])
def test_a_variable_that_is_called_like_one_of_several_results_has_its_own_name(op: str) -> None:
    """As for `h = x.max(-1)`, then `h_1 = x.relu()`, where the first's results are `h_0` and `h_1`."""
    nodes = (
        node("both", op, ("x", 1), ("M",)).model_copy(update={"shape": None, "source_name": "h"}),
        item("first", "both", 0),
        item("second", "both", 1),
        node("total", "add.Tensor", ("first", "second"), ("M",)),
        node("own", "relu.default", ("x",), ("M", "N")).model_copy(update={"source_name": "h_1"}),
    )
    program = read_program(graph({"x": ("M", "N")}, nodes, ("total", "own")), frozenset(), PURE)
    names = [n for i in program.items for n in ((i.name,) if isinstance(i, Step) else i.names)]
    assert len(set(names)) == len(names) == 4


def globals_read(table: symtable.SymbolTable) -> Iterator[str]:
    yield from (s.get_name() for s in table.get_symbols() if s.is_referenced() and s.is_global())
    for child in table.get_children():
        yield from globals_read(child)


@pytest.mark.parametrize("to", ["M", "N"])
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_product_reads_no_name_that_its_file_does_not_define(to: str, stage: int) -> None:
    """Of x [M, N] by a square matrix, too, whose result is made like x: the precision asks for its device."""
    nodes = (
        node("p", "mm.default", ("x", "w"), ("M", to)),
        node("y", "relu.default", ("p",), ("M", to)),
    )
    source = text(graph({"x": ("M", "N"), "w": ("N", to)}, nodes, ("y",)), stage)
    module = symtable.symtable(source, "draft.py", "exec")
    defined = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()}
    assert set(globals_read(module)) <= {*defined, *dir(builtins)}

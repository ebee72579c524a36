"""Staged copies: the candidate's file without the reference, the oracle's with nothing else."""

import inspect
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch

from pytorch_to_triton.worker.loading.staging import only, without

ROOT = Path(__file__).parents[2]
ROOTS = ("reference", "Model", "inputs", "get_inputs")
KEEP = ("run", "ModelNew")
KERNELS = [
    path
    for folder in ("reference_kernels", "tests/kernels", "tests/kernels/honest", "tests/kernels/wrong")
    for path in sorted((ROOT / folder).glob("*.py"))
]
FILES = [
    pytest.param(KERNELS[::6], id="some"),
    pytest.param(KERNELS, marks=pytest.mark.corpora, id="all"),
]
GONE = "the reference is not available while the candidate runs"


def candidate(source: str, *keep: str) -> str:
    return without(dedent(source), ROOTS, keep or KEEP)


def oracle(source: str) -> str:
    return only(dedent(source), ROOTS)


def executed(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "staged"}
    exec(compile(source, "staged", "exec"), names)
    return names


def raises_gone() -> Any:
    return pytest.raises(RuntimeError, match=GONE)


@pytest.mark.parametrize("files", FILES)
def test_the_kept_lines_of_a_kernel_file_stay_where_they_are(files: list[Path]) -> None:
    for path in files:
        source = path.read_text()
        for copy in (without(source, ROOTS, KEEP), only(source, ROOTS)):
            compile(copy, path, "exec")
            before, after = source.split("\n"), copy.split("\n")
            # Whatever is added for other files to import comes after the last line.
            assert len(after) >= len(before), path
            changed = [new for new, old in zip(after, before, strict=False) if new not in (old, "", "pass")]
            # A comment at the end of a statement that went stays.
            stubs = ("def ", "'", '"', "class ", "#")
            assert all(GONE in line or line.lstrip().startswith(stubs) for line in changed), path


def test_what_the_reference_alone_uses_goes_and_what_both_use_stays() -> None:
    source = """
        import math
        SCALE = 2.0
        OFFSET = 1.0
        TABLE: dict = {"a": 1}

        def shared(x):
            return x * SCALE

        def exact(x):
            return shared(x) + OFFSET + deeper(x)

        def deeper(x):
            return TABLE["a"]

        def unused(x):
            return x

        def reference(x):
            return exact(x)

        def run(x):
            return shared(x)
        """
    names = executed(candidate(source))
    assert names.keys() >= {"math", "SCALE", "shared", "unused", "reference", "run"}
    assert not names.keys() & {"OFFSET", "TABLE", "exact", "deeper"}
    assert names["run"](3) == 6
    with raises_gone():
        names["reference"](3)
    names = executed(oracle(source))
    assert names["reference"](3) == 8
    assert not names.keys() & {"unused", "run"}


def test_a_parameter_is_not_the_module_s_variable_of_that_name() -> None:
    source = """
        import torch
        x = setattr(torch, "tampered", True)

        def reference(x):
            return x

        def run(x):
            return x
        """
    assert "tampered" not in oracle(source)
    assert "tampered" in candidate(source)


def test_tampering_vanishes_from_the_oracle_s_copy_and_stays_in_the_candidate_s() -> None:
    source = """
        import torch
        torch.allclose = lambda *args, **kwargs: True
        torch.manual_seed(3)
        LIMITS = {}
        LIMITS["low"] = 0.5

        def reference(x):
            return torch.clamp(x, LIMITS["low"])

        def run(x):
            return x
        """
    assert "torch.allclose" not in oracle(source)
    assert "manual_seed" not in oracle(source)
    assert executed(oracle(source))["reference"](torch.zeros(1)) == 0.5
    assert "torch.allclose = lambda" in candidate(source)


def test_a_stub_keeps_signature_and_docstring() -> None:
    source = '''
        import functools
        EPS = 1e-5

        def logged(function):
            return function

        @logged
        @functools.cache
        def reference(x: "torch.Tensor", *, eps: float = EPS) -> "torch.Tensor":
            """Rows of x,

            'normalised'.
            """
            return x / (x + eps)

        @functools.wraps(reference)
        def run(x, eps):
            return x

        run.__doc__ = reference.__doc__
        '''
    names = executed(candidate(source))
    original = executed(dedent(source).replace("@logged\n@functools.cache\n", ""))
    assert inspect.signature(names["reference"]) == inspect.signature(original["reference"])
    assert names["run"].__doc__ == original["reference"].__doc__
    assert "logged" not in names
    assert names["run"].__code__.co_firstlineno == original["run"].__code__.co_firstlineno + 2
    with raises_gone():
        names["run"].__wrapped__(1)


def test_definitions_of_one_line_become_stubs_of_one_line() -> None:
    source = '''
        def reference(x): return x
        class Model: """A model."""
        get_inputs = lambda: [1]
        inputs, other = (lambda: 1), 2; LAST = 3
        def run(x): return x
        '''
    copy = candidate(source)
    assert copy.count("\n") == dedent(source).count("\n")
    names = executed(copy)
    assert names["Model"].__doc__ == "A model."
    assert (names["run"](1), names["other"], names["LAST"]) == (1, 2, 3)
    for name in ROOTS:
        with raises_gone():
            names[name](*[1] * (name == "reference"))


def test_statements_that_share_a_line_are_blanked_one_by_one() -> None:
    source = """
        A = [1,
            2]; B = 3; C = (4,
            5)
        def reference(): return A, C
        def run(): return B
        """
    names = executed(candidate(source))
    assert names["run"]() == 3
    assert not names.keys() & {"A", "C"}
    assert "B" not in executed(oracle(source))


def test_an_imported_reference_is_replaced_by_a_stub() -> None:
    names = executed(candidate("from torch import relu as reference, abs\ndef run(x): return reference(x)\n"))
    with raises_gone():
        names["run"](torch.ones(2))


def test_a_root_that_is_also_kept_stays_whole() -> None:
    source = "def reference(x):\n    return exact(x)\ndef exact(x):\n    return x + 1\n"
    assert without(source, ["reference"], ["reference"]) == source
    assert without(source, ["Model", "missing"], ["run"]) == source


def test_models_with_a_shared_base_class() -> None:
    source = """
        import torch
        from torch import nn

        class Base(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.linear = nn.Linear(width, width)

        class Exact(Base):
            def forward(self, x):
                return self.linear(x)

        class Model(Exact):
            def __init__(self, width):
                super().__init__(width)

        class ModelNew(Base):
            def forward(self, x):
                return x @ self.linear.weight.T + self.linear.bias
        """
    names = executed(candidate(source))
    assert "Exact" not in names
    assert names["ModelNew"](4)(torch.ones(2, 4)).shape == (2, 4)
    assert list(inspect.signature(names["Model"]).parameters) == ["width"]
    with raises_gone():
        names["Model"](4)
    assert "ModelNew" not in executed(oracle(source))
    assert executed(oracle(source))["Model"](4)(torch.ones(2, 4)).shape == (2, 4)


def test_a_candidate_may_inherit_the_reference_s_parameters_but_not_its_forward() -> None:
    source = """
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(self.initial())

            def initial(self):
                return torch.ones(3)

            def forward(self, x):
                return self.scaled(x)

            def scaled(self, x):
                return x * self.weight

        class ModelNew(Model):
            def forward(self, x):
                return x * self.weight.detach()

        class Cheat(Model):
            pass
        """
    names = executed(candidate(source))
    assert names["ModelNew"]()(torch.ones(3)).tolist() == [1, 1, 1]
    for cheat in (names["Cheat"](), names["ModelNew"]().scaled):
        with raises_gone():
            cheat(torch.ones(3))


def test_references_in_blocks_become_stubs_there() -> None:
    source = """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from torch import Tensor
        try:
            import missing_package
            FAST = True
        except ImportError:
            FAST = False
        if FAST:
            def reference(x: "Tensor") -> "Tensor":
                return missing_package.compute(x)
        else:
            reference = lambda x: exact(x)

        def exact(x):
            return x + 1

        def run(x: "Tensor"):
            return x, FAST
        """
    names = executed(candidate(source))
    assert names["run"](1) == (1, False)
    assert "exact" not in names
    with raises_gone():
        names["reference"](1)
    assert "from torch import Tensor" in oracle(source)
    assert executed(oracle(source))["reference"](1) == 2


def test_where_names_may_be_used_unseen_only_the_reference_goes() -> None:
    rest = "def exact(x): return x\ndef reference(x): return exact(x)\ndef run(x): return x\n"
    for opening in ("from math import *", "NAMES = globals()", "def f(x): return eval(x)"):
        names = executed(candidate(f"{opening}\n{rest}"))
        assert names["exact"](1) == 1
        with raises_gone():
            names["reference"](1)
        assert "def run" not in oracle(f"{opening}\n{rest}")


def test_a_reference_that_reads_globals_keeps_its_file() -> None:
    source = "def exact(x): return x\ndef reference(x): return globals()['exact'](x)\n"
    assert oracle(source) == source


def test_changes_of_the_import_path_stay_for_the_oracle() -> None:
    source = "import sys\nHERE = 'lib'\nsys.path.insert(0, HERE)\nprint(1)\ndef reference(x): return x\n"
    assert oracle(source) == source.replace("print(1)", "pass")

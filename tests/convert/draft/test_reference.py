"""The user's function comes along with all that it needs from its file, and with nothing else."""

import pytest

from pytorch_to_triton.draft.file.reference import MadeModule, Reference, function_reference, module_reference
from pytorch_to_triton.errors import NotConvertible

FILE = '''
import math, os
import torch
import torch.nn.functional as F
from torch import nn

SCALE: float = 1 / math.sqrt(2)
UNUSED = os.sep


def gate(x):
    return x * SCALE


def f(x: torch.Tensor, eps: float = 1e-5, *, flag: bool = True) -> torch.Tensor:
    """x: [M, N]."""
    return F.silu(gate(x)) + eps


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x, power=2.0):
        return gate(x) ** power * self.weight
'''


def text_of(reference: Reference) -> str:
    return "\n".join((*reference.imports, *reference.definitions))


def test_functions_and_constants_come_along_in_the_order_of_the_file() -> None:
    reference = function_reference(FILE, "f")
    scale, gate, own = reference.definitions
    assert scale == "SCALE: float = 1 / math.sqrt(2)"
    assert gate.startswith("def gate(x):")
    assert own.startswith("def reference(x: torch.Tensor")


def test_only_imports_that_are_needed_come_along() -> None:
    reference = function_reference(FILE, "f")
    assert set(reference.imports) == {"import math", "import torch", "import torch.nn.functional as F"}
    assert "UNUSED" not in text_of(reference)


def test_parameters_lose_their_annotations_and_keep_their_defaults() -> None:
    assert function_reference(FILE, "f").parameters == "x, eps=1e-05, *, flag=True"


def test_the_copied_text_runs() -> None:
    torch = pytest.importorskip("torch")
    scope: dict[str, object] = {}
    exec(text_of(function_reference(FILE, "f")), scope)
    reference = scope["reference"]
    assert callable(reference)
    assert reference(torch.zeros(2, 3)).tolist() == [[pytest.approx(1e-5)] * 3] * 2


def test_a_recursive_helper_of_a_helper_comes_along() -> None:
    text = "def a(x):\n    return b(x)\n\n\ndef b(x):\n    return x\n\n\ndef f(x):\n    return a(x)\n"
    assert [d.split("(")[0] for d in function_reference(text, "f").definitions] == [
        "def a",
        "def b",
        "def reference",
    ]


def test_a_module_becomes_a_call_with_its_state() -> None:
    reference = module_reference(FILE, "Layer", MadeModule({"weight": "weight"}, "Layer()"))
    assert reference.parameters == "x, power=2.0, weight=None"
    assert 'functional_call(module, {"weight": weight}, (x, power))' in text_of(reference)
    assert "class Layer(nn.Module):" in text_of(reference)
    assert "def gate(x):" in text_of(reference)


def test_a_decorated_function_keeps_its_decorator() -> None:
    text = "import torch\n\n\n@torch.no_grad()\ndef f(x):\n    return x + 1\n"
    own = function_reference(text, "f").definitions[-1]
    assert own == "@torch.no_grad()\ndef reference(x):\n    return x + 1"


def test_a_decorated_helper_keeps_its_decorator() -> None:
    text = (
        "import functools\n\n\n@functools.cache\ndef c():\n    return 2\n\n\ndef f(x):\n    return x * c()\n"
    )
    reference = function_reference(text, "f")
    assert reference.imports == ("import functools",)
    assert reference.definitions[0] == "@functools.cache\ndef c():\n    return 2"


def test_a_relative_import_that_is_not_needed_does_no_harm() -> None:
    text = "from .parts import gate\n\n\ndef f(x):\n    return x\n"
    assert function_reference(text, "f").imports == ()


REFUSED = {
    "a relative import": (
        "from .parts import gate\n\n\ndef f(x):\n    return gate(x)\n",
        "relative import",
        "full name",
    ),
    "what is no plain function": ("f = lambda x: x\n", "not defined by a plain `def`", "made at run time"),
    **{
        f"the drafted file's own {name}": (
            f"def {name}(x):\n    return x\n\n\ndef f(x):\n    return {name}(x)\n",
            f"`{name}`",
            f"Rename `{name}`.",
        )
        for name in ("run", "reference", "tl")
    },
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_come_along_is_refused_with_a_way_out(what: str) -> None:
    text, message, hint = REFUSED[what]
    with pytest.raises(NotConvertible, match=message) as refusal:
        function_reference(text, "f")
    assert hint in refusal.value.hint


def test_constants_bound_together_or_under_a_condition_come_along() -> None:
    text = (
        "LOW, (MIDDLE, HIGH) = 0.0, (0.5, 1.0)\n"
        "try:\n    from fast import SCALE\nexcept ImportError:\n    SCALE = 2.0\n"
        "STEPS = [1.0]\nSTEPS += [i * 2.0 for i in range(3)]\nUNUSED = 7\n\n\n"
        "def f(x):\n    return (x + MIDDLE) * SCALE + STEPS[1]\n"
    )
    definitions = function_reference(text, "f").definitions
    assert [d.splitlines()[0] for d in definitions] == [
        "LOW, (MIDDLE, HIGH) = 0.0, (0.5, 1.0)",
        "try:",
        "STEPS = [1.0]",
        "STEPS += [i * 2.0 for i in range(3)]",
        "def reference(x):",
    ]


def test_what_get_init_inputs_reads_comes_along() -> None:
    text = FILE + "\n\nwidth = 4\n\n\ndef get_init_inputs():\n    return [width]\n"
    reference = module_reference(text, "Layer", MadeModule({}, "Layer(*get_init_inputs())"))
    assert "width = 4" in reference.definitions
    assert "        return Layer(*get_init_inputs())\n" in text_of(reference)

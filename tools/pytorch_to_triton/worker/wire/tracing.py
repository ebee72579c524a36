"""Job `describe`: what is asked of a target, and what it answers.

The job loads the target, then takes requests.
"""

from typing import Literal

from . import Case, Failure, Json
from .as_json import NamedValue, WireValue


class DescribedItem(NamedValue):
    description: Json
    """schema/description.py."""


class FreeSizesRequest(NamedValue):
    do: Literal["free_sizes"] = "free_sizes"


class FreeSizes(WireValue):
    """The sizes of get_inputs() that its target leaves free, as dims: it runs at others, too."""

    shapes: dict[str, tuple[str, ...]]
    """Each tensor's sizes, names of dims and numbers."""
    dims: dict[str, int]
    """Each dim at the size that get_inputs() gives it."""
    requires: tuple[str, ...]
    """Conditions on the dims under which the target runs, and computes the same."""
    same_program: tuple[str, ...] = ()
    """Conditions under which a trace has the operators that it has at the sizes of get_inputs()."""


class FreeSizesItem(NamedValue):
    free: FreeSizes | None
    """None: all sizes are numbers."""


class ShownInputsRequest(NamedValue):
    do: Literal["shown_inputs"] = "shown_inputs"
    points: tuple[dict[str, int], ...]
    """Dims for the file's `inputs`."""


class ShownInputsItem(NamedValue):
    examples: tuple[list[Json], ...]
    """Examples of schema/description.py: what it returns at each point."""


class TracedInput(WireValue):
    name: str
    dtypes: tuple[str, ...]
    """One for each trace."""
    shape: tuple[str, ...]
    """Expressions over the dims."""
    traced: tuple[int, ...]


class TracedSize(WireValue):
    """An argument that is a size, a whole number."""

    name: str
    size: str
    """An expression over the dims."""
    traced: int


class TraceSetting(WireValue):
    dims: dict[str, int]
    largest: dict[str, int]
    """The largest declared size of each dim: the traced ones are small."""
    keep: frozenset[str]
    """Operators that are not decomposed."""
    backward: bool
    """Whether gradients are traced too: the joint graph."""


class PartSource(WireValue):
    """Statements of a function as a function of their own."""

    name: str
    text: str
    lines: tuple[int, ...]
    """In the file, of each node that has one, in the order of ast.walk."""
    of_module: bool = False
    """Whether it takes the target's module first: it is traced with the module's state."""


class TraceRequest(NamedValue):
    do: Literal["trace"] = "trace"
    inputs: tuple[TracedInput, ...]
    sizes: tuple[TracedSize, ...]
    constants: Json
    listed: frozenset[str]
    """Those of which several values are declared: the target is traced with each by itself."""
    packings: dict[str, Json]
    """packing.py, by the parameters that hold inputs and constants."""
    setting: TraceSetting
    part: PartSource | None = None
    """What is traced in place of the target."""


class TraceSucceeded(NamedValue):
    graph: Json
    """schema/graph.py, float arguments as literals."""


class TraceRefused(NamedValue):
    why: str


class TracedItem(NamedValue):
    graph: Json
    """schema/graph.py of the first trace, float arguments told apart from literals."""
    traces: tuple[TraceSucceeded | TraceRefused, ...]


class RunsRequest(NamedValue):
    do: Literal["runs"] = "runs"
    text: str
    """The target's function, or that function written differently; lines are those of this text."""
    cases: tuple[Case, ...]
    branches: tuple[int, ...]
    """Lines of tests of which both outcomes are wanted, whatever the values say."""


class ValueNeed(WireValue):
    """An expression whose evaluation needs the values of tensors."""

    line: int
    end_line: int
    column: int
    end_column: int
    truth: bool
    """Whether a test asks for its truth; else what is in the expression reads values."""


class Held(WireValue):
    """What a variable holds."""

    kind: Literal["tensor", "float", "constant", "object"]
    value: bool | int | float | str | None = None
    """Of a finite float or a constant."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    memory: int = 0
    """Tensors with the same one share theirs."""


class Visit(WireValue):
    """One time that a run comes to a statement."""

    case: int
    line: int
    before: dict[str, Held]
    after: dict[str, Held]
    """Empty where the statement ends the function or the loop."""


class StateSeen(WireValue):
    """A parameter or buffer as the runs had it."""

    key: str
    """Of the state_dict."""
    dtypes: tuple[str, ...]
    shape: tuple[int, ...]


class RunsItem(NamedValue):
    needs: tuple[ValueNeed, ...]
    visits: tuple[Visit, ...]
    operators: dict[str, tuple[str, ...]]
    """By the line of the innermost statement that calls them."""
    sizes_of_values: tuple[tuple[int, int], ...]
    """Number of the case, and a size there that depends on values."""
    state: dict[str, StateSeen]
    """A module's parameters and buffers, by the names of their arguments."""


class UntracedItem(NamedValue):
    """In place of what was asked for: torch.export cannot follow the target at these sizes."""

    failure: Failure


TargetRequest = FreeSizesRequest | ShownInputsRequest | TraceRequest | RunsRequest
TargetItem = DescribedItem | FreeSizesItem | ShownInputsItem | TracedItem | UntracedItem | RunsItem

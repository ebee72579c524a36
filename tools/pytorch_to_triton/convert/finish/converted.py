"""From a target that was converted, or a kernel file that somebody has edited, to the recipe of its
finished files.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.convert.cuts.parts_file import CutOrigin
from pytorch_to_triton.convert.finish.recipe import (
    DropIn,
    Recipe,
    Structure,
    names_used,
    parameters_of,
    without,
)
from pytorch_to_triton.convert.resolve import DraftOrigin, ResolvedTarget
from pytorch_to_triton.draft.file.kernel_text import KernelText
from pytorch_to_triton.draft.file.module import declarations
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.draft.fresh_names import in_ascii
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.graph.dtype_rules import FLOATS
from pytorch_to_triton.inputs.declaration import Declaration, parse_declaration
from pytorch_to_triton.inputs.input_spec import ConstantSpec, InputSpec
from pytorch_to_triton.inputs.packed_input import CALL
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.targets.listed_inputs import with_values_listed
from pytorch_to_triton.worker.wire.random_operators import draws

INFINITE = ("inf", "-inf")


def recipe_of(target: ResolvedTarget, file: KernelText, *, drafted: bool) -> Recipe:
    """The recipe of a kernel file that passed; `drafted`: by the drafter, for what the trace holds.

    Raises BadInput where the target's code, or a parameter's default, cannot be repeated.
    """
    reference, declarations = reference_of(target), target.declared()
    text = file.text
    graph, function, declaration = target.graph, target.description.name, target.declaration
    name = snake(function)
    given = with_values_listed(target.description, declarations["INPUTS"])
    values = {p.name: p.default for p in target.description.parameters}
    inputs = inputs_of(reference.parameters, {**declarations, "INPUTS": given}, values)
    constants = {name for name, spec in inputs.items() if isinstance(spec, ConstantSpec)}
    guards = target.origin.holds_where if target.origin and drafted else ()
    requires = tuple(dict.fromkeys((*declaration.requires, *guards, *file.limits)))
    random = draws_random_numbers(target)
    return Recipe(
        function=function,
        name=f"{name}_by_triton" if name in names_used(text) else name,
        module_name=module_name(function),
        origin=f"{function} of {target.target.path.name}",
        file=file,
        parameters=reference.parameters,
        declaration=Declaration(
            inputs=inputs, dims=declaration.dims, requires=requires, unordered=declaration.unordered
        ),
        fixed=frozenset(constants - free_numbers(declaration, graph)),
        structure=structure_of(graph) if not random else None,
        outputs=len(returned(graph)) if graph else 0,
        backward=target.request.backward,
        without_gradient=without_gradient(target),
        module=drop_in(target, reference),
        autocast=graph is not None and graph.autocast,
        random=random,
        graph=graph,
        drafted=drafted and graph is not None,
        points=target.timed_points,
    )


def without_gradient(target: ResolvedTarget) -> frozenset[str]:
    """The floating-point inputs of which the joint trace has no gradient."""
    joint = target.origin.traced.joint if isinstance(target.origin, DraftOrigin) else None
    if joint is None or joint.joint is None:
        return frozenset()
    return (
        frozenset(i.name for i in joint.inputs if i.dtype in FLOATS)
        - joint.joint.gradients.keys()
        - joint.joint.cotangents.keys()
    )


def draws_random_numbers(target: ResolvedTarget) -> bool:
    """Whether any traced operator of a target, or of its parts, does."""
    parts = target.origin.cut.parts if isinstance(target.origin, CutOrigin) else ()
    graphs = (target.graph, *(part.traced.graph for part in parts))
    return any(draws(node.op) for graph in graphs if graph for node in graph.nodes)


def reference_of(target: ResolvedTarget) -> Reference:
    """The target's source. Raises BadInput where it cannot be copied."""
    reference = target.reference()
    if reference is None:
        raise BadInput(
            f"The code of {target.description.name} cannot be copied into the finished file, which needs it.",
            "Define it as a plain function at the top level of its file.",
        )
    return reference


def drop_in(target: ResolvedTarget, reference: Reference) -> DropIn | None:
    """The module that the kernels stand for; None for a function, and for what was not traced."""
    if target.origin is None or not target.is_module:
        return None
    description, state = target.description, target.origin.state_keys
    has_inputs = description.examples is not None
    construction = target.target.construction or ("*get_init_inputs()" if has_inputs else "")
    return DropIn(
        name=description.name,
        constructed=f"{description.name}({construction})",
        training=has_inputs,
        parameters=without(reference.parameters, state),
        needs_memory=description.needs_memory,
        state=state,
        attributes=description.attributes,
    )


def module_name(function: str) -> str:
    """Of the finished file of a function or class: ptxas reads no path with other letters."""
    return f"{in_ascii(snake(function))}_triton"


def submitted_file(target: ResolvedTarget, text: str) -> KernelText:
    """A file of anybody's, with the reference and the declarations that it may have left to the target's."""
    bound = {
        name
        for node in ast.parse(text).body
        for name in (
            [node.name]
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            else [t.id for t in getattr(node, "targets", ()) if isinstance(t, ast.Name)]
        )
    }
    file = split_kernel_file(text)
    missing = {key: value for key, value in target.declared().items() if key not in bound}
    added = [declarations(missing)]
    imports = list(file.imports)
    if "reference" not in bound:
        reference = reference_of(target)
        added += reference.definitions
        imports += reference.imports
    body = "\n\n\n".join(block for block in (*added, file.body) if block)
    return replace(file, imports=imports, body=body)


def inputs_of(
    parameters: str, declared: Mapping[str, object], values: Mapping[str, str]
) -> dict[str, InputSpec]:
    """What each parameter takes, in their order; what is not declared keeps its default, one of `values`."""
    inputs, dims = declared.get("INPUTS") or {}, declared.get("DIMS") or {}
    assert isinstance(inputs, dict)
    assert isinstance(dims, dict)
    variadic = {name: f"{kind}{CALL}" for kind, name in parameters_of(parameters) if kind in ("*", "**")}
    marked = {name: {variadic[name]: value} if name in variadic else value for name, value in inputs.items()}
    declaration = parse_declaration(marked, dims)
    specs = declaration.inputs
    missing = [name for kind, name in parameters_of(parameters) if name not in specs and name not in variadic]
    return {**specs, **{name: ConstantSpec(value=value_of(name, values.get(name, ""))) for name in missing}}


def value_of(name: str, shown: str) -> object:
    """The value of a default that is shown by its `repr`. Raises BadInput where that is no constant."""
    try:
        return float(shown) if shown in INFINITE else ast.literal_eval(shown)
    except (ValueError, SyntaxError) as problem:
        raise BadInput(
            f"The parameter {name} is not declared, and its default is no plain constant.",
            f"Start the session with --input {name}=...",
        ) from problem


def free_numbers(declaration: Declaration, graph: Graph | None) -> set[str]:
    """Constants validated with another value too, as floats but 0 are, that do not shape the trace."""
    numbers = {
        name
        for name, spec in declaration.inputs.items()
        if isinstance(spec, ConstantSpec) and isinstance(spec.value, float) and spec.value and not spec.others
    }
    return numbers - set(graph.fixed if graph else ())


def returned(graph: Graph) -> list[str]:
    """The paths of what it returns."""
    return [output.path for output in graph.outputs if output.path not in graph.written.values()]


def structure_of(graph: Graph | None) -> Structure | None:
    """What an operator of PyTorch can return of what the function returns."""
    if graph is None:
        return None
    paths = tuple(returned(graph))
    if isinstance(graph.result, str):
        return "single" if paths else "none"
    plain = graph.result.kind in ("tuple", "list") and not graph.result.type
    return graph.result.kind if plain and graph.result.items == paths else None  # type: ignore[return-value]


def split_kernel_file(text: str) -> KernelText:
    """A file's parts; comments above its docstring and between its imports are left out."""
    tree = ast.parse(text)
    statements = list(tree.body)
    doc = ast.get_docstring(tree) or ""
    if doc:
        statements = statements[1:]
    imports = []
    while statements and isinstance(statements[0], ast.Import | ast.ImportFrom):
        imports.append(ast.unparse(statements.pop(0)))
    first = begin(statements[0]) if statements else len(text.splitlines()) + 1
    body = "\n".join(text.splitlines()[first - 1 :]).strip("\n")
    title, _, rest = doc.partition("\n")
    return KernelText(title, rest.strip("\n"), tuple(imports), body, requirements(statements))


def requirements(statements: Sequence[ast.stmt]) -> tuple[str, ...]:
    """What the file's REQUIRES lists; nothing where it is computed."""
    for node in statements:
        match node:
            case ast.Assign(targets=[ast.Name(id="REQUIRES")], value=ast.List(elts=elements)):
                return tuple(str(e.value) for e in elements if isinstance(e, ast.Constant))
    return ()


def described_kernels(text: str) -> Iterator[str]:
    """Each kernel that no other one uses, with the first line of its docstring."""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    kernels = [node for node in functions if any("jit" in ast.unparse(d) for d in node.decorator_list)]
    parts = (part for kernel in kernels for statement in kernel.body for part in ast.walk(statement))
    used = {part.id for part in parts if isinstance(part, ast.Name)}
    for node in kernels:
        if node.name not in used:
            purpose = (ast.get_docstring(node) or "").partition("\n")[0]
            yield f"{node.name}: {purpose}" if purpose else node.name


def begin(node: ast.stmt) -> int:
    """The line in which a statement begins, its decorators included."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])

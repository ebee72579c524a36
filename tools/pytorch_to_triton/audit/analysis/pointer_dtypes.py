"""Which dtypes the pointers of a kernel may have, by INPUTS and by what the launching function makes."""

import ast

from pytorch_to_triton.audit.analysis.launch_sizes import declaration_for
from pytorch_to_triton.audit.analysis.launched_tensors import (
    allocation,
    callers_parameters,
    is_kept,
    owner_of,
)
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel
from pytorch_to_triton.inputs.input_spec import TensorSpec

_ANY = "any"
"""Of a tensor that callers pass and no declaration narrows."""
_KEEPS = frozenset({"contiguous", "view", "reshape", "flatten", "transpose", "permute", "squeeze"})
_KEEPS |= {"unsqueeze", "expand", "t"}
"""Methods of a tensor that leave its dtype."""
_CASTS = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64"}
_LIKE = frozenset(f"torch.{name}_like" for name in ("empty", "zeros", "ones", "full"))
_MADE = frozenset(f"torch.{name}" for name in ("empty", "zeros", "ones", "full", "empty_strided"))


def dtypes_of(pointer: str, kernel: SourceKernel) -> frozenset[str]:
    """The dtypes of what the file's launches pass for a pointer; empty where one of them is not kernel.

    A caller's tensor that nothing narrows may have `any`.
    """
    dtypes_of_all: set[str] = set()
    for launch in kernel.launches:
        value = launch.given.get(pointer)
        dtypes = _of_tensor(value, launch) if value is not None else frozenset()
        if not dtypes:
            return frozenset()
        dtypes_of_all |= dtypes
    return frozenset(dtypes_of_all)


def loaded_from(value: ast.expr, kernel: SourceKernel) -> str | None:
    """The pointer from which all that a name may hold was loaded as it is; None where anything else is."""
    value = kernel.operand(value, "trans") or value
    held = kernel.definitions(value) if isinstance(value, ast.Name) else (value,)
    calls = {load.call: load.pointer for load in kernel.loads}
    pointers = {calls.get(definition) for definition in held if isinstance(definition, ast.Call)}
    return (
        pointers.pop()
        if len(pointers) == 1 and all(isinstance(definition, ast.Call) for definition in held)
        else None
    )


def _of_tensor(value: ast.expr, launch: LaunchSite) -> frozenset[str]:
    """The dtypes of a tensor in the launching function; empty where they are not known."""
    value = owner_of(value, _KEEPS)
    if cast := _cast_to(value, launch):
        return frozenset({cast})
    if not isinstance(value, ast.Name):
        return frozenset()
    if value.id in callers_parameters(launch):
        return _of_parameter(value.id, launch)
    made = allocation(value.id, launch)
    return _of_new_tensor(*made, launch) if made else frozenset()


def _of_parameter(name: str, launch: LaunchSite) -> frozenset[str]:
    if narrowed := _narrowed_dtypes(name, launch):
        return narrowed
    if not is_kept(name, _KEEPS, launch):
        return frozenset()
    declaration = declaration_for(launch)
    spec = declaration.inputs.get(name) if declaration else None
    return frozenset(spec.dtypes) if isinstance(spec, TensorSpec) else frozenset({_ANY})


def _narrowed_dtypes(name: str, launch: LaunchSite) -> frozenset[str]:
    """The one dtype that the launching function asserts a parameter to have, or converts it to."""
    body = launch.function.body if launch.function else []
    for node in body:
        match node:
            case ast.Assert(test=test):
                dtypes = _compared_dtypes(test, name, launch, ast.Eq)
            case ast.If(test=test, body=[ast.Raise()]):
                dtypes = _compared_dtypes(test, name, launch, ast.NotEq)
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                dtypes = [_cast_to(owner_of(value, _KEEPS), launch)]
            case _:
                continue
        if known := [dtype for dtype in dtypes if dtype]:
            return frozenset(known[:1])
    return frozenset()


def _compared_dtypes(test: ast.expr, name: str, launch: LaunchSite, by: type[ast.cmpop]) -> list[str | None]:
    """float32 of `x.dtype == torch.float32`, or of another comparison; of all parts of a test."""
    return [
        _dtype_named(dtype, launch)
        for part in (test.values if isinstance(test, ast.BoolOp) else [test])
        if isinstance(part, ast.Compare) and ast.unparse(part.left) == f"{name}.dtype"
        for op, dtype in zip(part.ops[:1], part.comparators, strict=False)
        if isinstance(op, by)
    ]


def _cast_to(value: ast.expr, launch: LaunchSite) -> str | None:
    """`float32` for `x.float()` and `x.to(torch.float32)`."""
    match value:
        case ast.Call(func=ast.Attribute(attr=method), args=[]) if method in _CASTS:
            return _CASTS[method]
        case ast.Call(func=ast.Attribute(attr="to"), args=[dtype]):
            return _dtype_named(dtype, launch)
    return None


def _dtype_named(dtype: ast.expr, launch: LaunchSite) -> str | None:
    path = launch.flow.scope.path(dtype) or ""
    return path.removeprefix("torch.") if path.startswith("torch.") else None


def _of_new_tensor(path: str, call: ast.Call, launch: LaunchSite) -> frozenset[str]:
    named = next((keyword.value for keyword in call.keywords if keyword.arg == "dtype"), None)
    match named:
        case ast.Attribute(value=owner, attr="dtype") if path in _LIKE | _MADE:
            return _of_tensor(owner, launch)
        case ast.Attribute() if path in _LIKE | _MADE:
            return frozenset({(launch.flow.scope.path(named) or "").removeprefix("torch.")} - {""})
        case None if path in _LIKE and call.args:
            return _of_tensor(call.args[0], launch)
    return frozenset()

"""triton.autotune, triton.Config and the options of a launch, as a file spells them out."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.source import SourceFile, SourceKernel


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPTIONS = _names(
    """
    num_warps num_stages num_ctas maxnreg warp_size debug arch ptx_version ptx_options ir_override
    enable_fp_fusion enable_reflect_ftz launch_cooperative_grid launch_pdl supported_fp8_dtypes
    deprecated_fp8_dot_operand_dtypes default_dot_input_precision allowed_dot_input_precisions
    max_num_imprecise_acc_default extern_libs backend_name sanitize_overflow instrumentation_mode sched4reg
    clc fpsan_homomorphic_casts min_shared_mem waves_per_eu matrix_instr_nonkdim kpack allow_flush_denorm
    schedule_hint llvm_fn_attrs wgp_cu_mode grid warmup
    """
)
"""What a launch may pass besides the kernel's parameters: the options of the NVIDIA and AMD backends."""
FOREIGN_OPTIONS = _names(
    """
    grf_mode generate_native_code advanced_path one_matrix_per_load_for_bt threads_per_warp cluster_dims
    num_buffers_warp_spec num_consumer_groups reg_dec_producer reg_inc_consumer enable_warp_specialization
    enable_persistent multibuffer pipeline ctas_per_cga allow_fp8e4nv minRegAutoWS maxRegAutoWS
    pingpongAutoWS early_tma_store_merging
    """
)
"""Options of other backends and of forks; a file does not show what accepts them."""

_CONFIG = frozenset({"triton.Config", "triton.runtime.Config", "triton.runtime.autotuner.Config"})
_POSITIONS = ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg")
_ORDER = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook")
"""The first parameters of triton.autotune."""
_GROWS = frozenset({"append", "extend", "insert"})


@dataclass(frozen=True, eq=False)
class Configuration:
    """One `triton.Config(...)`; that of a comprehension stands for all it makes."""

    call: ast.Call

    @property
    def values(self) -> Mapping[str, ast.expr]:
        """What it gives the kernel's parameters, by name; what is not spelled out is left out."""
        match argument(self.call, 0, "kwargs"):
            case ast.Dict(keys=keys, values=values):
                return {
                    key.value: value
                    for key, value in zip(keys, values, strict=True)
                    if isinstance(key, ast.Constant) and isinstance(key.value, str)
                }
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                return {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
        return {}

    @property
    def num_warps(self) -> ast.expr | None:
        """How many warps it asks for; None where that is left to Triton."""
        return argument(self.call, _POSITIONS.index("num_warps"), "num_warps")


def configurations(kernel: SourceKernel) -> tuple[Configuration, ...]:
    """All that autotuning chooses from; empty where they are not spelled out in the file."""
    configs = setting(kernel, "configs")
    calls = _calls(configs, kernel.file) if configs else None
    return tuple(Configuration(call) for call in calls or ())


def has_hook(nodes: Iterable[ast.AST]) -> bool:
    """Whether any of the nodes gives a pre_hook, which may fill or restore what it likes before each run."""
    return any(isinstance(node, ast.keyword) and node.arg == "pre_hook" for node in nodes)


def all_configurations(file: SourceFile) -> Iterator[Configuration]:
    """Every triton.Config of a file, wherever it stands."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.scope.path(node.func) in _CONFIG:
            yield Configuration(node)


def _calls(configs: ast.expr, file: SourceFile) -> list[ast.Call] | None:
    """The calls of triton.Config that make up a list; None where anything else does."""
    match configs:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            calls = [
                element for element in elements if isinstance(element, ast.Call) and _is_config(element, file)
            ]
            return calls if len(calls) == len(elements) else None
        case ast.ListComp(elt=ast.Call() as call) if _is_config(call, file):
            return [call]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _calls(left, file), _calls(right, file)
            return None if first is None or second is None else first + second
        case ast.Call(func=ast.Name(id=name)) if binding := file.scope.find(name):
            match binding.node:
                case (
                    ast.FunctionDef(
                        body=[*_, ast.Return(value=ast.List() | ast.ListComp() as made)]
                    ) as made_by
                ):
                    returns = [node for node in ast.walk(made_by) if isinstance(node, ast.Return)]
                    return _calls(made, file) if len(returns) == 1 else None
    return None


def _is_config(call: ast.Call, file: SourceFile) -> bool:
    return file.scope.path(call.func) in _CONFIG


def setting(kernel: SourceKernel, name: str) -> ast.expr | None:
    """The argument of that name of a kernel's triton.autotune; None where there is none.

    A name that the file assigns just once stands for its value.
    """
    autotune = kernel.decorators.get("triton.autotune")
    if not isinstance(autotune, ast.Call):
        return None
    given = argument(autotune, _ORDER.index(name), name)
    return (_assigned_value(given, kernel) or given) if isinstance(given, ast.Name) else given


def names(given: ast.expr | None) -> Mapping[str, ast.Constant] | None:
    """The literal names of a list, with where they stand; None where it is anything else."""
    match given:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            literals = [element for element in elements if isinstance(element, ast.Constant)]
            places = {literal.value: literal for literal in literals if isinstance(literal.value, str)}
            return places if len(literals) == len(elements) else None
    return None


def configuration_count(kernel: SourceKernel) -> int | None:
    """How many configurations the autotuner has; None where literals alone do not decide."""
    return _count(setting(kernel, "configs"), kernel)


def _count(configs: ast.expr | None, kernel: SourceKernel) -> int | None:
    match configs:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return None if any(isinstance(element, ast.Starred) for element in elements) else len(elements)
        case ast.ListComp(generators=generators) if not any(generator.ifs for generator in generators):
            product = 1
            for one in generators:
                choices = _count(one.iter, kernel)
                if choices is None:
                    return None
                product *= choices
            return product
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _count(left, kernel), _count(right, kernel)
            return None if first is None or second is None else first + second
        case ast.Name():
            return _count(_assigned_value(configs, kernel), kernel)
    return None


def _assigned_value(name: ast.Name, kernel: SourceKernel) -> ast.expr | None:
    """What the file assigns to a name, once; None where it is more than that or grows afterwards."""
    binding = (kernel.scope.parent or kernel.file.scope).find(name.id)
    if binding is None or _grows(name.id, kernel):
        return None
    return binding.value


def _grows(name: str, kernel: SourceKernel) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _GROWS
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in kernel.file.nodes
    )


def sizes_of_loops(kernel: SourceKernel) -> tuple[str, ...]:
    """The runtime parameters that a loop's end is computed from alone, in the order of the parameters.

    What `do_not_specialize` names is left out: such sizes are known to change all the time.
    """
    jit = ast.dump(kernel.decorators.get("triton.jit") or ast.Constant(None))
    sizes: set[str] = set()
    for node in kernel.nodes:
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            sizes |= _parameters_of_end(node.iter, kernel)
    return tuple(name for name in kernel.parameters if name in sizes and repr(name) not in jit)


def _parameters_of_end(loop: ast.Call, kernel: SourceKernel) -> frozenset[str]:
    """The parameters of `range(n)` and of `range(0, tl.cdiv(n, BLOCK))`."""
    last = loop.args[1] if len(loop.args) > 1 else argument(loop, 0, "arg1")
    if last is None:
        return frozenset()
    if not kernel.made_by(last) <= {"cdiv", "range"}:
        return frozenset()
    return kernel.parameters_in(last) & kernel.runtime_parameters

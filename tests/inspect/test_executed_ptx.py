"""Running what decides the way through PTX."""

import pytest

from pytorch_to_triton.inspect.executed_ptx import parameters_of, ran
from pytorch_to_triton.inspect.scalar_ptx import Registers, statement

from .compiled import argument, compiled

PTX = """\
.visible .entry k(
	.param .u64 .ptr .global .align 1 k_param_0,
	.param .u32 k_param_1,
	.param .u64 .ptr .global .align 1 k_param_2
)
{
	.reg .pred %p<4>;
	ld.param.b32 	%r1, [k_param_1];
	mov.u32 	%r2, %ctaid.x;
	setp.lt.s32 	%p1, %r1, 1;
	@%p1 bra 	$L__BB0_4;
	mov.b32 	%r3, 0;
	bra.uni 	$L__BB0_2;
$L__BB0_1:
	.loc	1 7 3 // k.py:7:3
	add.s32 	%r3, %r3, 4;
	setp.lt.s32 	%p2, %r3, %r1;
	@%p2 bra 	$L__BB0_2;
	bra.uni 	$L__BB0_4;
$L__BB0_2:
	ld.global.b32 	%r4, [%rd1];
	{
waitLoop:
	@!complete bra.uni waitLoop;
	}
	setp.ne.s32 	%p3, %r3, 0;
	@%p3 bra 	$L__BB0_1;
	ex2.approx.f32 	%f1, %f2;
	bra.uni 	$L__BB0_1;
$L__BB0_4:
	ret;
}
"""


def test_a_loop_turns_as_its_parameter_says_and_some_code_only_once() -> None:
    passed = (argument("x_ptr", "*fp32"), argument("n", "i32", 40), argument("B", "constexpr", 4))
    outside, loop = ran(PTX, compiled(arguments=passed, grid=(3,))) or ()
    assert (outside.depth, outside.turns) == (0, 1)
    assert (loop.line, loop.depth, loop.marks, loop.turns) == (7, 1, (1, 0, 0), 10)
    assert loop.share_of["memory"] == 1
    assert loop.share_of["special_functions"] == 0.1


def test_a_loop_whose_bound_is_loaded_is_not_known() -> None:
    loaded = PTX.replace("ld.param.b32 	%r1, [k_param_1]", "ld.global.b32 	%r1, [%rd1]")
    assert ran(loaded, compiled(arguments=(argument("x_ptr", "*fp32"), argument("n", "i32", 40)))) is None


def test_a_tensor_descriptor_is_several_parameters() -> None:
    names = "\n".join(f"\t.param .u64 k_param_{n}," for n in range(7))
    described = argument("d", "tensordesc<bf16[1, 64]>")
    assert parameters_of(names, (described, argument("n", "i32", 9)))["k_param_5"] == 9
    assert parameters_of(names, (argument("n", "i32", 9),)) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sub.s32 %r9, %r1, 7", -2),
        ("sub.u32 %r9, %r1, 7", 2**32 - 2),
        ("shr.s32 %r9, -16, 2", -4),
        ("shr.u32 %r9, -16, 28", 15),
        ("shl.b32 %r9, %r1, 31", 2**31),
        ("div.s32 %r9, -7, 2", -3),
        ("rem.s32 %r9, -7, 2", -1),
        ("mul.wide.s32 %r9, -1, %r1", -5),
        ("mul.lo.s32 %r9, 65536, 65536", 0),
        ("mul.hi.s32 %r9, 65536, 65536", None),
        ("mad.lo.s32 %r9, %r1, 2, 3", 13),
        ("cvt.s64.s32 %r9, -1", -1),
        ("cvt.u64.u32 %r9, -1", 2**32 - 1),
        ("cvt.rn.f32.s32 %r9, 1", None),
        ("min.s32 %r9, -1, %r1", -1),
        ("min.u32 %r9, -1, %r1", 5),
        ("selp.b32 %r9, 3, 4, %p1", 3),
        ("setp.gt.u32 %r9, -1, %r1", 1),
        ("setp.gt.s32 %r9, -1, %r1", 0),
        ("and.pred %r9, %p1, %p2", None),
        ("add.f32 %r9, 1, 2", None),
        ("add.s32 %r9, %unknown, 2", None),
        ("@%p1 mov.b32 %r9, 6", 6),
        ("@!%p1 mov.b32 %r9, 6", 8),
        ("@%p2 mov.b32 %r9, 6", None),
    ],
)
def test_integers_are_computed_as_the_hardware_does(text: str, value: int | None) -> None:
    done = statement(text + ";")
    assert done is not None
    registers = Registers({"%r1": 5, "%r9": 8, "%p1": 1})
    registers.run(done)
    assert registers.values["%r9"] == value

"""Reading SASS: lines as Triton prints them, cut to what is read."""

from pytorch_to_triton.inspect.sass import kind_of, read_sass

LOOPS = """\
Function:k
--:-:-:-:2\tLDC R1, c[0x0][0x28];
--:-:-:-:2\t@!P0 EXIT;
LBB1:
--:-:2:-:1\tLDG.E.128 R4, desc[UR4][R2.64];
--:-:-:-:1\tHMMA.16816.F32.BF16 R4, R8, R10, R4;
LBB0:
--:-:-:-:1\tMUFU.EX2 R5, R4;
--:-:-:-:1\tSHFL.BFLY PT, R3, R4, 0x1, 0x1f;
--:-:-:-:5\t@P1 BRA LBB0;
--:-:-:-:5\t@P0 BRA LBB1;
--:-:-:-:1\tSTG.E.U16 desc[UR4][R2.64], R4;
LBB3:
--:-:-:-:1\tSYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0;
--:-:-:-:5\t@!P0 BRA LBB3;
--:-:-:-:5\tEXIT;
LBB2:
--:-:-:-:5\tBRA LBB2;
--:-:-:-:5\tNOP;
"""


def test_instructions_are_counted_outside_of_loops_and_in_each() -> None:
    outside, outer, inner = read_sass(LOOPS)
    assert outside.counts == {"branches": 2, "other": 1, "memory": 1}
    assert outer.counts == {"memory": 1, "tensor_cores": 1, "branches": 1}
    assert inner.counts == {"special_functions": 1, "shared_memory": 1, "branches": 1}
    assert (outer.depth, outer.marks) == (1, (1, 1, 1))
    assert (inner.depth, inner.marks) == (2, (0, 0, 1))
    assert (outside.bits, outer.bits) == (16, 128)
    assert outer.flops == {"bfloat16": 2 * 16 * 8 * 16}


def test_names_have_the_kinds_that_nvidia_gives_them() -> None:
    kinds = {
        "special_functions": "MUFU.RSQ MUFU.TANH",
        "tensor_cores": "HGMMA.64x128x16.F32.BF16 HMMA.16816.F32 DMMA.884 IMMA.16832.S8.S8 UTCHMMA",
        "conversions": "F2FP.BF16.F32.PACK_AB I2F.RP F2I.FTZ FRND",
        "floating_point": "FFMA.FTZ HFMA2.MMA FSETP.GT DADD FMNMX FSEL HADD2.F32",
        "shared_memory": "LDS.128 LDSM.16.M88.4 STS.64 ATOMS.ADD SHFL.BFLY",
        "memory": "LDG.E.128 LDGSTS.E.BYPASS.128 LDL.LU STG.E RED.E.ADD ATOMG.E.ADD UTMALDG.2D",
        "barriers": "BAR.SYNC LDGDEPBAR DEPBAR.LE FENCE.VIEW SYNCS.ARRIVE WARPGROUP.ARRIVE",
        "branches": "BRA BSSY BSYNC CALL.REL.NOINC EXIT RET.REL.NODEC",
        "other": "ULDC.64 LDC S2R S2UR CS2R VOTEU.ANY ELECT R2UR",
        "integers": "LOP3.LUT IMAD.WIDE REDUX.MAX VIMNMX ISETP.GE LEA SHF.R MOV PRMT UIADD3",
    }
    for kind, names in kinds.items():
        assert {name: kind_of(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_a_product_without_a_shape_in_its_text_has_no_count_of_operations() -> None:
    text = LOOPS.replace("HMMA.16816.F32.BF16 R4, R8, R10, R4", "UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8]")
    assert read_sass(text)[1].flops is None


def test_addresses_of_branches_are_rows_too() -> None:
    assert read_sass(LOOPS.replace("BRA LBB1", "BRA.U 0x20")) == read_sass(LOOPS)

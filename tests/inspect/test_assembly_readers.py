"""Reading PTX and AMD's assembly: lines recorded from Triton 3.6 to 3.9, cut to what is read."""

from pytorch_to_triton.inspect.assembly import read_amdgcn, read_ptx
from pytorch_to_triton.schema.compiled import Instructions

PTX = """\
	.loc	1 66 12                         // softmax.py:66:12
	// begin inline asm
	@%p2 ld.global.L1::evict_last.L2::cache_hint.v4.b32 { %r18, %r19, %r20, %r21 }, [ %rd17 + 0 ], %rd16;
	@!%p3 ld.global.v4.b32 { %r23, %r24, %r25, %r26 }, [ %rd19 + 0 ];
	.loc	2 170 27                // standard.py:170:27 @[ standard.py:191:40 @[ softmax.py:69:46 ] ]
	ld.volatile.global.u16 %rs1, [ %rd2 + 0 ];
	ld.acquire.gpu.global.b64 %rd9, [ %rd3 + 0 ];
	.loc	1 83 30                         // softmax.py:83:30
	st.global.v2.b32 [ %rd40 + 0 ], { %r1, %r2 };
	st.shared.v4.b32 [%r46], {%r1, %r2, %r3, %r4};
	ld.shared.b32 %r9, [global_smem];
	ld.param.b64 %rd3, [c_param_0];
	ld.local.b32 %r2, [%rd5];
	bar.sync 	0;
	atom.global.gpu.relaxed.add.f32 %r8, [ %rd16 + 0 ], %r9;
	@%p21 red.global.add.f32 [ %rd92 + 0 ], %r62;
	atom.shared.add.u32 %r1, [%r2], 1;
"""
COPIES = """\
	.loc	1 111 20                        // m.py:111:20
	cp.async.cg.shared.global [ %r15 + 0 ], [ %rd22 + 0 ], 0x10, %r16;
	@%p1 cp.async.ca.shared.global [ %r15 + 0 ], [ %rd22 + 0 ], 0x4, 0x4;
	cp.async.commit_group;
	cp.async.wait_group 0x0;
	@%p4 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r14], [%rd2, {%r5, %r15}], [%r12];
	@%p5 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r14], [%rd2, {%r5}], [%r12];
	@%p6 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r4, %r5}], [%r13];
	cp.async.bulk.commit_group;
"""  # noqa: E501
PRODUCTS = """\
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { %r1, %r2 }, { %r3 }, { %r4 }, { %r5 };
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { %r1, %r2 }, { %r3 }, { %r4 }, { %r5 };
	mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 { %r1 }, { %r3 }, { %r4 }, { %r5 };
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e5m2 {%r1, %r2}, %rd1, %rd2, p, 1, 1;
	wgmma.commit_group.sync.aligned;
	@%p49 tcgen05.mma.cta_group::1.kind::f16 [ %r428 + 0 ], %rd183, %rd184, %r207, %p48;
	tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [ %r1 + 0 ];
"""
AMDGCN = """\
	.loc	1 34 20 is_stmt 1               ; k.py:34:20
	buffer_load_dwordx4 v[16:19], v7, s[4:7], 0 offen
	global_load_dword v11, v[4:5], off offset:4
	global_load_ushort v1, v[2:3], off
	buffer_load_u16 v1, v2, s[0:3], 0 offen
	global_load_b128 v[0:3], v[4:5], off
	buffer_load_dwordx4 v7, s[4:7], 0 offen lds
	s_load_dwordx2 s[0:1], s[2:3], 0x0
	ds_read_b128 v[0:3], v4
	.loc	1 40 8                          ; k.py:40:8
	buffer_store_short v2, v3, s[0:3], 0 offen
	buffer_store_b16 v2, v3, s[0:3], 0 offen
	buffer_atomic_add_f32 v1, v2, s[0:3], 0 offen
	s_barrier
	s_barrier_signal -1
	s_barrier_wait -1
	scratch_load_dword v1, off, off offset:4
	buffer_store_dword v9, off, s[0:3], 0 offset:8 ; 4-byte Folded Spill
"""
AMD_PRODUCTS = """\
	v_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], v[0:3]
	v_mfma_f32_32x32x8f16 v[0:15], v[16:17], v[18:19], v[0:15]
	v_mfma_f32_32x32x8bf16_1k v[0:15], v[16:17], v[18:19], v[0:15]
	v_mfma_f32_16x16x32_fp8_bf8 v[0:3], v[4:5], v[6:7], v[0:3]
	v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]
	v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]
	v_mul_f32_e32 v0, v1, v2
"""


def accesses(found: Instructions) -> set[tuple[str, int, int, tuple[int, ...]]]:
    return {(a.kind, a.bits, a.count, a.lines) for a in found.accesses}


def products(found: Instructions) -> set[tuple[str, str, str, str, int]]:
    return {(m.name, m.shape, m.operands, m.accumulator, m.count) for m in found.matrix}


def test_ptx_shows_the_width_and_the_source_line_of_each_global_access() -> None:
    assert accesses(read_ptx(PTX, "softmax.py")) == {
        ("load", 128, 2, (66,)),
        ("load", 16, 1, (69,)),
        ("load", 64, 1, (69,)),
        ("store", 64, 1, (83,)),
    }


def test_lines_of_other_files_are_not_reported() -> None:
    found = read_ptx(PTX, "another.py")
    assert {access.lines for access in found.accesses} == {()}


def test_assembly_shows_atomics_barriers_and_local_memory() -> None:
    for found, counts in ((read_ptx(PTX, "softmax.py"), (2, 1, 1)), (read_amdgcn(AMDGCN, "k.py"), (1, 2, 2))):
        assert (found.atomics, found.barriers, found.local_accesses) == counts


def test_ptx_shows_asynchronous_copies_with_their_width_and_tma() -> None:
    found = read_ptx(COPIES, "m.py")
    assert accesses(found) == {("async_copy", 32, 1, (111,)), ("async_copy", 128, 1, (111,))}
    assert (found.tma_loads, found.tma_stores) == (2, 1)


def test_ptx_shows_tensor_core_instructions_with_their_types() -> None:
    assert products(read_ptx(PRODUCTS, "m.py")) == {
        ("mma.sync", "16x8x16", "bf16", "f32", 2),
        ("mma.sync", "16x8x32", "s8", "s32", 1),
        ("wgmma", "64x128x32", "e4m3 x e5m2", "f32", 1),
        ("tcgen05.mma", "", "f16", "", 1),
    }


def test_amds_assembly_shows_the_width_and_the_source_line_of_each_global_access() -> None:
    assert accesses(read_amdgcn(AMDGCN, "k.py")) == {
        ("load", 128, 2, (34,)),
        ("load", 32, 1, (34,)),
        ("load", 16, 2, (34,)),
        ("async_copy", 128, 1, (34,)),
        ("store", 16, 2, (40,)),
    }


def test_amds_assembly_shows_matrix_instructions_with_their_types() -> None:
    assert products(read_amdgcn(AMD_PRODUCTS, "k.py")) == {
        ("mfma", "16x16x16", "bf16", "f32", 1),
        ("mfma", "32x32x8", "f16", "f32", 1),
        ("mfma", "32x32x8", "bf16", "f32", 1),
        ("mfma", "16x16x32", "fp8 x bf8", "f32", 1),
        ("mfma", "32x32x2", "f32", "f32", 1),
        ("wmma", "16x16x16", "f16", "f32", 1),
    }

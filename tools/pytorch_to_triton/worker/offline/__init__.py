"""What Triton's compiler makes of a target's kernels for a GPU that is not there.

offline_gpu.py  the absent GPU: what Triton's driver and torch.cuda answer, spills too
dry_run.py      calling the target so that each launch is compiled, none is run, what is refused
"""

"""What Triton's compiler makes of a target's kernels for a GPU that is not there."""

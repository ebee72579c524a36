"""The README's pictures: from a function to a merged kernel, and the speed of the reference kernels."""

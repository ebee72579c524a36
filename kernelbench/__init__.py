"""How much of KernelBench is drafted, right and fast: `make kernelbench KB=folder`."""

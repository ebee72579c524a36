"""Functions and modules of real model code, drafted and timed beside torch.compile: `make realcode`."""

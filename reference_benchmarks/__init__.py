"""The reference kernels timed beside eager PyTorch, torch.compile and other libraries, on a GPU."""

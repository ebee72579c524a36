"""How strong `validate` is: right kernels with one mistake each, and how many of them it refuses."""

"""How much of what others wrote converts: PyTorch's operators, and modules of public projects."""

"""Functions and modules that need the values of tensors: kernels for the statements between, in one file.

`function_text.py` has the function as text whose lines name its statements, and puts what needs values into
statements of its own, `ranges.py` chooses the statements that become kernels, `outline.py` makes functions of
them, `cutting.py` traces them, and `parts_file.py` writes the file.
"""

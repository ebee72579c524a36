"""Functions whose Python needs the values of tensors: kernels for the statements between, in one drafted file.

`function_text.py` has the function as text whose lines name its statements, `values_apart.py` puts what needs
values into statements of its own, `ranges.py` chooses the statements that become kernels, `shapes.py` says what
they take, `cutting.py` traces them, and `parts_file.py` writes the file.
"""

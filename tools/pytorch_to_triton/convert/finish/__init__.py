"""What a conversion leaves in the user's repository: the kernels as a function, its tests, its benchmark.

converted.py     from a converted target to the recipe of its files
recipe.py        all that the files are made from
guards.py        when the kernels apply to a call
interpreted.py    what Triton's own interpreter lacks
drawing.py       how the tests draw the arguments of a call
files.py         the files as text; templates/ has what is the same in all of them
report.py         what one attaches to a pull request
"""

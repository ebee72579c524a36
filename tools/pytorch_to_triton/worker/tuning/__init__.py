"""Finding the fastest configurations of autotuned kernels within a time budget.

candidate.py   one configuration: its facts, its neighbours, whether its blocks suit the problem
resources.py   what a compiled configuration takes of the device, and which are left out for it
search.py      successive halving, then neighbours of the best; knows no device
agreement.py   whether two configurations computed the same
steering.py    every autotuned launch takes the configuration that it is told to
calls.py       calls of the target that all find the same inputs
gpu.py         compiling in parallel, and timing with a cold L2 cache
session.py     all of it, kernel by kernel, with reports on the way
"""

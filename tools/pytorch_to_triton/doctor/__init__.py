"""Whether everything that is needed is here, and works.

doctor.py       all checks: facts are gathered, then judged
facts.py        what is gathered, and how long each may take
outcomes.py     what a check may say
gpu.py          the driver, its device files, GPUs and who uses them
stack.py        Python, torch and Triton, and what they find around them
kernels.py      a small kernel, interpreted, compiled, and run on the GPU
programs.py     tools of NVIDIA, this command, and variables that change what Triton and torch do
disk.py         caches, free space, run folders, locks

Each of the last six reads its facts by functions of its own; its checks are pure functions of them.
"""

"""What a candidate does beside computing, collected in its own process. Facts only: the tools judge.

frames.py      whose code asked: Triton's own machinery, torch, or the candidate's author
operators.py   which torch operators the author's code runs, and which tensors come from a Triton kernel
readings.py    which tensors it hands to numpy, DLPack and Python lists
kernel_source.py  what a kernel's source calls, and whether it orders programs by atomics
uncompilable.py   what it uses that the interpreter runs and no compiler accepts
launches.py    which Triton kernels were launched, and with which tensors
conduct.py     what the author's code does outside its business, recorded and refused
events.py      what an audit event of Python says about that
folders.py     folders that the author's code must not read, or must not write to
guards.py      the same for functions that raise no audit event
patches.py     which functions of torch, triton, Python and this worker were replaced
hooks.py       what it has set so that its code runs later
flags.py       which settings of the process were changed
leftovers.py   which threads and processes are left running
tensors.py     whether what a candidate returns is a plain tensor, and whose memory it shares
"""

"""What a candidate does beside computing, recorded in its own process; the tools judge the records.

references/threat_model.md says what is looked for here, and what is not.

frames.py             whose code made a call: Triton, torch, the library, this worker, or the author
operators.py          torch operators that the author's code runs, and which tensors come from a Triton kernel
kernel_source.py      what a kernel's source calls, and whether it orders programs by atomics
uncompilable.py       what it uses that the interpreter runs and no compiler accepts
launches.py           which Triton kernels were launched, and with which tensors
sandbox.py            what the author's code must not do, recorded and refused
audit_events.py       which Python audit events are violations
guarded_functions.py  the same for functions that raise no audit event
folders.py            folders that the author's code must not read, or must not write to
patches.py            which functions of torch, triton, Python and this worker were replaced
settings.py           which settings of the process were changed, hooks included, and which threads still run
returned_tensors.py   whether what a candidate returns is a plain tensor, and whose memory it shares
"""

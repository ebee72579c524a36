"""What a candidate does beside computing, recorded in its own process; the tools judge the records.

references/threat_model.md says what is looked for here, and what is not.

frames.py             whose code made a call: Triton, torch, the library, this worker, or the author
operators.py          torch operators that the author's code runs, and which tensors come from a Triton kernel
kernel_source.py      what a kernel's source calls, and whether it orders programs by atomics
uncompilable.py       what it uses that the interpreter runs and no compiler accepts
launches.py           which Triton kernels were launched, and with which tensors
sandbox.py            what the author's code must not do, recorded and refused
settings.py           what it leaves in the process: changed settings, replaced functions, running threads
returned_tensors.py   whether what a candidate returns is a plain tensor, and whose memory it shares
"""

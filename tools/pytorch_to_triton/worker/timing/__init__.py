"""The parts of job `timing`: several callables, each in a process of its own, timed in turn on one device.

crew.py     the processes: forked from one that never touches the device, told what to do line by line
member.py   one callable's process: warm-up, timed calls, graph, profile
clerk.py    the process that draws the inputs and afterwards checks what timed calls returned
pool.py     the inputs of timed calls: other addresses and other values each time
device.py   a cold L2 cache, device events, memory
calls.py    forward, backward or both as one call
turns.py    who is timed when, and for how long

The coordinator (../timing.py) loads no user code: its clock is the one that a callable's own is checked
against.
"""

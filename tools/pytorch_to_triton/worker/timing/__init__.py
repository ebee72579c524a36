"""The parts of job `timing`: several callables, each in a process of its own, timed in rounds on one device.

workers.py        the processes: forked from one that never touches the device, commanded line by line
timed_process.py  one callable's process: warm-up, timed calls, graph, profile; and one that calls nothing
coordinator.py    the process that generates the inputs and afterwards checks what timed calls returned
input_pool.py     the inputs of timed calls: other addresses and other values each time
rounds.py         which process is timed when, and for how long

The job's own process (../jobs/timing.py) loads no user code: a callable's clock is checked against its clock.
"""

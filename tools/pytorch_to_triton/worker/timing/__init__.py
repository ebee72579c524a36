"""The parts of job `timing`: several callables, each in a process of its own, timed in rounds on one device.

The job's own process (../jobs/timing.py) loads no user code: a callable's clock is checked against its clock.
"""

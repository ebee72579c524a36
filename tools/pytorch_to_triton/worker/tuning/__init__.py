"""Finding the fastest configurations of autotuned kernels within a time budget.

tuning_config.py    one configuration: as JSON, its neighbours, whether it suits the problem and the device
config_search.py    successive halving, then neighbours of the best; knows no device
config_selector.py  every autotuned launch takes the configuration selected for it, or its own choice is read
fresh_calls.py      calls of the target that all find the same inputs, and whether two computed the same
timing_device.py    compiling in parallel, and timing with a cold L2 cache
session.py          all of it, kernel by kernel, with reports on the way
"""

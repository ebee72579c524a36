"""A conversion in steps, one gate at a time, in a folder that survives whatever ends the process.

start.py          traces the target, says what it understood, and puts a stage-1 file there
submit.py         runs the gate of the current stage on a file, and puts the next stage's file there
evidence.py       what validate, audit and timings find out about it
gate.py           the conditions of each stage, out of that evidence
finish.py         writes what the best file becomes, and runs its tests
store.py          the folder, which stage is next, and which attempt is the best
answers.py        what a caller is told
"""

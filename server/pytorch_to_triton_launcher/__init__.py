"""Starts this checkout's program before it has an environment: standard library only, Python 3.9 or newer."""

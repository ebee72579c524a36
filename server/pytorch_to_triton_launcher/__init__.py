"""Starts this checkout's program: the standard library only, and any Python from 3.9 on.

It runs before there is an environment, so it imports nothing of the rest, and nothing of the rest imports it.
"""

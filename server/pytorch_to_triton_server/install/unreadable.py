"""A configuration that is better left as it is."""


class Unreadable(Exception):
    """The text cannot be read, or not be changed without touching more than one entry; says why."""

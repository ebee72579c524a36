"""Entering this server into the configurations of assistants and editors."""

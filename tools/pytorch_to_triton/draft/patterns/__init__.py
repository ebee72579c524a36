"""What a kernel can be: one file a pattern, the first that matches a cluster drafts it.

What a file here has: `Pattern` in schedule/pattern.py.
"""

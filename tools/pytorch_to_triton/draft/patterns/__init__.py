"""What a kernel can be: one file a pattern, the first that matches a cluster drafts it.

A pattern has `match(cluster) -> Mismatch | None`, `alternatives(cluster) -> tuple[Alternative, ...]` from the
plain one, which is stage 1, to the best, and `EXAMPLES`: functions as text that it must draft.
"""

"""What a candidate does beside computing, recorded in its own process; the tools judge the records.

references/threat_model.md says what is looked for here, what is not, and by which of these files.
"""

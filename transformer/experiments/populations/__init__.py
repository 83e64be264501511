"""Populations: one setting trained many times, from many seeds and with settings that vary, and counted together.

`plan.py` and `table.py` are plain values; `together.py` trains models of one shape as one batch.
"""

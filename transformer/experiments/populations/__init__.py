"""Populations: one setting trained many times, from many seeds and with settings that vary, and counted together.

What is planned, what came out, and what can be said of it are plain values; `together.py` trains models of one shape as
one batch, `carry_out.py` a whole population on this machine, `cluster.py` on many.
"""

"""Check a student's code: is it right, which mistake is it, and at which stage does it first differ from the reference?

`check.py` has the two functions, `check` and `check_many`. The code runs in a process of its own (`isolation/`), on a
`Bench`; each kind of code (`kinds/`) is asked for answers there and judged here. `stages.py` finds the first stage of
attention that differs. What is only another convention is named and not failed (`conventions.py`).
"""

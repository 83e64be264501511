"""How each kind of code is asked and judged. Each module has one function, `judge(bench, described) -> Findings`."""

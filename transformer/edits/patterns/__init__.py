"""Edits of where heads look, all made on the scores, before the mask and the softmax.

So what the mask forbids stays forbidden and every row still sums to one, by the very formula that the model uses.
Where a query may see none of the keys that it is told to look at, it looks at nothing: its row is zeros.
"""

"""Look into any PyTorch model as into ours: run it once and keep what its attention did, without changing it.

`capture.py` has `capture`; `changes.py` has `capture_changed`, which removes heads or puts another mask for that one
pass. What is seen comes in by three doors: our own models' trace, Hugging Face's attention interface
(`hugging_face.py`), and PyTorch's functions as they are called (`functions.py`). A softmax by hand is followed until it
weighs values (`following.py`, `products.py`), its heads are read off what is joined (`layouts.py`), and what its rows
sum to is said (`proof.py`). `heads.py` names what was seen as our models name it; `metrics.py` and `outputs.py` measure
it.
"""

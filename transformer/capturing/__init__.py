"""Look into any PyTorch model as into ours: run it once and keep what its attention did, without changing it.

`capture.py` has the one function, `capture`. What is seen comes in by three doors: our own models' trace, Hugging
Face's attention interface (`hugging_face.py`), and PyTorch's functions as they are called (`functions.py`).
"""

"""A model of others with what it reads: a text, two texts, token numbers or a picture, made ready for `capture`.

`model.py` has the one record, `Foreign`. `reading.py` says what texts become, `pictures.py` what a picture becomes.
"""

from transformer.capturing.foreign.model import Foreign, foreign
from transformer.capturing.foreign.reading import Given
from transformer.capturing.foreign.tokenizers import ForeignError

__all__ = ["Foreign", "ForeignError", "Given", "foreign"]

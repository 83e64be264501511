"""Before the transformer: sequence to sequence with a GRU, without and with attention."""

from transformer.recurrent.scoring import SCORINGS, Alignment
from transformer.recurrent.sequence import EncoderDecoder, Memory, Recurrent

__all__ = ["SCORINGS", "Alignment", "EncoderDecoder", "Memory", "Recurrent"]

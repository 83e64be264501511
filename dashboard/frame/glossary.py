"""The field's terms, each explained once: a page explains those that stand in its sentences, where they stand first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.components.glossary import explained


@dataclass(frozen=True)
class Term:
    """A term, what it means, and how it is written in a sentence."""

    name: str
    meaning: str
    """As a dictionary has it: no subject, no full stop."""
    form: str = ""
    """A regular expression that Python and a browser read alike; empty is the name, and the name with an s."""

    @property
    def pattern(self) -> str:
        """What finds it in a sentence, as a whole word."""
        return rf"(?<![\w-])(?:{self.form or f'{self.name}s?'})(?![\w-])"


TERMS = (
    Term(
        "ablation",
        "removing a part of a model, such as a head, to see what the rest does without it",
        r"ablat(?:e|ed|ion)",
    ),
    Term(
        "activation patching",
        "running a model on one input with one vector taken from its run on another, to see what that vector carries",
    ),
    Term("ALiBi", "a positional encoding that lowers each score in proportion to the distance of query and key"),
    Term(
        "attention pattern",
        "the weights after the softmax: a row for each query, a column for each key, and each row adds up to 1",
    ),
    Term(
        "causal mask",
        "a mask under which a position sees itself and what stands before it, and nothing after it",
        "causal mask|mask causal",
    ),
    Term(
        "ceiling",
        "how often an output can be right at the most, in sequences of one length: computed from what can reach what "
        "under a mask",
    ),
    Term("chance", "the accuracy of guessing", "chance"),
    Term("context vector", "the weighted sum of the values: what attention hands on for one query"),
    Term("cross-attention", "attention whose queries come from the decoder, its keys and values from the encoder"),
    Term("cross-entropy", "minus the natural logarithm of the probability that the right token is given"),
    Term("embedding", "the vector that stands for a token where a model begins"),
    Term(
        "entropy",
        "how spread out a row of weights is: 0 if all weight is on one key, most if every key has the same",
    ),
    Term(
        "feed-forward layer",
        "the two dense layers of a block, which change the vector of each position by itself",
        "feed-forward(?: layers?)?",
    ),
    Term("GRU", "a recurrent network: it reads a token at a time and keeps what it has read in one vector"),
    Term("head", "one of the attentions that a layer computes side by side, each with its own queries, keys, values"),
    Term("held out", "part of a text that was never learned from", "held[- ]out"),
    Term(
        "induction head",
        "a head that finds an earlier place where the same token stood, and looks at the token that followed it",
    ),
    Term("key", "the vector of a position with which each query is compared"),
    Term("LayerNorm", "brings a vector to mean 0 and variance 1, then scales and shifts each number as was learned"),
    Term("logit", "a model’s number for one token, before the softmax makes probabilities of all of them"),
    Term("logit difference", "the logit of one token minus the logit of another: above 0 the first is likelier"),
    Term("logit lens", "reading the residual stream in the middle of a model as if it were at its end: as logits"),
    Term("loss floor", "the least loss that is possible under a mask"),
    Term("nats", "the loss of one token: minus the natural logarithm of the probability it was given", "nats?"),
    Term(
        "perplexity",
        "e to the mean of the nats: among how many equally likely tokens one would have to choose to be as unsure",
    ),
    Term(
        "positional encoding",
        "what tells a model where a token stands, because attention alone does not know the order",
    ),
    Term("previous-token head", "a head that looks at the token just before the query"),
    Term("query", "the vector of a position that looks: its product with a key is their score", "query|queries"),
    Term("residual stream", "the vector each position carries from block to block, and to which each block adds"),
    Term("RMSNorm", "divides a vector by the root of its mean square, then scales each number as was learned"),
    Term("rollout", "attention followed through all layers: how much of each token reaches each position"),
    Term("rotary", "a positional encoding that turns queries and keys by angles that grow with the position", "rotary"),
    Term("score", "how well a query fits a key, before the softmax: query · key, in a transformer divided by √d"),
    Term("sinusoidal", "a positional encoding of sines and cosines of several wavelengths", "sinusoidal"),
    Term("softmax", "makes weights that add up to 1 of any numbers: the larger a number, the larger its weight"),
    Term("teacher forcing", "giving a model the right tokens so far to read, in place of its own"),
    Term(
        "value",
        "the vector of a position of which each query takes a share",
        "(?<!largest )(?<!greatest )values?(?! from)",
    ),
)


def draw() -> None:
    """The words of the page that is shown: marked where each stands first, and listed behind a button."""
    explained([(term.name, term.pattern, term.meaning) for term in longest_first()], key="glossary")


def longest_first() -> Sequence[Term]:
    """In the order in which a page looks for them: an induction head is not to be found as a head."""
    return sorted(TERMS, key=lambda term: -len(term.name))

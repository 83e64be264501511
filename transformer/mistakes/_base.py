"""What a mistake is: wrong code beside right code, a model that has it, and words for what hides and exposes it."""

from __future__ import annotations

import copy
import difflib
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import nn

from transformer.analysis.assumptions import told_by
from transformer.attention import MultiHeadAttention
from transformer.blocks import Block
from transformer.config import ModelConfig, RunConfig, TrainingConfig
from transformer.mistakes._demonstration import Demonstration
from transformer.model import Transformer
from transformer.positions import NO_POSITIONS, PositionalEncoding
from transformer.tasks import Task
from transformer.trace import UNTRACED

STAGES = ("projected", "split", "scores", "scaled", "masked", "softmax", "values", "merged", "out")
"""The stages of multi-head attention, in the order of the computation."""
STEPS, RATE = 200, 3e-3
"""Steps of the training that shows a mistake, and AdamW's rate."""


class Mistake:
    """One mistake. It is a class and not an object: it has no state.

    `right` and `wrong` take and give the same. What that is, the base class of each kind says: those that have a model
    are of it. A mistake that has none may be of `Mistake` alone, and says itself what its functions take.
    """

    name: ClassVar[str]
    """The name of its file, with hyphens."""
    kind: ClassVar[str]
    """The folder of its file: attention, mask, positions, module, decoder or training."""
    title: ClassVar[str]
    """What the code does wrong, in a few words."""
    hidden: ClassVar[str]
    """Why it is not noticed: what looks right all the same. A sentence."""
    exposes: ClassVar[str]
    """What gives it away. A sentence."""
    silent: ClassVar[bool] = False
    """Does it leave no trace in what its model does? Then only a comparison with the right code shows it."""
    mend: ClassVar[str]
    """How the code is corrected. A sentence."""
    met: ClassVar[str]
    """In what kind of source it was met."""
    stage: ClassVar[str | None] = None
    """The first of `STAGES` at which wrong and right differ; None where it does not lie in attention."""
    trains: ClassVar[bool] = True
    """Is there a model that has it? Else `demonstrate` shows what it does."""
    encoding: ClassVar[str] = "learned"
    """The positions of the model that is trained with it."""

    function: ClassVar[str]
    """What `right` and `wrong` are called where their code is shown."""
    right: ClassVar[Callable[..., Any]]
    wrong: ClassVar[Callable[..., Any]]

    def __init_subclass__(cls) -> None:
        _, cls.kind, module = cls.__module__.rsplit(".", 2)
        cls.name = module.replace("_", "-")

    @classmethod
    def config(cls, seed: int) -> RunConfig:
        """The training that shows it: a small decoder learns to reverse; all targets count alike; a fixed end."""
        training = TrainingConfig(
            seed=seed,
            device="cpu",
            max_steps=STEPS,
            learning_rate=RATE,
            prompt_weight=1.0,
            evaluate_every=STEPS,
            solved_at=2.0,
        )
        return RunConfig(model=ModelConfig(positions=cls.encoding), training=training)

    @classmethod
    def mistaken(cls, model: Transformer) -> Transformer:
        """A copy of a decoder with the same weights that has the mistake. Learned or sinusoidal positions only."""
        return copy.deepcopy(model)

    @classmethod
    def taught(cls, task: Task) -> Task:
        """The task as a training with the mistake sees it."""
        return task

    @classmethod
    def demonstrate(cls) -> Demonstration | None:
        """What it does, measured without a model; None where a model shows it better."""
        return None

    @classmethod
    def code(cls) -> tuple[str, str]:
        """The source of the wrong function and of the right one."""
        return _source(cls.wrong, cls.function), _source(cls.right, cls.function)

    @classmethod
    def difference(cls) -> tuple[str, ...]:
        """From wrong to right, line by line: each begins with "- " (only wrong), "+ " (only right) or two blanks."""
        wrong, right = cls.code()
        lines = difflib.ndiff(wrong.splitlines(), right.splitlines())
        return tuple(line for line in lines if not line.startswith("?"))


def _source(function: Callable[..., Any], name: str) -> str:
    """A static method as one would write it outside of its class, under this name."""
    code = textwrap.dedent(inspect.getsource(function)).removeprefix("@staticmethod\n")
    return code.replace(f"def {function.__name__}(", f"def {name}(", 1)


# --- the kinds


class AttentionMistake(Mistake):
    """A mistake in the formula: `right(query, key, value, mask, trace)` gives (output, pattern).

    query, key, value [batch, head, position, d_head]; mask Bool, broadcast to [batch, head, query, key], True where a
    query may see a key; output as the values, a row a query; pattern [batch, head, query, key].
    """

    function: ClassVar[str] = "attention"

    @classmethod
    def mistaken(cls, model: Transformer) -> Transformer:
        return with_attention(model, lambda own: _OtherFormula(own, cls.wrong))


class MaskMistake(Mistake):
    """A mistake in the causal mask: `right(n)` gives Bool [query, key], True where a query may see a key.

    The model that has it hides with -1e9 in place of minus infinity, as most code does. A query that may see nothing
    then looks everywhere. (Our own `masked_softmax` gives such a query a row of zeros.)
    """

    function: ClassVar[str] = "causal_mask"

    @classmethod
    def mistaken(cls, model: Transformer) -> Transformer:
        other = with_attention(model, lambda own: _OtherFormula(own, usual_attention))
        other.visible = cls.wrong(model.n_ctx)
        return other


class PositionsMistake(Mistake):
    """A mistake in the sinusoidal encoding: `right(x)` gives what is added to x [batch, position, d_model].

    The result is broadcast to x; that of `right` is [position, d_model].
    """

    function: ClassVar[str] = "encoding"
    encoding: ClassVar[str] = "sinusoidal"

    @classmethod
    def mistaken(cls, model: Transformer) -> Transformer:
        other = copy.deepcopy(model)
        other.positions = _OtherEncoding(model.positions, cls.wrong)
        return other


class ModuleMistake(Mistake):
    """A mistake in the module: `right(attention, x, mask, trace)` gives the output, of the shape of x.

    `attention` is a `MultiHeadAttention`: it lends its layers query, key, value and out, n_heads and d_head. x is
    [batch, position, d_model]; mask is as in `AttentionMistake`.
    """

    function: ClassVar[str] = "multi_head_attention"

    @classmethod
    def mistaken(cls, model: Transformer) -> Transformer:
        return with_attention(model, lambda own: _OtherModule(own, cls.wrong))


class DecoderMistake(Mistake):
    """A mistake around attention: what `right` takes, each says itself."""


class TrainingMistake(Mistake):
    """A mistake in what is learned from: what `right` takes, each says itself."""


# --- the pieces


def usual_attention(query, key, value, mask, trace=UNTRACED):
    """Attention as most code has it: what is hidden gets the score -1e9."""
    scores = trace("scores", query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5)
    pattern = trace("pattern", scores.masked_fill(~mask, -1e9).softmax(dim=-1))
    return trace("z", pattern @ value), pattern


def with_attention(model: Transformer, piece: Callable[[MultiHeadAttention], MultiHeadAttention]) -> Transformer:
    """A copy of a decoder in which every attention module is replaced by what `piece` makes of it."""
    if told_by(model.positions) in ("bias", "rotation"):
        raise ValueError(f"a mistake is shown with positions that are added to the input, not {model.config.positions}")
    other = copy.deepcopy(model)
    for block in other.decoder:
        assert isinstance(block, Block)
        block.self_attention = piece(block.self_attention)
    return other


class _Other(MultiHeadAttention):
    """A module with the weights of another one, and `compute` in place of a part of what that one does."""

    def __init__(self, own: MultiHeadAttention, compute: Callable[..., Any]) -> None:
        nn.Module.__init__(self)  # the weights are there: none are drawn
        self.n_heads, self.d_head = own.n_heads, own.d_head
        self.query, self.key, self.value, self.out = own.query, own.key, own.value, own.out
        self.compute = compute


class _OtherFormula(_Other):
    """Another formula between the heads' queries and what they find."""

    def forward(self, looking, looked_at, mask=None, positions=NO_POSITIONS, trace=UNTRACED):
        query = trace("query", self._split(self.query(looking)))
        key = trace("key", self._split(self.key(looked_at)))
        value = trace("value", self._split(self.value(looked_at)))
        z, _ = self.compute(query, key, value, trace("mask", mask), trace)
        return trace("out", self.out(self._merge(z)))


class _OtherModule(_Other):
    """Another way from the stream to the stream."""

    def forward(self, looking, looked_at, mask=None, positions=NO_POSITIONS, trace=UNTRACED):
        return trace("out", self.compute(self, looking, mask, trace))


class _OtherEncoding(PositionalEncoding):
    """The vectors that a function adds, as a table."""

    table: torch.Tensor

    def __init__(self, own: PositionalEncoding, encode: Callable[..., Any]) -> None:
        super().__init__(n_ctx=own.n_ctx, d_model=own.d_model, n_heads=own.n_heads)
        self.register_buffer("table", encode(torch.zeros(1, own.n_ctx, own.d_model)), persistent=False)

    def vectors(self, length: int):
        return self.table[:length]

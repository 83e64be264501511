"""What a run is made of: three frozen records that check themselves, and the run that holds them.

The command line and the dashboard's training panel are both made from these fields. Nothing here imports PyTorch.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from transformer import masks
from transformer.foundation.checks import ConfigError, check_types, require, within
from transformer.foundation.foreign import quoted, shortened
from transformer.foundation.registry import Registry
from transformer.foundation.words import counted
from transformer.norms import NORMS, Norm
from transformer.positions import ENCODINGS, Described, described

if TYPE_CHECKING:
    from transformer.tasks import Task


Architecture = Literal["decoder", "encoder", "encoder-decoder", "gru"]
ARCHITECTURES: tuple[str, ...] = get_args(Architecture)
ATTENTIONS = ("none", "uniform", "dot", "scaled-dot", "additive")
"""How a GRU's decoder may look back at its encoder."""
MAX_TOKENS, MAX_WIDTH, MAX_LAYERS = 4096, 4096, 48
MAX_PENALTIES = 2**26
"""Numbers in the table of a bias on scores, one for each head and pair of positions; as float32 they take 256 MiB."""
PROBE_SEQUENCES = 512
"""Fresh sequences behind each accuracy that is measured while training."""
TEXT = "text"
"""The task that has no law but a text."""
SPLITS = ("words", "characters")
PRECISIONS = ("float32", "bfloat16")
DECAYS = ("inverse", "linear")


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """What is to be learned. Raises ConfigError for what cannot be."""

    task: str = "reverse"
    """The task, by its name."""
    length: int = 8
    """Symbols in the (longest) sequence."""
    min_length: int | None = None
    """Symbols in the shortest sequence; left out, all have the same length."""
    symbols: int = 10
    """How many different symbols there are; of a text, its tokens are counted."""
    text: str = ""
    """What is read: shakespeare, a text that was read before, or a file."""
    split: str = "words"
    """Where a text is cut: at the boundaries of words, or between characters."""
    min_count: int = 5
    """How often a token must stand in the text to be known."""

    def __post_init__(self) -> None:
        check_types(self)
        within("length", self.length, 1, MAX_TOKENS // 2)
        require(self.split in SPLITS, f"split must be {' or '.join(SPLITS)}, not {quoted(self.split)}")
        within("min_count", self.min_count, 1, 1_000_000)
        if self.task != TEXT:
            within("symbols", self.symbols, 2, 36)
        if self.min_length is not None:
            require(
                1 <= self.min_length <= self.length,
                f"min_length must be between 1 and length ({self.length}), not {self.min_length}",
            )


def _require_named(field: str, name: str, registry: Registry[Any]) -> None:
    """Raises ConfigError with the menu where there is no plug-in of that name; folders are read for that alone."""
    if name not in registry:
        raise ConfigError(f"{field} must be one of {', '.join(registry.names())}, not {quoted(name)}")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The model's shape, in the field's usual names. Raises ConfigError for what cannot be built."""

    architecture: str = "auto"
    """decoder, encoder, encoder-decoder or gru (recurrent, an encoder and a decoder); auto is the task's own."""
    n_layers: int = 2
    """Blocks in each stack."""
    n_heads: int = 4
    """Attention heads in each layer; they share d_model."""
    d_model: int = 64
    """Width of the residual stream."""
    d_ff: int = 256
    """Width of the feed-forward layer; 0 leaves it out."""
    positions: str = "learned"
    """The positional encoding, by its name."""
    mask: str = "auto"
    """What a query may see: causal, anti-causal, full, padding, sliding-window:W, recent:W, prefix:P, block:W,
    hide:POSITION, random:PERCENT:SEED or painted:N:CELLS; auto is the architecture's own."""
    norm: str = "pre"
    """Where the norm stands: before each sub-layer (pre), after its residual sum (post), or nowhere (none)."""
    norm_kind: str = "layer"
    """Which norm it is: layer (LayerNorm) or rms (RMSNorm)."""
    residual: bool = True
    """Add each sub-layer's input to its output; without that, only its output goes on."""
    dropout: float = 0.0
    """Probability of dropping a feature of a sub-layer's output while training."""
    scale_embeddings: bool = True
    """Multiply token embeddings by sqrt(d_model), as in the paper (section 3.4)."""
    tied: bool = False
    """Let one matrix embed tokens and, transposed, unembed them, as in the paper (section 3.4)."""
    query_key_gain: float = 1.0
    """Factor on the initial query and key weights; 0.3 steadies a model with a single head."""
    attention: str = "scaled-dot"
    """How a gru's decoder looks back at the source: none, uniform, dot, scaled-dot or additive."""
    affine: bool = True
    """Give that attention affine maps of its own for queries, keys and values."""

    def __post_init__(self) -> None:
        check_types(self)
        require(
            self.architecture in ("auto", *ARCHITECTURES),
            f"architecture must be auto, {', '.join(ARCHITECTURES)}, not {quoted(self.architecture)}",
        )
        within("n_layers", self.n_layers, 1, MAX_LAYERS)
        within("n_heads", self.n_heads, 1, 64)
        within("d_model", self.d_model, 1, MAX_WIDTH)
        within("d_ff", self.d_ff, 0, 4 * MAX_WIDTH)
        require(
            self.recurrent or self.d_model % self.n_heads == 0,
            f"d_model ({self.d_model}) must be divisible by n_heads ({self.n_heads})",
        )
        _require_named("positions", self.positions, ENCODINGS)
        if not self.recurrent and (paired := self.encoding.pairs):
            width = self.d_model if paired == "d_model" else self.d_head
            name = "d_model" if paired == "d_model" else "d_model / n_heads"
            require(
                width % 2 == 0,
                f"{self.encoding.title} {self.encoding.pairing}, so {name} must be even, not {width}",
            )
        require(self.norm in ("pre", "post", "none"), f"norm must be pre, post or none, not {quoted(self.norm)}")
        _require_named("norm_kind", self.norm_kind, NORMS)
        require(0 <= self.dropout < 1, f"dropout must be at least 0 and less than 1, not {self.dropout:g}")
        within("query_key_gain", self.query_key_gain, 0, 100)
        require(
            self.attention in ATTENTIONS,
            f"attention must be one of {', '.join(ATTENTIONS)}, not {quoted(self.attention)}",
        )
        if self.mask != "auto":
            try:
                masks.parse(self.mask)
            except ValueError as error:
                raise ConfigError(str(error)) from None

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads

    @property
    def recurrent(self) -> bool:
        """Is it no transformer, but a network that reads one token after the other?"""
        return self.architecture == "gru"

    @property
    def encoding(self) -> type[Described]:
        """What its positional encoding says of itself."""
        return described(self.positions)

    @property
    def kind_of_norm(self) -> Norm:
        """Which norm it has, where it has one."""
        return NORMS[self.norm_kind]()

    @property
    def other_norm(self) -> str:
        """The name of its norm where that is not the usual one, "RMSNorm"; else empty."""
        return self.kind_of_norm.title if self.norm_kind != ModelConfig.norm_kind else ""

    @property
    def attends(self) -> bool:
        """Is there any attention in it?"""
        return not self.recurrent or self.attention != "none"

    @property
    def shape(self) -> str:
        """Its shape in words: "decoder, 2 × 4 heads", "GRU, scaled-dot attention"."""
        if not self.recurrent:
            return f"{self.architecture}, {self.n_layers} × {counted(self.n_heads, 'head')}"
        layers = f"{self.n_layers} layers, " if self.n_layers > 1 else ""
        maps = "" if self.affine else " without maps"
        return f"GRU, {layers}{self.attention if self.attends else 'no'} attention{maps}"

    @property
    def cell(self) -> int:
        """Numbers in memory for one score. Additive attention needs d_model: a vector for each query and key."""
        return self.d_model if self.recurrent and self.attention == "additive" else 1

    @property
    def mask_label(self) -> str:
        """Its mask in words. A painted one is too long to be written out."""
        return "auto" if self.mask == "auto" else masks.parse(self.mask).label


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How it is learned: by AdamW, until it is solved. Raises ConfigError for what cannot be."""

    seed: int = 0
    """Decides the initial weights and every training sequence."""
    device: str = "auto"
    """auto (the first GPU that can be used, unless the CPU was measured to be quicker), cpu, cuda, cuda:1, mps …"""
    max_steps: int = 2000
    """Stop here even if it is not solved."""
    batch_size: int = 32
    """Sequences in a step."""
    learning_rate: float = 5e-3
    """AdamW's rate once warm."""
    warmup_steps: int = 0
    """Steps over which the rate rises from zero."""
    decay_after: int | None = None
    """Steps after which the rate falls; 0 never. Left out: 1 where it falls in a line, else 40 with sinusoidal
    positions, 150 for a gru, and else 0."""
    decay: str = "inverse"
    """How the rate falls: inverse (as 1/step), or linear (to nothing at the last step)."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""
    clip: float = 1.0
    """Largest gradient norm; 0 does not clip."""
    prompt_weight: float = 0.1
    """Weight in the loss of targets that belong to the question: nobody can predict them, but a leaking mask can."""
    teacher_forcing: float = 1.0
    """Probability with which a gru's decoder reads the right token while it trains, and not the one it said itself."""
    evaluate_every: int = 5
    """Steps between measurements on fresh sequences."""
    precision: str = "float32"
    """float32, or bfloat16: matrix products in 16 bits while training. On a processor that has neither AVX-512 BF16 nor
    AMX that is ten times slower."""
    solved_at: float = 0.999
    """Accuracy at which training stops, as a share of what can be known of the answers y1 to yn; SEP and the question
    do not count. Above 1 it never stops early."""

    def __post_init__(self) -> None:
        check_types(self)
        within("seed", self.seed, 0, 2**31 - 1)
        within("max_steps", self.max_steps, 1, 10_000_000)
        within("batch_size", self.batch_size, 1, 65_536)
        require(
            0 < self.learning_rate <= 10, f"learning_rate must be above 0 and at most 10, not {self.learning_rate:g}"
        )
        within("warmup_steps", self.warmup_steps, 0, 10_000_000)
        within("decay_after", self.decay_after or 0, 0, 10_000_000)
        require(self.decay in DECAYS, f"decay must be {' or '.join(DECAYS)}, not {quoted(self.decay)}")
        within("weight_decay", self.weight_decay, 0, 10)
        require(self.clip >= 0, f"clip must be 0 (off) or more, not {self.clip:g}")
        within("prompt_weight", self.prompt_weight, 0, 1)
        within("teacher_forcing", self.teacher_forcing, 0, 1)
        within("evaluate_every", self.evaluate_every, 1, 1_000_000)
        require(
            self.precision in PRECISIONS, f"precision must be {' or '.join(PRECISIONS)}, not {quoted(self.precision)}"
        )
        within("solved_at", self.solved_at, 0, 2)


_TRANSFORMER_ONLY: dict[str, Any] = {
    "positions": "none",
    "n_heads": 1,
    "d_ff": 0,
    "norm": "none",
    "norm_kind": "layer",
    "mask": "causal",
    "dropout": 0.0,
    "scale_embeddings": True,
    "tied": False,
    "residual": True,
    "query_key_gain": 1.0,
}
_RECURRENT_ONLY: dict[str, Any] = {"attention": "scaled-dot", "affine": True}
"""What means nothing to the other of the two, and is set so that the same model always has the same config."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides a run: what is learned, by which model, and how.

    "auto" is resolved on construction, so a stored config says what was used. Raises ConfigError where the three do not
    fit together.
    """

    task: TaskConfig = field(default_factory=TaskConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        task = self.build_task()
        allowed = task.architectures
        architecture = allowed[0] if self.model.architecture == "auto" else self.model.architecture
        require(
            architecture in allowed,
            f"the task {self.task.task} is for the architecture {' or '.join(allowed)}, not {architecture}",
        )
        model = dataclasses.replace(self.model, architecture=architecture)
        model = dataclasses.replace(model, **(_TRANSFORMER_ONLY if model.recurrent else _RECURRENT_ONLY))
        if not model.attends:
            model = dataclasses.replace(model, affine=True)
        if model.norm == "none":
            model = dataclasses.replace(model, norm_kind=ModelConfig.norm_kind)
        name = {"encoder": "full"}.get(architecture, "causal") if model.mask == "auto" else model.mask
        mask = masks.parse(name)
        require(
            mask.longest is None or task.n_ctx <= mask.longest,
            f"the mask was painted for {mask.longest} positions, but the task {self.task.task} of length "
            f"{self.task.length} has {task.n_ctx}",
        )
        within("the tokens of a sequence", task.n_ctx, 1, MAX_TOKENS)
        biases = model.n_heads * task.n_ctx**2 if model.encoding.told == "bias" else 0
        require(
            biases <= MAX_PENALTIES,
            f"{model.encoding.title} positions give each head and pair of positions a number; {model.n_heads} heads "
            f"and {task.n_ctx:,} positions take {biases:,}, and at most {MAX_PENALTIES:,} are kept",
        )
        lawful = {"text": "", "split": "words", "min_count": 5}
        meaningless = lawful if task.lawful else {"min_length": None, "symbols": 10}
        object.__setattr__(self, "task", dataclasses.replace(self.task, **meaningless))
        model, training = dataclasses.replace(model, mask=str(mask)), self.training
        if training.decay_after is None:
            # A GRU's neighbouring places look alike, as sinusoids do: to tell them apart for good takes small steps.
            decay = 150 if model.recurrent else model.encoding.decay_after
            decay = 1 if training.decay == "linear" else decay
            training = dataclasses.replace(training, decay_after=decay)
        if not model.recurrent:
            training = dataclasses.replace(training, teacher_forcing=1.0)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "training", training)

    def build_task(self) -> Task:
        """The task itself. Raises ConfigError when there is none of that name."""
        from transformer.tasks import TASKS
        from transformer.text.corpus import TextError
        from transformer.text.task import Text

        try:
            kind = Text if self.task.task == TEXT else TASKS[self.task.task]
            return kind.of(self.task)
        except KeyError as error:
            raise ConfigError(f"{error.args[0]}, {TEXT}") from None  # the registry's menu, and what has no law
        except TextError as error:
            raise ConfigError(str(error)) from None

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> RunConfig:
        """Read what `to_dict` wrote. Raises ConfigError for anything else: files come from anywhere."""
        try:
            return cls(
                task=TaskConfig(**values["task"]),
                model=ModelConfig(**values["model"]),
                training=TrainingConfig(**values["training"]),
            )
        except (KeyError, TypeError) as error:
            raise ConfigError(f"the settings are incomplete or of another version ({shortened(str(error))})") from None

"""The plan of a model: its boxes, its arrows, and the shape of what passes along each of them, from its config alone.

After figure 1 of "Attention Is All You Need" (Vaswani et al., 2017): what is read stands at the bottom, what comes out
on top. There are three levels: the whole model, one of its blocks, one of its heads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from transformer.analysis.findings import Head
from transformer.config import ModelConfig

if TYPE_CHECKING:
    from transformer.tasks import Question, Task

NAMES = {"self_attention": "self-attention", "cross_attention": "cross-attention", "feed_forward": "feed-forward"}
SUBLAYERS = {"self_attention": "resid_mid", "cross_attention": "resid_cross", "feed_forward": "resid_post"}
"""The parts of a block that write into its residual stream, and the site of the stream after each."""


@dataclass(frozen=True)
class Size:
    """What shapes are made of: the tokens that are read, those of a source (0 without one), and the vocabulary."""

    tokens: int
    source: int
    vocabulary: int
    context: int
    """The most tokens that it can read: as many rows a table of learned positions has."""


def size_of(task: Task, question: Question) -> Size:
    """The size of a question of a task."""
    tokens = task.encode([question]).tokens.shape[1]
    return Size(tokens, len(question) if task.has_source else 0, task.d_vocab, task.n_ctx)


@dataclass(frozen=True)
class Box:
    """One step of the computation."""

    name: str
    """As a site of the model where there is one: "decoder.0.feed_forward"."""
    kind: str
    """What it is: "embedding", "block", "norm", "head" and so on; words and links go by it."""
    title: str
    shape: tuple[int, ...]
    """Of what leaves it, for one sequence."""
    row: int
    """From the bottom, from 0."""
    lane: int = 0
    """0 is the stack that reads, or the only one; 1 is the stack that writes."""
    slot: tuple[int, int] = (0, 1)
    """Its place among so many boxes that stand side by side."""
    parameters: int = 0
    weights: tuple[str, ...] = ()
    """Beginnings of the names of its weights, as `state_dict` has them; empty where it has none of its own, or where it
    has some rows or columns of a matrix, as a head does."""

    @property
    def stack(self) -> str:
        return self.name.split(".")[0]


@dataclass(frozen=True)
class Arrow:
    """What leaves one box and enters another."""

    start: str
    end: str
    shape: tuple[int, ...]
    road: bool = False
    """Is it the residual stream?"""


@dataclass
class Plan:
    """Boxes in the order of the data's way, and the arrows between them."""

    level: str
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)

    def __getitem__(self, name: str) -> Box:
        for box in self.boxes:
            if box.name == name:
                return box
        raise KeyError(name)

    @property
    def names(self) -> list[str]:
        return [box.name for box in self.boxes]

    @property
    def rows(self) -> int:
        return 1 + max(box.row for box in self.boxes)

    @property
    def lanes(self) -> int:
        return 1 + max(box.lane for box in self.boxes)

    def put(self, box: Box, *sources: str, road: bool = False) -> str:
        """Another box, with an arrow from each of `sources`. Returns its name."""
        self.arrows += [Arrow(start, box.name, self[start].shape, road) for start in sources]
        self.boxes.append(box)
        return box.name


def linear(inputs: int, outputs: int) -> int:
    """Parameters of a linear map with a bias."""
    return inputs * outputs + outputs


def blocks(config: ModelConfig) -> list[str]:
    """The names of a transformer's blocks: "encoder.0", "decoder.0" …"""
    return [f"{stack}.{layer}" for stack in stacks(config) for layer in range(config.n_layers)]


def stacks(config: ModelConfig) -> tuple[str, ...]:
    """The stacks of a transformer, in the order of the data's way."""
    return ("encoder", "decoder") if config.architecture == "encoder-decoder" else (config.architecture,)


def plan_model(config: ModelConfig, size: Size) -> Plan:
    """The whole model: a box a block."""
    return _recurrent(config, size) if config.recurrent else _transformer(config, size)


def _transformer(config: ModelConfig, size: Size) -> Plan:
    plan, d = Plan("model"), config.d_model
    memory = ""
    for lane, stack in enumerate(stacks(config)):
        last = lane == len(stacks(config)) - 1
        n = size.tokens if last else size.source
        way = _Way(plan, lane)
        at = way.put(f"{stack}.tokens", "tokens", "tokens" if last else "source tokens", (n,))
        scaled = " × √d_model" if config.scale_embeddings else ""
        at = way.put(
            f"{stack}.token_embedding",
            "embedding",
            f"embedding{scaled}",
            (n, d),
            at,
            parameters=size.vocabulary * d,
            weights=("embedding.",),
        )
        if config.encoding.told == "vectors":
            at = way.put(
                f"{stack}.position_embedding",
                "positions",
                f"+ {config.encoding.title} positions",
                (n, d),
                at,
                road=True,
                parameters=position_parameters(config, size),
                weights=("positions.",) if config.encoding.learned else (),
            )
        elif config.encoding.learned:
            told = f"{config.encoding.title} positions: read in every block"
            own = position_parameters(config, size)
            way.put(f"{stack}.told", "told", told, (own,), parameters=own, weights=("positions.",))
        for layer in range(config.n_layers):
            at = way.put(
                f"{stack}.{layer}",
                "block",
                f"{stack} block {layer}",
                (n, d),
                at,
                road=True,
                parameters=block_parameters(config, cross=bool(memory)),
                weights=(f"{stack}.{layer}.",),
            )
            if memory:
                plan.arrows.append(Arrow(memory, at, plan[memory].shape))
        if not last:
            normed = config.norm == "pre"
            memory = way.put(
                f"{stack}.memory",
                "memory",
                f"{config.kind_of_norm.title}: the memory" if normed else "the memory",
                (n, d),
                at,
                road=True,
                parameters=norm_parameters(config) if normed else 0,
                weights=("memory_norm.",) if normed else (),
            )
        else:
            if config.norm == "pre":
                at = way.put(
                    "final_norm",
                    "norm",
                    f"final {config.kind_of_norm.title}",
                    (n, d),
                    at,
                    road=True,
                    parameters=norm_parameters(config),
                    weights=("final_norm.",),
                )
            tied = ", the embedding’s matrix" if config.tied else ""
            at = way.put(
                "logits",
                "unembedding",
                f"unembedding{tied}",
                (n, size.vocabulary),
                at,
                parameters=size.vocabulary if config.tied else linear(d, size.vocabulary),
                weights=("unembedding.",),
            )
            way.put("probabilities", "softmax", "softmax: probabilities", (n, size.vocabulary), at)
    return plan


def _recurrent(config: ModelConfig, size: Size) -> Plan:
    plan, d, looks = Plan("model"), config.d_model, config.attention != "none"
    reads, writes = _Way(plan, 0), _Way(plan, 1)
    embedding: dict[str, Any] = {"parameters": size.vocabulary * d, "weights": ("embedding.",)}
    layers = f"{config.n_layers} layers of " if config.n_layers > 1 else ""
    gates = config.n_layers * (2 * 3 * d * d + 2 * 3 * d)
    at = reads.put("encoder.tokens", "tokens", "source tokens", (size.source,))
    at = reads.put("encoder.token_embedding", "embedding", "embedding", (size.source, d), at, **embedding)
    gru: dict[str, Any] = {"parameters": gates, "weights": ("core.encoder.",)}
    at = states = reads.put("encoder.states", "gru", f"encoder: {layers}GRU", (size.source, d), at, **gru)
    last = reads.put("encoder.last", "handed", "its last state: one vector", (config.n_layers, d), at)
    at = writes.put("decoder.tokens", "tokens", "tokens", (size.tokens,))
    at = writes.put("decoder.token_embedding", "embedding", "embedding", (size.tokens, d), at, **embedding)
    gru = {"parameters": gates, "weights": ("core.decoder.",)}
    at = writes.put("decoder.0.states", "gru", f"decoder: {layers}GRU", (size.tokens, d), at, last, **gru)
    width = d
    if looks:
        at = writes.put(
            "decoder.0.cross_attention",
            "alignment",
            f"{config.attention} attention",
            (size.tokens, d),
            at,
            states,
            parameters=_alignment(config),
            weights=("core.attention.",),
        )
        width = 2 * d
        at = writes.put("features", "join", "context and state, joined", (size.tokens, width), at, "decoder.0.states")
    at = writes.put(
        "logits",
        "unembedding",
        "unembedding",
        (size.tokens, size.vocabulary),
        at,
        parameters=linear(width, size.vocabulary),
        weights=("unembedding.",),
    )
    writes.put("probabilities", "softmax", "softmax: probabilities", (size.tokens, size.vocabulary), at)
    return plan


def _alignment(config: ModelConfig) -> int:
    d = config.d_model
    maps = 0 if not config.affine else 1 if config.attention == "uniform" else 3
    return maps * linear(d, d) + (d if config.attention == "additive" else 0)


def block_parameters(config: ModelConfig, *, cross: bool) -> int:
    """All numbers that training moves in one block."""
    attentions, feeds = 2 if cross else 1, int(config.d_ff > 0)
    norms = (attentions + feeds) * norm_parameters(config) if config.norm != "none" else 0
    return attentions * 4 * linear(config.d_model, config.d_model) + feeds * feed_forward(config) + norms


def norm_parameters(config: ModelConfig) -> int:
    """Parameters of one norm: its gain and its shift, as far as it has them."""
    return config.kind_of_norm.parameters(config.d_model)


def position_parameters(config: ModelConfig, size: Size) -> int:
    """Parameters of the positional encoding. Only for a learned one PyTorch is asked."""
    if config.recurrent or not config.encoding.learned:
        return 0
    return _position_parameters(config.positions, size.context, config.d_model, config.n_heads)


@cache
def _position_parameters(name: str, n_ctx: int, d_model: int, n_heads: int) -> int:
    from transformer.foundation.drawing import drawing
    from transformer.positions import ENCODINGS

    with drawing(0):
        made = ENCODINGS[name](n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)
    return sum(weight.numel() for weight in made.parameters())


def feed_forward(config: ModelConfig) -> int:
    """Parameters of one feed-forward layer."""
    return linear(config.d_model, config.d_ff) + linear(config.d_ff, config.d_model)


def plan_block(config: ModelConfig, size: Size, block: str) -> Plan:
    """One block: its sub-layers between a norm and a sum, and the residual stream past them.

    Raises KeyError when there is no such block.
    """
    if block not in blocks(config):
        raise KeyError(block)
    plan, d, h = Plan("block"), config.d_model, config.n_heads
    stack = block.split(".")[0]
    whole = stack == stacks(config)[-1]
    n = size.tokens if whole else size.source
    cross = config.architecture == "encoder-decoder" and stack == "decoder"
    lane = int(cross)
    way = _Way(plan, lane)
    road = way.put(f"{block}.resid_pre", "stream", "residual stream", (n, d))
    for part, after in SUBLAYERS.items():
        if (part == "cross_attention" and not cross) or (part == "feed_forward" and not config.d_ff):
            continue
        norm = f"{block}.around_{part.removesuffix('_attention')}"
        at = road
        if config.norm == "pre":
            at = way.put(
                f"{norm}.before",
                "norm",
                f"{config.kind_of_norm.title} before {NAMES[part]}",
                (n, d),
                at,
                parameters=norm_parameters(config),
                weights=(f"{norm}.before.",),
            )
        if part == "feed_forward":
            at = way.put(
                f"{block}.feed_forward",
                "feed_forward",
                f"feed-forward {d} → {config.d_ff} → {d}",
                (n, d),
                at,
                parameters=feed_forward(config),
                weights=(f"{block}.feed_forward.",),
            )
        else:
            read = [at]
            if part == "cross_attention":
                read.append(plan.put(Box("encoder.memory", "memory", "the memory", (size.source, d), way.row)))
            heads = way.beside(
                [f"{block}.{part}.{index}" for index in range(h)],
                "head",
                [f"{'cross ' * (part == 'cross_attention')}{block.split('.')[1]}.{index}" for index in range(h)],
                (n, config.d_head),
                *read,
                parameters=3 * (d * config.d_head + config.d_head),
            )
            at = way.put(f"{block}.{part}.z", "join", f"join: {h} × {config.d_head} = {d}", (n, d), *heads)
            at = way.put(
                f"{block}.{part}.out",
                "out",
                f"W_O of {NAMES[part]}",
                (n, d),
                at,
                parameters=linear(d, d),
                weights=(f"{block}.{part}.out.",),
            )
        post = config.norm == "post"
        name = f"{block}.{after}" if not post else f"{block}.{after}.sum"
        if config.residual:
            at = way.put(name, "add", "+ residual stream", (n, d), at)
            plan.arrows.append(Arrow(road, at, (n, d), road=True))
        elif not post:
            at = way.put(name, "add", "no residual connection", (n, d), at)
        if post:
            at = way.put(
                f"{block}.{after}",
                "norm",
                f"{config.kind_of_norm.title} after {NAMES[part]}",
                (n, d),
                at,
                road=config.residual,
                parameters=norm_parameters(config),
                weights=(f"{norm}.after.",),
            )
        road = at
    return plan


def plan_head(config: ModelConfig, size: Size, head: Head) -> Plan:
    """One head of a transformer: three maps, scores, pattern, what it carries and what it writes.

    Raises KeyError when there is no such head.
    """
    block, _, part = head.site.rpartition(".")
    cross = part == "cross_attention"
    inside = plan_block(config, size, block)
    box = inside[str(head)]
    n, d, width = box.shape[0], config.d_model, config.d_head
    keys = size.source if cross else n
    maps = d * width + width
    plan = Plan("head")
    way = _Way(plan, 0)
    normed = f"{block}.around_{part.removesuffix('_attention')}.before"
    if config.norm == "pre":
        title, own = f"{config.kind_of_norm.title} of the stream", norm_parameters(config)
        read = way.put(normed, "norm", title, (n, d), parameters=own, weights=(f"{normed}.",))
    else:
        read = way.put(f"{block}.{'resid_mid' if cross else 'resid_pre'}", "stream", "residual stream", (n, d))
    looked_at = read
    if cross:
        looked_at = plan.put(Box("encoder.memory", "memory", "the encoder’s memory", (keys, d), row=0, slot=(1, 2)))
        plan.boxes[0] = replace(plan.boxes[0], slot=(0, 2))
    told = "nowhere" if cross else config.encoding.told
    changed = ", changed by its place" if told == "rotation" else ""
    names = {
        "query": (f"query: what it looks for{changed}", n, read),
        "key": (f"keys: what each offers{changed}", keys, looked_at),
        "value": ("values: what each hands over", keys, looked_at),
    }
    row = plan.rows
    for index, (kind, (title, length, source)) in enumerate(names.items()):
        made = Box(f"{head}.{kind}", kind, title, (length, width), row, slot=(index, 3), parameters=maps)
        plan.put(made, source)
    way.row = row + 1
    biased = f" {config.encoding.term}" if told == "bias" else ""
    at = way.put(
        f"{head}.scores", "scores", f"scores: q · k / √{width}{biased}", (n, keys), f"{head}.query", f"{head}.key"
    )
    at = way.put(f"{head}.pattern", "pattern", "mask, softmax: the pattern", (n, keys), at)
    at = way.put(f"{head}.z", "z", "values, weighed by the pattern", (n, width), at, f"{head}.value")
    way.put(
        f"{head}.out",
        "share",
        f"its {width} rows of W_O",
        (n, d),
        at,
        parameters=d * width,
    )
    return plan


@dataclass
class _Way:
    """A lane that is filled from the bottom to the top, a box a row."""

    plan: Plan
    lane: int
    row: int = 0

    def put(
        self,
        name: str,
        kind: str,
        title: str,
        shape: tuple[int, ...],
        *sources: str,
        road: bool = False,
        parameters: int = 0,
        weights: tuple[str, ...] = (),
    ) -> str:
        box = Box(name, kind, title, shape, self.row, self.lane, parameters=parameters, weights=weights)
        self.row += 1
        return self.plan.put(box, *sources, road=road)

    def beside(
        self, names: list[str], kind: str, titles: list[str], shape: tuple[int, ...], *sources: str, parameters: int
    ) -> list[str]:
        """Boxes side by side, in one row."""
        for index, (name, title) in enumerate(zip(names, titles, strict=True)):
            slot = (index, len(names))
            self.plan.put(Box(name, kind, title, shape, self.row, self.lane, slot, parameters), *sources)
        self.row += 1
        return names

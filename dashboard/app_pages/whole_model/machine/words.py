"""What each box does, in a sentence made of its numbers, and the page that looks into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dashboard.app_pages.whole_model.machine.figures import Link, Stage
from dashboard.figures.kit.numbers import small
from dashboard.figures.kit.token_axis import elided
from dashboard.parts import claims
from dashboard.parts.prose import learned_by_norm
from transformer.analysis.findings import Sample
from transformer.analysis.machine.plan import SUBLAYERS, Box, Plan, Size, stacks
from transformer.config import ModelConfig
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed

SHARES = ("softmax", "pattern")
"""Kinds whose numbers are shares, from 0 to 1; all others have both signs."""
LETTERS = 70
"""The most letters of the tokens in their box; half as many where two stacks stand side by side."""
LISTED = 64
"""The most numbers of a vocabulary that are drawn: of more, the likeliest tokens'."""


def count_words(count: int) -> str:
    """ "4,096 parameters"; nothing for none."""
    return f"{count:,} parameter{'s' * (count != 1)}" if count else ""


def shape_words(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


@claim
def headline(config: ModelConfig, plan: Plan, size: Size, total: int) -> str:
    """What is drawn, in a sentence."""
    sources = f"{counted(size.source, 'source token')} and " if size.source else ""
    if plan.level == "head":
        box = plan.boxes[-1]
        head = box.name.removesuffix(".out")
        heads, width = config.n_heads, config.d_head
        if heads == 1:
            return f"Head {_short(head)} is the only one in its layer: all {width} numbers are its own."
        return (
            f"Head {_short(head)} is one of {heads} in its layer: {width} of the {config.d_model} numbers are its own."
        )
    if plan.level == "block":
        own = sum(box.parameters for box in plan.boxes if box.kind != "memory")
        name = plan.boxes[0].name.split(".")
        return f"{name[0].capitalize()} block {name[1]} has {own:,} of the model’s {total:,} parameters."
    if config.recurrent:
        second = "looks back at its states" if config.attention != "none" else "begins at its last state"
        return f"A GRU reads {counted(size.source, 'token')}, and a second one {second}: {total:,} parameters."
    passes = "pass" if size.source or size.tokens > 1 else "passes"
    each = " in each stack" if size.source else ""
    return (
        f"{sources}{counted(size.tokens, 'token')} {passes} {counted(config.n_layers, 'block')}{each}: "
        f"{total:,} parameters."
    )


SENTENCES = {
    "tokens": "{tokens}, each a number from 0 to {last}: its row in the embedding.",
    "embedding": "Each token becomes its row of the embedding{scale}: a vector of {d} numbers.",
    "positions": "The encoding {does}: {d} numbers for each of up to {context} positions.",
    "told": "These weights belong to no block: each head of its self-attention {does}.",
    "block": "One block: {parts}. Each part adds its output to the residual stream.{order}",
    "block without": "One block: {parts}. It has no residual connections.{order}",
    "memory": "What the encoder made of each source token: {vectors} of {d}. Cross-attention makes keys and values "
    "of them.",
    "norm": "{norm} takes each vector by itself. It {normalises}. {learned}",
    "stream": "One vector of {d} numbers for each token. Every part reads it.",
    "head": "Head {short} makes query, key and value from the same stream. Its output has {width} numbers for each "
    "token.",
    "head cross": "Head {short} makes its query from the decoder, and keys and values from the encoder’s memory. Its "
    "output has {width} numbers for each token.",
    "join": "The outputs of {heads} heads stand side by side: {heads} × {width} = {d} numbers.",
    "join one": "There is one head, so nothing is joined: its output has {d} numbers.",
    "join states": "The context vector and the decoder’s state stand side by side: {last_axis} numbers.",
    "out": "W_O mixes the joined heads: {d} numbers in, {d} out.",
    "share": "W_O has {width} rows for this head. They turn its {width} numbers into {d}.",
    "add": "The output is added to the residual stream. What was there stays there.",
    "add without": "Only the output goes on: this model has no residual connections.",
    "feed_forward": "Two linear maps with a ReLU between them, at each position by itself: {d} → {d_ff} → {d} numbers.",
    "unembedding": "One logit for each of the {vocabulary} tokens of the vocabulary.",
    "softmax": "Softmax turns {vocabulary} logits into probabilities that sum to 1.",
    "query": "The query says what a token looks for: {d} numbers become {width}.{changed}",
    "key": "The key says by what a token is found: {d} numbers become {width}.{changed}",
    "value": "The value is what a token passes on when it is looked at: {d} numbers become {width}.",
    "scores": "The query of each token times the key of each token, divided by √{width}: {n} × {last_axis} "
    "numbers.{biased}",
    "pattern": "The mask hides what may not be seen. Softmax then makes each row sum to 1. Row = query (who looks), "
    "column = key (looked at).",
    "z": "The mean of the values, weighed by the row of the pattern: {width} numbers for each query.",
    "gru": "A GRU goes from token to token. Its state of {d} numbers is all that it keeps of what it has read.",
    "handed": "The decoder starts from the encoder’s last state: {d} numbers, however long the source is.",
    "alignment": "The decoder’s state looks at {states} of the encoder and takes their weighted mean.",
}
"""What the boxes of a kind do, and of its variants."""


def sentence_of(config: ModelConfig, size: Size, box: Box) -> str:
    """What the box does."""
    attention = "self-attention and cross-attention" if size.source and box.stack == "decoder" else "attention"
    plural, encoding = "s" * (config.n_heads > 1), config.encoding
    told = "nowhere" if config.recurrent or ".cross_attention." in box.name else encoding.told
    told_in_heads = f" Each head of its self-attention {encoding.does}." if told in ("rotation", "bias") else ""
    variants = {
        "block": "" if config.residual else "without",
        "add": "" if config.residual else "without",
        "head": "cross" if ".cross_attention." in box.name else "",
        "join": "states" if config.recurrent else "one" if config.n_heads == 1 else "",
    }
    return SENTENCES[f"{box.kind} {variants.get(box.kind, '')}".strip()].format(
        n=box.shape[0],
        tokens=counted(box.shape[0], "token"),
        vectors=counted(box.shape[0], "vector"),
        last_axis=box.shape[-1],
        last=size.vocabulary - 1,
        vocabulary=f"{size.vocabulary:,}",
        states=f"all {size.source} states" if size.source != 1 else "the one state",
        context=size.context,
        d=config.d_model,
        d_ff=config.d_ff,
        heads=config.n_heads,
        width=config.d_head if not config.recurrent else config.d_model,
        scale=f" times √{config.d_model}" if config.scale_embeddings and not config.recurrent else "",
        parts=f"{attention} with {config.n_heads} head{plural}{' and a feed-forward layer' if config.d_ff else ''}",
        does=encoding.does,
        order=told_in_heads,
        biased=f" Then each head {encoding.does}." if told == "bias" else "",
        changed=f" Each head {encoding.does}." if told == "rotation" else "",
        short=_short(box.name) if box.kind == "head" else "",
        norm=config.kind_of_norm.title,
        normalises=config.kind_of_norm.description,
        learned=learned_by_norm(config.kind_of_norm, config.d_model),
    )


def numbers(values: np.ndarray, box: Box) -> np.ndarray:
    """What is drawn of a vector: all of it; of a large vocabulary its LISTED largest numbers, the largest first."""
    if box.kind not in ("unembedding", "softmax") or len(values) <= LISTED:
        return values
    return -np.sort(-values)[:LISTED]


def drawn(
    config: ModelConfig,
    size: Size,
    plan: Plan,
    vectors: Mapping[str, np.ndarray],
    moved: Mapping[str, float],
    sample: Sample | None = None,
) -> tuple[list[Stage], list[Link]]:
    """The boxes and arrows of a plan as its picture takes them; `moved` are shares of each box's length, and the tokens
    of a `sample` stand in the boxes that read them."""
    letters = LETTERS // (1 + max(box.lane for box in plan.boxes))
    most = max(moved.values(), default=0.0) or 1.0
    stages = []
    for box in plan.boxes:
        sentence, count = sentence_of(config, size, box), count_words(box.parameters)
        if box.name in moved:
            count = moved_words(moved[box.name])
            sentence = f"{sentence} It {count}."
        stages.append(
            Stage(
                name=box.name,
                title=box.title,
                count=count,
                sentence=sentence,
                row=box.row,
                lane=box.lane,
                slot=box.slot,
                values=numbers(vectors[box.name], box) if box.name in vectors else None,
                signed=box.kind not in SHARES,
                text=elided(" ".join(_tokens(sample, box)), letters) if sample and box.kind == "tokens" else "",
                moved=moved.get(box.name, 0.0) / most,
            )
        )
    at = {name: index for index, name in enumerate(plan.names)}
    links = [Link(at[arrow.start], at[arrow.end], shape_words(arrow.shape), arrow.road) for arrow in plan.arrows]
    return stages, links


def _tokens(sample: Sample, box: Box) -> tuple[str, ...]:
    """What a stack reads."""
    return sample.question if box.title == "source tokens" else sample.read


def of_token(size: Size, box: Box, sample: Sample, place: int) -> str:
    """Whose vector stands in a box: "'3' at 5", or in a stack that reads a source "source token '3' at 5"."""
    cross = box.kind in ("key", "value") and ".cross_attention." in box.name
    if size.source and (cross or box.stack == "encoder"):
        place = min(place, size.source - 1)
        return f"source token '{sample.question[place]}' at {place + 1}"
    return f"'{sample.read[place]}' at {place + 1}"


def vector_words(values: np.ndarray, box: Box, names: Sequence[str], whose: str) -> str:
    """The vector of the chosen token in numbers; `names` are the keys of scores and of a pattern, or the vocabulary."""
    if box.kind == "pattern":
        return looking(values, names, whose)
    if box.kind == "softmax":
        return likeliest(values, names, whose)
    if box.kind in ("scores", "unembedding"):
        kind, at = ("score", _at_key(names, len(values))) if box.kind == "scores" else ("logit", _of_token(names))
        return claims.largest_in_size(f"For {whose}: {len(values):,} {kind}{'s' * (len(values) > 1)}.", values, at)
    return claims.largest_in_size(f"For {whose}: its length is {np.linalg.norm(values):.2f}.", values)


def _at_key(names: Sequence[str], keys: int) -> Callable[[int], str]:
    """How a key is called; of a long input the names are those of blocks."""
    whole = len(names) == keys
    return lambda key: f"for '{names[key]}' at {key + 1}" if whole else f"for the key at {key + 1}"


def _of_token(names: Sequence[str]) -> Callable[[int], str]:
    return lambda token: f"for '{names[token]}'"


@claim
def looking(row: np.ndarray, names: Sequence[str], whose: str) -> str:
    """At which key a query looks most, from its row of a pattern; where no digit tells several apart, all of them."""
    if not row.any():
        return f"For {whose}: it may see nothing."
    most, called = claims.foremost(dict(enumerate(row.tolist()))), _at_key(names, len(row))
    share = f"{row[most[0]]:.2f} of its attention{' each' * (len(most) > 1)}"
    if len(most) > claims.FEW:
        return f"For {whose}: it looks most at {len(most)} of {len(row)} keys, with {share}."
    keys = listed([called(key).removeprefix("for ") for key in most])
    return f"For {whose}: it looks most at {keys}, with {share}."


@claim
def likeliest(shares: np.ndarray, names: Sequence[str], whose: str) -> str:
    """Which token is the likeliest; where no digit tells several apart, all of them."""
    most = claims.foremost(dict(enumerate(shares.tolist())), small)
    share = f"with probability {small(float(shares[most[0]]))}"
    if len(most) > claims.FEW:
        return f"For {whose}: the likeliest are {len(most):,} of {len(shares):,} tokens, {share} each."
    named = listed([f"'{names[each]}'" for each in most])
    if len(most) > 1:
        return f"For {whose}: the likeliest tokens are {named}, {share} each."
    return f"For {whose}: the likeliest token is {named}, {share}."


def name_of(box: Box) -> str:
    """What a box is called in a sentence."""
    return f"head {box.title}" if box.kind == "head" else box.title


def moved_words(share: float) -> str:
    return f"moved {_percent(share)}"


@claim
def movement(plan: Plan, shares: Mapping[str, float], before: int, step: int) -> str:
    """Which box training moved most between two steps, and which least; where no digit tells several apart, all."""
    during, length = f"From step {before} to step {step}", "of its length, ‖W′ − W‖ / ‖W‖."
    if not any(shares.values()):
        return f"{during} nothing moved."
    moved = {f"“{name_of(plan[name])}”": share for name, share in shares.items()}  # both stacks share one embedding
    most = claims.foremost(moved, _percent)
    least = claims.foremost({title: -share for title, share in moved.items()}, _percent)

    def by(titles: list[str]) -> str:
        return f"by {_percent(moved[titles[0]])}{' each' if len(titles) > 1 else ''}"

    if len(most) == len(moved):
        return f"{during} training moved {listed(most)} {by(most)} {length}"
    return f"{during} training moved {listed(most)} most: {by(most)}, and {listed(least)} least: {by(least)} {length}"


def _percent(share: float) -> str:
    return f"{100 * abs(share):.3g} %"


@claim
def a_step(shares: Mapping[str, float], before: int, step: int) -> str:
    """The same for a single step: the kept steps lie farther and farther apart, and what moved between them grows."""
    steps, most = step - before, max(shares.values())
    return f"Divided by the {steps} steps, the most is {100 * most / steps:.2g} % a step." if most and steps > 1 else ""


STEPS = {"query": "", "key": "keys", "value": "values", "scores": "dot", "pattern": "divide", "z": "weigh"}
"""What a head does, and the step of the page "Inside a head" that shows it."""
PAGES_OF: dict[str, tuple[str, dict[str, object]]] = {
    "tokens": ("overview", {}),
    "embedding": ("block", {"part": "parameters"}),
    "positions": ("positions", {}),
    "told": ("positions", {}),
    "unembedding": ("block", {"part": "logits"}),
    "softmax": ("block", {"part": "logits"}),
    "memory": ("heads", {}),
    "alignment": ("heads", {}),
    "gru": ("bottleneck", {}),
    "handed": ("bottleneck", {}),
}
"""The page that looks into the boxes of a kind, where that is the same for all, and what it is opened with."""


def opens(config: ModelConfig, box: Box) -> tuple[str, dict[str, object]]:
    """The address of the page that looks into a box, and the fields of the view that it is opened with."""
    head, block = box.name.rpartition(".")[0], ".".join(box.name.split(".")[:2])
    if box.kind == "block":
        return "machine", {"zoom": "block", "block": box.name, "box": ""}
    if box.kind == "head":
        return "machine", {"zoom": "head", "head": box.name, "box": ""}
    if box.kind in STEPS:
        return "inside", {"head": head, "operation": STEPS[box.kind]}
    if box.kind == "share":
        return "inside", {"head": head, "operation": "project"}
    if config.recurrent and box.kind not in ("tokens", "gru", "handed"):
        return ("heads", {}) if box.kind in ("alignment", "join") else ("overview", {})
    if box.kind in PAGES_OF:
        return PAGES_OF[box.kind]
    if box.name == "final_norm":
        return PAGES_OF["softmax"]
    if box.kind in ("add", "stream"):
        if box.stack != stacks(config)[-1]:  # the logit lens reads the stack that predicts
            return "information", {}
        return "layers", {"stage": f"{block}.{SUBLAYERS[part_of(box)]}" if box.kind == "add" else ""}
    part = part_of(box)
    opened: dict[str, object] = {"part": "heads", "block": block, "sublayer": part}
    kinds: dict[str, dict[str, object]] = {
        "norm": {"part": "norm"},
        "feed_forward": {"part": "feed_forward"},
        "join": {"joint": "join"},
        "out": {"joint": "mix"},
    }
    return "block", opened | kinds[box.kind]


def part_of(box: Box) -> str:
    """The sub-layer of a block to which a box belongs: "self_attention", "cross_attention" or "feed_forward"."""
    after = {left: part for part, left in SUBLAYERS.items()}
    for each in box.name.split(".")[2:]:
        if each in SUBLAYERS or each in after:
            return after.get(each, each)
    short = box.name.partition(".around_")[2].partition(".")[0]
    return next(part for part in SUBLAYERS if part.startswith(short))


def _short(head: str) -> str:
    """ "1.3", of "decoder.1.self_attention.3"."""
    _, layer, _, index = head.split(".")
    return f"{layer}.{index}"

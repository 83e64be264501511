"""Settings: the whole view as one small frozen record, and its way into the URL and back.

Controls read and write it, pages receive it, and no widget's state is the only copy of anything. What equals its
default is left out of the URL; what a URL says that cannot be used falls back, with a notice.

Links are read by hand: Streamlit binds a parameter to a widget, and most of a view has none; a library that checks
records (pydantic) would refuse a whole link for one bad value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

MAX_TEXT = 200
LONGER = {"compare": 1000, "prompt": 2000, **dict.fromkeys(("input", "against", "other"), 8192)}
LONGER |= dict.fromkeys(("mask", "train_mask", "retrain", "edits"), 12_000)
"""Letters in a text that may be longer: a list of runs, an input of thousands of symbols, what was painted. A server
takes an address of 64 kB."""
FAST, BY_KEY = "fast", "key"
PACES = (FAST, "50", "20", "10", "5", "2", "1", BY_KEY)
"""How fast a training may go: as it can, so many steps a second, or one by one."""
MOST_WIDE, MOST_LONG = 512, 200
"""Dimensions and positions of an encoding that are drawn: a matrix of them is 0.8 MB for the browser."""
LIMITS = {
    "step": (0, 10_000_000),
    "length": (1, 512),
    "min_length": (1, 64),
    "symbols": (2, 36),
    "min_count": (1, 1000),
    "layers": (1, 12),
    "heads": (1, 12),
    "width": (2, 512),
    "seed": (0, 2**31 - 1),
    "max_steps": (1, 100_000),
    "learning_rate": (1e-5, 1.0),
    "batch": (1, 4096),
    "budget": (0.1, 30.0),
    "gain": (0.0, 10.0),
    "teacher_forcing": (0.0, 1.0),
    "through": (0, 10_000),
    "pe_width": (2, MOST_WIDE),
    "pe_length": (1, MOST_LONG),
    "pe_heads": (1, 64),
    "slope": (0, 63),
    "base": (10, 1_000_000),
    "cursor": (1, MOST_LONG),
    "shift": (1, MOST_LONG - 1),
    "scaled": (0, 1),
    "confused": (0, 65_536),
    "longer": (1, 192),
    "corner_width": (1, 32),
    "corner_most": (2, 6),
    "corner_noise": (0.0, 0.5),
    "corner_forcing": (0.0, 1.0),
    "corner_seed": (0, 2**31 - 1),
    "corner_step": (0, 100_000),
    "walk_given": (2, 6),
    "stretch": (0.0, 5.0),
    "turned": (-180, 180),
    "unrolled": (2, 32),
    "stacked": (1, 6),
    **dict.fromkeys(("n_queries", "n_keys", "n_values", "d_query", "d_key", "d_value"), (1, 12)),
    "d_stream": (1, 64),
    "deep": (1, 8),
    "spoken": (1, 64),
    "temperature": (0.0, 2.0),
    "top_k": (0, 1000),
    "top_p": (0.01, 1.0),
    "written": (1, 512),
    "writing_seed": (0, 2**31 - 1),
}


@dataclass(frozen=True)
class Settings:
    """What is looked at, and what would be trained next. Texts are checked against the menus by whoever uses them."""

    # what is looked at
    run: str = ""
    """The run's folder name, or "compiled"; empty is the first of the menu."""
    step: int | None = None
    """The snapshot; empty is the last."""
    input: str = ""
    """The question, as typed; empty is the model's own sample."""
    head: str = ""
    """Which head is enlarged, as "decoder.1.self_attention.3"; empty is the one that does the work."""
    query: int | None = None
    """The query that is looked at, its position counted from 1; empty is the page's choice."""
    operation: str = ""
    """Which step of attention is shown inside a head; empty is the first."""
    mean: bool = False
    """The mean over many sequences instead of this one."""
    by_row: bool = False
    """Colour each row of a pattern from 0 to its own greatest value, in place of 0 to 1."""
    against: str = ""
    """What the head in focus is compared with: "head:decoder.0.self_attention.1", "step:40", "run:…", "input:3 1 4"."""
    window: str = ""
    """Where in a long input the window is centred, "query,key" from 1; empty is the page's choice."""
    stage: str = ""
    """Which stage of the residual stream is looked at, as "decoder.1.resid_mid"; empty is where the answer settles."""
    likeliest: bool = False
    """Colour the stages by the likeliest token's probability instead of the right one's."""
    through: int | None = None
    """Through which layer attention is rolled out, from 0; empty is the last."""
    poked: int | None = None
    """The token that is poked, its slot counted from 1, the source's first; empty is the page's choice."""
    replacement: str = ""
    """The symbol that is put in its place; empty is every other in turn."""
    beside: str = ""
    """Which attention stands beside what moves: the rollout, or the head in focus; empty is the rollout."""
    across: str = ""
    """The metric of heads that is drawn from left to right; empty is the page's choice."""
    up: str = ""
    """The one that is drawn upwards."""
    removal: bool = False
    """Remove each head in turn, even where that takes long."""
    mask: str = ""
    """The mask that is tried, as the library writes it; empty is the page's first suggestion."""
    target: int | None = None
    """The output whose ways are shown, its position counted from 1; empty is the first of the answer."""
    live: bool = True
    """Train a small model anew whenever the mask changes."""
    retrain: str = ""
    """The mask under which a small model was asked for by hand: then it may take the whole `budget`."""
    edits: str = ""
    """The edits that are tried, as the library writes them, joined by "~"; one that is switched off begins with "-"."""
    other: str = ""
    """The second input of activation patching, as typed; empty is the input with its first symbol changed."""
    encoding: str = ""
    """The positional encoding that is drawn; empty is the model's own."""
    order: str = ""
    """What a model is told about its positions, as the library writes an edit: "places-shift:3"; empty is the page's
    choice."""
    dimensions: str = ""
    """The dimensions drawn as waves, "0,1,8"; empty is the page's choice."""
    pe_width: int | None = None
    """The width of an encoding that follows from a formula; empty is the model's own."""
    pe_length: int | None = None
    """How many positions are drawn; empty is as many as the model reads."""
    pe_heads: int | None = None
    """How many heads share ALiBi's slopes; empty is as many as the model has."""
    slope: int = 0
    """Which of these heads is looked at."""
    base: int = 10_000
    """The base of the wavelengths."""
    cursor: int | None = None
    """The position that is looked at, from 1; empty is the middle."""
    shift: int = 1
    """The step whose rotation is shown, in positions."""
    scaled: int | None = None
    """Token embeddings times sqrt(d_model), 1, or as they are stored, 0; empty is what the model does."""
    sequences: int = 4096
    """How many fresh sequences an accuracy is measured on."""
    measured_length: int | None = None
    """The length of these sequences; empty is the task's greatest."""
    depth: str = ""
    """By what the accuracy is taken apart: "training", "head", "symbol" …; empty is the page's choice."""
    confused: int = 0
    """The target whose confusions are counted, its position counted from 1; 0 is the whole answer."""
    answer: bool = False
    """Train a small model the way the page suggests, on the spot."""
    budget: float = 0.5
    """Seconds that such a training may take."""
    compare: str = ""
    """The runs that are compared, with commas between them; empty is the page's suggestion."""
    measure: str = ""
    """What is compared: accuracy, or loss."""
    clock: str = ""
    """By what: steps, or seconds."""
    measurement: str = ""
    """Whose measurement over lengths is shown: "shipped" or "own"; empty is the shipped one."""
    longer: int | None = None
    """The length whose places are shown one by one; empty is the page's choice."""
    raced: bool = False
    """Race the positional encodings against each other, here and now."""
    # the page of square corners
    corner_attention: str = ""
    """How the GRU looks back at the corners given; empty is the page's choice."""
    corner_affine: bool = True
    """Give that attention affine maps."""
    corner_width: int = 4
    """Of its hidden states."""
    corner_most: int = 2
    """Corners given at most; from 2 on."""
    corner_noise: float = 0.1
    """Standard deviation of each coordinate."""
    corner_forcing: float = 0.5
    """Probability of reading the true corner while it trains."""
    corner_seed: int = 0
    corner_step: int | None = None
    """The step of its training; empty is the last."""
    corner_walk: str = ""
    """The walk that is looked at, "lower left clockwise"; empty is the page's choice."""
    corner_given: int | None = None
    """How many of its corners are given; empty is as many as there are at most."""
    asked: str = ""
    """Which of the five questions of a lecture is answered, "1" to "5"; empty is the first."""
    unrolled: int = 8
    """Over how many tokens a network is unrolled in time."""
    stacked: int = 2
    """How many layers it has there."""
    timed: bool = False
    """Time one pass of a recurrent network and of a transformer, here and now."""
    n_queries: int = 3
    n_keys: int = 5
    n_values: int = 5
    d_query: int = 4
    d_key: int = 4
    d_value: int = 6
    d_stream: int = 8
    """The shapes that attention is tried with: how many queries, keys and values, how wide each is, and the stream."""
    deep: int = 6
    """Layers of the model that is trained with and without residual connections."""
    deep_rate: str = ""
    """The learning rate of both; empty is the larger one."""
    parted: bool = False
    """Train both, here and now."""
    trio: str = ""
    """Whose three models of the bottleneck are shown: "shipped" or "own"; empty are the shipped ones."""
    spoken: int | None = None
    """The length at which the three are looked at place by place; empty is the longest."""
    health: str = ""
    """Which law of the health strip is explained, as "probe"; empty is none."""
    walk_start: str = "1"
    """The corner, counted from 1, at which the walk begins whose context vector is worked out by hand."""
    walk_turn: str = ""
    """Which way round it goes; empty is clockwise."""
    walk_given: int = 4
    """How many of its corners are given."""
    walk_target: str = "1"
    """Which of the corners that are to be said, counted from 1."""
    hand: str = ""
    """Which step on the way to the context vector is shown; empty is the first."""
    scores: str = ""
    """The scores put on its vectors; empty are those that the model was trained with."""
    scores_trained: str = ""
    """The scores that this model was trained with; empty is the page's choice."""
    stretch: float = 1.0
    """By how much its query is made longer."""
    turned: int = 0
    """By how many degrees its query is turned, anticlockwise."""
    # the page on which a model writes
    prompt: str = ""
    """What it goes on with, its line ends as "↵"; empty is the page's suggestion."""
    temperature: float = 0.8
    top_k: int = 0
    """From so many of the likeliest tokens it draws; 0 is all."""
    top_p: float = 1.0
    """From the fewest of the likeliest tokens that together have this probability."""
    writing_seed: int = 0
    written: int = 120
    """How many tokens it writes."""
    word: int | None = None
    """The token whose alternatives are shown, its position counted from 1; empty is the last word written."""
    # the page of reading
    read_what: str = ""
    """What is read: "input" for what was typed; empty is a passage that was held out."""
    read_work: str = ""
    """From which work, counted from "1"; empty is the first."""
    read_place: int = 1
    """Where in it the passage stands, counted from 1."""
    read_word: int | None = None
    """The token that is looked at, counted from 1; empty is the most surprising."""
    repeated: str = ""
    """What is read twice: "passages" for stretches of the text; empty is random tokens."""
    # what would be trained next
    task: str = "reverse"
    architecture: str = ""
    positions: str = "learned"
    train_mask: str = ""
    layers: int = 2
    heads: int = 4
    width: int = 64
    length: int = 8
    min_length: int | None = None
    symbols: int = 10
    text: str = ""
    """The text that is read, by its key; empty is Shakespeare, or the first that is here."""
    split: str = "words"
    min_count: int = 5
    """How often a token must stand in it to be known."""
    seed: int = 0
    device: str = "auto"
    max_steps: int = 2000
    learning_rate: float = 5e-3
    batch: int = 32
    feed_forward: bool = True
    gain: float = 1.0
    attention: str = "scaled-dot"
    affine: bool = True
    teacher_forcing: float = 1.0
    pace: str = FAST

    def with_(self, **changes: object) -> Settings:
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def to_query(self) -> dict[str, str]:
        """The URL's parameters: only what differs from the defaults."""
        query = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                query[field.name] = str(int(value)) if isinstance(value, bool) else str(value)
        return query


# --- reads a link: a URL's parameters as the view that they describe, and what of them cannot be used

PASSAGES = ("input", "against", "other", "prompt")
"""What may be a stretch of a text, with whatever kinds of blanks it has."""


def from_query(query: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Read a URL's parameters. What cannot be used is left at its default and named in the notices."""
    values: dict[str, object] = {}
    notices = []
    kinds = {field.name: field for field in dataclasses.fields(Settings)}
    for name, text in query.items():
        if name not in kinds:
            notices.append(f"The link's “{_short(name)}” means nothing here and was left out.")
            continue
        try:
            values[name] = _read(name, str(kinds[name].type), text)
        except ValueError:
            notices.append(f"The link's {name}={_short(text)} cannot be used; the default stands instead.")
    return Settings(**values), notices  # type: ignore[arg-type]


def _read(name: str, kind: str, text: str) -> object:
    if kind == "bool":
        if text not in ("0", "1"):
            raise ValueError(text)
        return text == "1"
    if kind.startswith(("int", "float")):
        low, high = LIMITS.get(name, (1, 65_536))
        value = float(text) if kind == "float" else int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value
    readable = text.isprintable() or (name in PASSAGES and all(c.isprintable() or c.isspace() for c in text))
    if len(text) > (LONGER.get(name, MAX_TEXT)) or not readable:
        raise ValueError(text)
    return text


def _short(text: str) -> str:
    """A foreign text, made safe to repeat in a notice."""
    kept = "".join(c for c in text if c.isalnum() or c in " .,-_:")[:30]
    return kept or "…"


JOINT, OFF = "~", "-"


_NAMES = [field.name for field in dataclasses.fields(Settings)]
AROUND = ("run", "step", "input", *_NAMES[_NAMES.index("task") :])
"""What stands around the page, in the sidebar: the model, the input, and what would be trained next."""

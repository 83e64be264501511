"""Settings: the whole view as one small frozen record, and its way into the URL and back.

Controls read and write it, pages receive it, and no widget's state is the only copy of anything. What equals its
default is left out of the URL; what a URL says that cannot be used falls back, with a notice. What a field may be, and
whether it is forgotten when another model is opened, stands where it is declared.

Links are read by hand: Streamlit binds a parameter to a widget, and most of a view has none; a library that checks
records (pydantic) would refuse a whole link for one bad value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FAST, BY_KEY = "fast", "key"
PACES = (FAST, "50", "20", "10", "5", "2", "1", BY_KEY)
"""How fast a training may go: as it can, so many steps a second, or one by one."""
MOST_WIDE, MOST_LONG = 512, 200
"""Dimensions and positions of an encoding that are drawn: a matrix of them is 0.8 MB for the browser."""
MOST_SEED = 2**31 - 1
LONG_TEXT, MANY_CELLS = 8192, 12_000
"""Letters of an input of thousands of symbols, and of what was painted. A server takes an address of 64 kB."""
JOINT, OFF = "~", "-"
"""What stands between two edits in a link, and before one that is switched off."""


def number_field(default: float | None, low: float = 1, high: float = 65_536, *, of_model: bool = False) -> Any:
    """A field that is a number, and its limits. One `of_model` means nothing in another model."""
    return dataclasses.field(default=default, metadata={"limits": (low, high), "of_model": of_model})


def text_field(default: str = "", *, longest: int = 200, passage: bool = False, of_model: bool = False) -> Any:
    """A field that is a text, and the most letters of it. A `passage` may have line ends and blanks of any kind."""
    metadata = {"longest": longest, "passage": passage, "of_model": of_model}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """What is looked at, and what would be trained next. Texts are checked against the menus by whoever uses them."""

    # what is looked at
    sidebar: bool = True
    """Is the sidebar open when a link is followed?"""
    lecture: str = text_field()
    """The lecture that is given or followed, by the name of its file; empty is none."""
    lecture_step: int = number_field(1, 1, 60)
    """Its step, counted from 1."""
    exploring: bool = False
    """Show every control, and what one likes; the lecture waits at its step."""
    exercise: str = text_field()
    """The exercise that is tried, by the name of its file; empty is none."""
    room: str = text_field()
    """The room of a lecture that this reader has come from, and may go back to; empty is none."""
    predict: bool = False
    """Cover each page until one has said what one expects to see."""
    run: str = text_field()
    """The run's folder name, or "compiled"; empty is the first of the menu."""
    step: int | None = number_field(None, 0, 10_000_000, of_model=True)
    """The snapshot; empty is the last."""
    input: str = text_field(longest=LONG_TEXT, passage=True)
    """The question, as typed; empty is the model's own sample."""
    head: str = text_field(of_model=True)
    """Which head is enlarged, as "decoder.1.self_attention.3"; empty is the one that looks most at the answer."""
    query: int | None = number_field(None, of_model=True)
    """The query that is looked at, its position counted from 1; empty is the page's choice."""
    key: int | None = number_field(None, of_model=True)
    """The key whose numbers are said inside a head, its position counted from 1; empty is the one looked at most."""
    operation: str = text_field(of_model=True)
    """Which step of attention is shown inside a head; empty is the first."""
    mean: bool = False
    """The mean over many sequences instead of this one."""
    by_row: bool = False
    """Colour each row of a pattern from 0 to its own greatest value, in place of 0 to 1."""
    together: bool = False
    """Show the same passage under each head that prefers a kind of token."""
    against: str = text_field(longest=LONG_TEXT, passage=True)
    """What the head in focus is compared with: "head:decoder.0.self_attention.1", "step:40", "run:…", "input:3 1 4"."""
    window: str = text_field()
    """Where in a long input the window is centred, "query,key" from 1; empty is the page's choice."""
    zoom: str = text_field()
    """How near the machine is looked at: "block" or "head"; empty is the whole."""
    box: str = text_field(of_model=True)
    """Which of its boxes is spoken of, as "decoder.0.feed_forward"; empty is the first."""
    tinted: bool = False
    """Tint the boxes of the machine by how far training moved them."""
    part: str = text_field()
    """Which part of a block is looked into: "heads", "norm" and so on; empty is the first."""
    block: str = text_field(of_model=True)
    """Which block is looked into, as "decoder.1"; empty is the first one."""
    sublayer: str = text_field(of_model=True)
    """Which of its sub-layers, as "feed_forward"; empty is the first."""
    joint: str = text_field()
    """Which step of splitting into heads and joining them is shown: "project", "split" …; empty is the first."""
    wide: bool = False
    """Split 512 numbers into 8 heads of 64, untrained, in place of the chosen model's."""
    wide_query: int = number_field(60, 1, 60)
    """The token that is looked at there, its position counted from 1."""
    norm_layers: int = number_field(12, 2, 12)
    """Layers of the untrained models whose gradients are compared by where their norm stands."""
    stage: str = text_field(of_model=True)
    """Which stage of the residual stream is looked at, as "decoder.1.resid_mid"; empty is where the answer settles."""
    dropped: float | None = number_field(None, 0.0, 0.9, of_model=True)
    """The dropout rate of the passes in training mode; empty is the model's own, or the page's where it has none."""
    dropout_seed: int = number_field(0, 0, MOST_SEED)
    """What decides which numbers are dropped."""
    softened: float = number_field(1.0, 0.1, 5.0)
    """The temperature of the softmax from logits to words."""
    likeliest: bool = False
    """Colour the stages by the likeliest token's probability instead of the right one's."""
    through: int | None = number_field(None, 0, 10_000, of_model=True)
    """Through which layer attention is rolled out, from 0; empty is the last."""
    poked: int | None = number_field(None, of_model=True)
    """The token that is poked, its slot counted from 1, the source's first; empty is the page's choice."""
    replacement: str = text_field(of_model=True)
    """The symbol that is put in its place; empty is every other in turn."""
    beside: str = text_field()
    """Which attention stands beside what moves: the rollout, or the head in focus; empty is the rollout."""
    across: str = text_field()
    """The metric of heads that is drawn from left to right; empty is the page's choice."""
    up: str = text_field()
    """The one that is drawn upwards."""
    removal: bool = False
    """Remove each head in turn, even where that takes long."""
    mask: str = text_field(longest=MANY_CELLS, of_model=True)
    """The mask that is tried, as the library writes it; empty is the page's first suggestion."""
    target: int | None = number_field(None, of_model=True)
    """The output whose ways are shown, its position counted from 1; empty is the first of the answer."""
    live: bool = True
    """Train a small model anew whenever the mask changes."""
    retrain: str = text_field(longest=MANY_CELLS, of_model=True)
    """The mask under which a small model was asked for by hand."""
    edits: str = text_field(longest=MANY_CELLS, of_model=True)
    """The edits that are tried, as the library writes them, joined by "~"; one that is switched off begins with "-"."""
    paired: bool = False
    """Remove the heads two at a time, and show which belong together."""
    other: str = text_field(longest=LONG_TEXT, passage=True, of_model=True)
    """The second input of activation patching, as typed; empty is the input with its first symbol changed."""
    encoding: str = text_field(of_model=True)
    """The positional encoding that is drawn; empty is the model's own."""
    order: str = text_field()
    """What a model is told about its positions, as the library writes an edit: "places-shift:3"; empty is the page's
    choice."""
    dimensions: str = text_field(of_model=True)
    """The dimensions drawn as waves, "0,1,8"; empty is the page's choice."""
    pe_width: int | None = number_field(None, 2, MOST_WIDE, of_model=True)
    """The width of an encoding that follows from a formula; empty is the model's own."""
    pe_length: int | None = number_field(None, 1, MOST_LONG, of_model=True)
    """How many positions are drawn; empty is as many as the model reads."""
    pe_heads: int | None = number_field(None, 1, 64, of_model=True)
    """How many heads share ALiBi's slopes; empty is as many as the model has."""
    slope: int = number_field(0, 0, 63, of_model=True)
    """Which of these heads is looked at."""
    base: int = number_field(10_000, 10, 1_000_000)
    """The base of the wavelengths."""
    cursor: int | None = number_field(None, 1, MOST_LONG, of_model=True)
    """The position that is looked at, from 1; empty is the middle."""
    sum_column: int | None = number_field(None, 0, 65_536, of_model=True)
    """The dimension in which token and position are added up in numbers; empty is 0."""
    shift: int = number_field(1, 1, MOST_LONG - 1, of_model=True)
    """The step whose rotation is shown, in positions."""
    scaled: int | None = number_field(None, 0, 1, of_model=True)
    """Token embeddings times sqrt(d_model), 1, or as they are stored, 0; empty is what the model does."""
    sequences: int = number_field(4096)
    """How many fresh sequences an accuracy is measured on."""
    measured_length: int | None = number_field(None)
    """The length of these sequences; empty is the task's greatest."""
    depth: str = text_field()
    """By what the accuracy is taken apart: "training", "head", "symbol" …; empty is the page's choice."""
    confused: int = number_field(0, 0, 65_536)
    """The target whose confusions are counted, its position counted from 1; 0 is the whole answer."""
    answer: bool = False
    """Train a small model the way the page suggests, on the spot."""
    patience: int = number_field(2000, 1, 32_000)
    """Steps that such a training may take."""
    compare: str = text_field(longest=1000)
    """The runs that are compared, with commas between them; empty is the page's suggestion."""
    measure: str = text_field()
    """What is compared: accuracy, or loss."""
    clock: str = text_field()
    """By what: steps, or seconds."""
    rows_filter: str = text_field()
    """Words that stand in the rows of the table of runs that are listed; empty is all rows."""
    rows_by: str = text_field()
    """The column by which all of them are sorted; empty is when they were made."""
    rows_ascending: bool = False
    """Sort from the smallest to the greatest."""
    rows_page: int = number_field(1, 1, 100_000)
    """The page of this table, where it has more than one."""
    measurement: str = text_field()
    """Whose measurement over lengths is shown: "shipped" or "own"; empty is the shipped one."""
    longer: int | None = number_field(None, 1, 192)
    """The length whose places are shown one by one; empty is the page's choice."""
    raced: bool = False
    """Race the positional encodings against each other, here and now."""
    sweep_seeds: int = number_field(64, 1, 1000)
    """From how many seeds a population is trained."""
    sweep_over: str = text_field("positions")
    """The settings that vary in it, with commas between them; empty is none."""
    # the page of populations
    population: str = text_field()
    """The population, by its folder's name; empty is the first."""
    combination: str = text_field(longest=MANY_CELLS)
    """Which of its settings is looked at closely, as "positions=learned,n_heads=4"; empty is the first."""
    phase_across: str = text_field()
    """The setting that is drawn from left to right against another; empty is the page's choice."""
    phase_up: str = text_field()
    """The other one, drawn downwards."""
    phase_colour: str = text_field()
    """What the colour says there: "share" solved, or "steps" in the median; empty is the share."""
    # the page of square corners
    corner_attention: str = text_field()
    """How the GRU looks back at the corners given; empty is the page's choice."""
    corner_affine: bool = True
    """Give that attention affine maps."""
    corner_width: int = number_field(4, 1, 32)
    """Of its hidden states."""
    corner_most: int = number_field(2, 2, 6)
    """Corners given at most; from 2 on."""
    corner_noise: float = number_field(0.1, 0.0, 0.5)
    """Standard deviation of each coordinate."""
    corner_forcing: float = number_field(0.5, 0.0, 1.0)
    """Probability of reading the true corner while it trains."""
    corner_seed: int = number_field(0, 0, MOST_SEED)
    corner_step: int | None = number_field(None, 0, 100_000)
    """The step of its training; empty is the last."""
    corner_walk: str = text_field()
    """The walk that is looked at, "lower left clockwise"; empty is the page's choice."""
    corner_given: int | None = number_field(None)
    """How many of its corners are given; empty is as many as there are at most."""
    corner_part: str = text_field()
    """What is shown of them: "walks", or "forcing" for what teacher forcing feeds; empty is the page's choice."""
    corner_case: str = text_field()
    """Which measurement of teacher forcing is shown; empty is the page's choice."""
    corner_roll: str = text_field()
    """Which step of the walk is shown gate by gate, "e1" or "d2"; empty is the encoder's first."""
    asked: str = text_field()
    """Which of the five questions of a lecture is answered, "1" to "5"; empty is the first."""
    unrolled: int = number_field(8, 2, 32)
    """Over how many tokens a network is unrolled in time."""
    stacked: int = number_field(2, 1, 6)
    """How many layers it has there."""
    timed: bool = False
    """Time one pass of a recurrent network and of a transformer, here and now."""
    n_queries: int = number_field(3, 1, 12)
    n_keys: int = number_field(5, 1, 12)
    n_values: int = number_field(5, 1, 12)
    d_query: int = number_field(4, 1, 12)
    d_key: int = number_field(4, 1, 12)
    d_value: int = number_field(6, 1, 12)
    d_stream: int = number_field(8, 1, 64)
    """The shapes that attention is tried with: how many queries, keys and values, how wide each is, and the stream."""
    deep: int = number_field(6, 1, 8)
    """Layers of the model that is trained with and without residual connections."""
    deep_rate: str = text_field()
    """The learning rate of both; empty is the larger one."""
    parted: bool = False
    """Train both, here and now."""
    trio: str = text_field()
    """Whose three models of the bottleneck are shown: "shipped" or "own"; empty are the shipped ones."""
    spoken: int | None = number_field(None, 1, 64)
    """The length at which the three are looked at place by place; empty is the longest."""
    health: str = text_field()
    """Which law of the health strip is explained, as "probe"; empty is none."""
    walk_start: str = text_field()
    """The corner, from "1", at which the walk begins whose context vector is worked out; empty is the page's choice."""
    walk_turn: str = text_field()
    """Which way round it goes; empty is clockwise."""
    walk_given: int = number_field(2, 2, 6)
    """How many of its corners are given."""
    walk_target: str = text_field("1")
    """Which of the corners that are to be said, counted from 1."""
    hand: str = text_field()
    """Which step on the way to the context vector is shown; empty is the first."""
    scores: str = text_field()
    """The scores put on its vectors; empty are those that the model was trained with."""
    scores_trained: str = text_field()
    """The scores that this model was trained with; empty is the page's choice."""
    stretch: float = number_field(1.0, 0.0, 5.0)
    """By how much its query is made longer."""
    turned: int = number_field(0, -180, 180)
    """By how many degrees its query is turned, anticlockwise."""
    # the page that checks a reader's own code; the code itself is no part of the view
    check_example: str = text_field()
    """The example that stands in its field, as "softmax-over-heads"; empty is the reader's own code."""
    check_kind: str = text_field()
    """What the code is said to be, as "attention"; empty lets the check guess."""
    # the page of tokens and windows
    cut_text: str = text_field(longest=1000, passage=True)
    """What is cut, its line ends as "↵"; empty is a passage that was held out."""
    cut_by: str = text_field()
    """Into what: "words" or "characters"; empty is what the model reads."""
    cut_window: int = number_field(8, 2, 64)
    """Tokens of a window."""
    cut_at: int = number_field(1, 1, 1000)
    """The window that is looked at, counted from 1."""
    # the page on which a model writes
    prompt: str = text_field(longest=2000, passage=True)
    """What it goes on with, its line ends as "↵"; empty is the page's suggestion."""
    temperature: float = number_field(0.8, 0.0, 2.0)
    top_k: int = number_field(0, 0, 1000)
    """From so many of the likeliest tokens it draws; 0 is all."""
    top_p: float = number_field(1.0, 0.01, 1.0)
    """From the fewest of the likeliest tokens that together have this probability."""
    writing_seed: int = number_field(0, 0, MOST_SEED)
    written: int = number_field(120, 1, 512)
    """How many tokens it writes."""
    word: int | None = number_field(None, of_model=True)
    """The token whose alternatives are shown, its position counted from 1; empty is the last word written."""
    # the page of reading
    read_what: str = text_field()
    """What is read: "input" for what was typed; empty is a passage that was held out."""
    read_work: str = text_field(of_model=True)
    """From which work, counted from "1"; empty is the first."""
    read_place: int = number_field(1, of_model=True)
    """Where in it the passage stands, counted from 1."""
    read_word: int | None = number_field(None, of_model=True)
    """The token that is looked at, counted from 1; empty is the most surprising."""
    repeated: str = text_field()
    """What is read twice: "passages" for stretches of the text; empty is random tokens."""
    # the page of mistakes
    mistake: str = text_field()
    """The mistake that is shown, by its name in the gallery; empty is the page's choice."""
    mistake_seed: int = number_field(0, 0, 2)
    """The seed that both models of it are trained with: 0, 1 or 2."""
    riddle: int = number_field(0, 0, MOST_SEED)
    """The number from which a hidden mistake is drawn; 0 is none: the gallery is shown."""
    # the pages about a model that is not ours
    imported: str = text_field()
    """The model, by its name on the list; empty is the first."""
    imported_input: str = text_field(longest=LONG_TEXT, passage=True)
    """What it reads, as typed; empty is the page's suggestion."""
    imported_second: str = text_field(longest=LONG_TEXT, passage=True)
    """What the decoder of an encoder-decoder reads."""
    removed: str = text_field(longest=LONG_TEXT, of_model=True)
    """The heads that are removed from it, as "decoder.0.self_attention.3,…"."""
    seen_mask: str = text_field(longest=MANY_CELLS, of_model=True)
    """The mask that its self-attention is given, as the library writes it; empty is its own."""
    # what would be trained next
    task: str = text_field()
    """What is to be learned; empty is what suits the model that is looked at: a text where it reads one, else a
    reversal."""
    architecture: str = text_field()
    positions: str = text_field("learned")
    train_mask: str = text_field(longest=MANY_CELLS)
    norm_kind: str = text_field("layer")
    layers: int = number_field(2, 1, 12)
    heads: int = number_field(4, 1, 12)
    width: int = number_field(64, 2, 512)
    length: int = number_field(8, 1, 512)
    min_length: int | None = number_field(None, 1, 64)
    symbols: int = number_field(10, 2, 36)
    text: str = text_field()
    """The text that is read, by its key; empty is Shakespeare, or the first that is here."""
    split: str = text_field("words")
    min_count: int = number_field(5, 1, 1000)
    """How often a token must stand in it to be known."""
    seed: int = number_field(0, 0, MOST_SEED)
    device: str = text_field("auto")
    max_steps: int = number_field(2000, 1, 100_000)
    learning_rate: float = number_field(5e-3, 1e-5, 1.0)
    batch: int = number_field(32, 1, 4096)
    feed_forward: bool = True
    gain: float = number_field(1.0, 0.0, 10.0)
    attention: str = text_field("scaled-dot")
    affine: bool = True
    teacher_forcing: float = number_field(1.0, 0.0, 1.0)
    precision: str = text_field("float32")
    """Of a text's matrix products."""
    many_times: bool = False
    """Is a text learned as suits one that is read many times: with dropout and weight decay?"""
    pace: str = text_field(FAST)

    def with_(self, **changes: object) -> Settings:
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def to_query(self) -> dict[str, str]:
        """The URL's parameters: only what differs from the defaults."""
        query = {}
        for name, field in FIELDS.items():
            value = getattr(self, name)
            if value != field.default:
                query[name] = str(int(value)) if isinstance(value, bool) else str(value)
        return query


FIELDS = {field.name: field for field in dataclasses.fields(Settings)}
OF_MODEL = {name: field.default for name, field in FIELDS.items() if field.metadata.get("of_model")}
"""What is chosen inside a model, and means nothing in another: field and default."""
OF_TRAINING = tuple(FIELDS)[list(FIELDS).index("task") :]
"""What would be trained next, and how."""
AROUND = (
    *("lecture", "lecture_step", "exercise", "run", "step", "input", "imported", "imported_input", "imported_second"),
    *OF_TRAINING,
)
"""What stands around the page: the words of a lecture or an exercise, and in the sidebar the model, the input, what
would be trained."""


def limits(name: str) -> tuple[float, float]:
    """The least and the greatest value of a number of the view."""
    low, high = FIELDS[name].metadata["limits"]
    return low, high


def longest(name: str) -> int:
    """The most letters of a text of the view."""
    return int(FIELDS[name].metadata["longest"])


def from_query(query: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Read a URL's parameters. What cannot be used is left at its default and named in the notices."""
    values: dict[str, object] = {}
    notices = []
    for name, text in query.items():
        if name not in FIELDS:
            notices.append(f"The link's “{_short(name)}” means nothing here and was left out.")
            continue
        try:
            values[name] = _read(FIELDS[name], text)
        except ValueError:
            notices.append(f"The link's {name}={_short(text)} cannot be used; the default stands instead.")
    return Settings(**values), notices  # type: ignore[arg-type]


def _read(field: dataclasses.Field[Any], text: str) -> object:
    """A field's value, as a URL has it. Raises ValueError for one that it cannot have."""
    kind, known = str(field.type), field.metadata
    if kind == "bool":
        if text not in ("0", "1"):
            raise ValueError(text)
        return text == "1"
    if "limits" in known:
        low, high = known["limits"]
        value = float(text) if kind.startswith("float") else int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value
    readable = text.isprintable() or (known["passage"] and all(c.isprintable() or c.isspace() for c in text))
    if len(text) > known["longest"] or not readable:
        raise ValueError(text)
    return text


def _short(text: str) -> str:
    """A foreign text, made safe to repeat in a notice."""
    kept = "".join(c for c in text if c.isalnum() or c in " .,-_:")[:30]
    return kept or "…"

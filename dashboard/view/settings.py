"""Settings: what of the view the frame and several pages share, and what would be trained next.

Controls read and write it, pages receive it, and no widget's state is the only copy of anything. What one page alone
needs it declares beside itself, in a file `settings.py`; the whole view is `View` of `link.py`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Self, TypeVar

from dashboard.view.fields import LONG_TEXT, MANY_CELLS, MOST_SEED, number_field, text_field

Own = TypeVar("Own")

FAST, BY_KEY = "fast", "key"
PACES = (FAST, "50", "20", "10", "5", "2", "1", BY_KEY)
"""How fast a training may go: as it can, so many steps a second, or one by one."""
JOINT, OFF = "~", "-"
"""What stands between two edits in a link, and before one that is switched off."""


@dataclass(frozen=True)
class Settings:
    """What is looked at on several pages. Texts are checked against the menus by whoever uses them."""

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
    by_row: bool = False
    """Colour each row of a pattern from 0 to its own greatest value, in place of 0 to 1."""
    against: str = text_field(longest=LONG_TEXT, passage=True)
    """What the head in focus is compared with: "head:decoder.0.self_attention.1", "step:40", "run:…", "input:3 1 4"."""
    window: str = text_field()
    """Where in a long input the window is centred, "query,key" from 1; empty is the page's choice."""
    part: str = text_field()
    """Which part of a block is looked into: "heads", "norm" and so on; empty is the first."""
    block: str = text_field(of_model=True)
    """Which block is looked into, as "decoder.1"; empty is the first one."""
    sublayer: str = text_field(of_model=True)
    """Which of its sub-layers, as "feed_forward"; empty is the first."""
    joint: str = text_field()
    """Which step of splitting into heads and joining them is shown: "project", "split" …; empty is the first."""
    stage: str = text_field(of_model=True)
    """Which stage of the residual stream is looked at, as "decoder.1.resid_mid"; empty is where the answer settles."""
    through: int | None = number_field(None, 0, 10_000, of_model=True)
    """Through which layer attention is rolled out, from 0; empty is the last."""
    across: str = text_field()
    """The metric of heads that is drawn from left to right; empty is the page's choice."""
    up: str = text_field()
    """The one that is drawn upwards."""
    removal: bool = False
    """Remove each head in turn, even where that takes long."""
    mask: str = text_field(longest=MANY_CELLS, of_model=True)
    """The mask that is tried, as the library writes it; empty is the page's first suggestion."""
    edits: str = text_field(longest=MANY_CELLS, of_model=True)
    """The edits that are tried, as the library writes them, joined by "~"; one that is switched off begins with "-"."""
    sequences: int = number_field(4096)
    """How many fresh sequences an accuracy is measured on."""
    measured_length: int | None = number_field(None)
    """The length of these sequences; empty is the task's greatest."""
    patience: int = number_field(2000, 1, 32_000)
    """Steps that a small model, trained on the spot, may take."""
    compare: str = text_field(longest=1000)
    """The runs that are compared, with commas between them; empty is the page's suggestion."""
    # what a page shows that others link to
    population: str = text_field()
    """The population, by its folder's name; empty is the first."""
    combination: str = text_field(longest=MANY_CELLS)
    """Which of the population's settings is looked at closely, as "positions=learned,n_heads=4"; empty is the first."""
    health: str = text_field()
    """Which law of the health strip is explained, as "probe"; empty is none."""
    mistake: str = text_field()
    """The mistake that is shown, by its name in the gallery; empty is the page's choice."""
    riddle: int = number_field(0, 0, MOST_SEED)
    """The number from which a hidden mistake is drawn; 0 is none: the gallery is shown."""
    # the pages about a model that is not ours
    imported: str = text_field()
    """The model, by its name on the list; empty is the first."""
    imported_input: str = text_field(longest=LONG_TEXT, passage=True)
    """What it reads, as typed; empty is the page's suggestion."""
    imported_second: str = text_field(longest=LONG_TEXT, passage=True)
    """What the decoder of an encoder-decoder reads."""
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

    def with_(self, **changes: object) -> Self:
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def of(self, kind: type[Own]) -> Own:
        """The same view as what a page keeps for itself. Raises TypeError for a record that is not part of it."""
        if not isinstance(self, kind):
            raise TypeError(f"{kind.__name__} is no part of a view: a page's own settings are found in its settings.py")
        return self

    def to_query(self) -> dict[str, str]:
        """The URL's parameters: only what differs from the defaults."""
        query = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                query[field.name] = str(int(value)) if isinstance(value, bool) else str(value)
        return query


_NAMES = tuple(field.name for field in dataclasses.fields(Settings))
OF_TRAINING = _NAMES[_NAMES.index("task") :]
"""What would be trained next, and how."""
AROUND = (
    *("lecture", "lecture_step", "exercise", "run", "step", "input", "imported", "imported_input", "imported_second"),
    *OF_TRAINING,
)
"""What stands around the page: the words of a lecture or an exercise, and in the sidebar the model, the input, what
would be trained."""

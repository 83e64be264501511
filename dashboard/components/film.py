"""Plays how a run came to be: all heads, the loss and the accuracy by position, at a playhead, without a round trip."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dashboard import theme
from dashboard.components.payload import Body, Distinct, pack
from dashboard.components.registration import nothing, renderer
from transformer.analysis.film.film import quantise, thinned

MOST_BYTES = 2_000_000
"""Patterns beyond this are thinned, and the line under the film says so."""
MOST_POINTS = 4000
"""A longer loss curve is thinned; its last point always stays."""
LENGTH = 8000
"""Milliseconds of a film at normal speed, however many steps it has."""
FEW_STOPS, MANY_STOPS = 12, 40
"""With fewer kept steps than this, the playhead stops at measured losses too, about so many."""

HTML = """
<div class="film" data-state="empty">
  <p class="replay" hidden></p>
  <div class="stage" role="application" tabindex="0" aria-describedby="film-help">
    <canvas class="base"></canvas>
    <canvas class="overlay"></canvas>
  </div>
  <div class="transport" role="group" aria-label="Player" hidden>
    <div class="line">
      <input class="scrubber" type="range" min="0" max="0" value="0" step="1" aria-label="Step of training">
      <div class="ticks" aria-hidden="true"></div>
      <button class="moment" type="button" hidden></button>
    </div>
    <div class="controls">
      <button class="back" type="button" aria-label="Step back" title="Step back (←)"></button>
      <button class="play" type="button" aria-label="Play" title="Play (Space)"></button>
      <button class="forward" type="button" aria-label="Step forward" title="Step forward (→)"></button>
      <output class="now"></output>
      <div class="speeds" role="group" aria-label="Speed">
        <button type="button" data-speed="0.5" aria-pressed="false">0.5×</button>
        <button type="button" data-speed="1" aria-pressed="true">1×</button>
        <button type="button" data-speed="2" aria-pressed="false">2×</button>
      </div>
      <button class="loop" type="button" aria-pressed="false">Loop</button>
      <button class="use" type="button" hidden></button>
    </div>
  </div>
  <p class="sentence" role="status" data-hint="Point at a cell, at the loss or at a bar to read it."></p>
  <p class="note"></p>
  <p class="help" id="film-help" hidden>Space plays and pauses; the arrow keys step; Home and End go to either end.
  Point at a cell, at the loss or at a bar to read it.</p>
</div>
"""


@dataclass(frozen=True, eq=False)
class Track:
    """One head's patterns through the film, with its place; as `head_grid.Panel`, one pattern a picture."""

    name: str
    group: str
    row: int
    column: int
    patterns: np.ndarray
    """[picture, query, key], float 0 to 1 or uint8 in steps of 1/255."""
    mask: np.ndarray | None
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    called: str = ""
    """What the pointer says of it; empty is "Head" and its name."""


@dataclass(frozen=True)
class Moment:
    """A step worth marking on the scrubber, in few words."""

    step: int
    words: str


@dataclass(frozen=True, eq=False)
class Reel:
    """What a film shows. Each series has its own steps, ascending; any of them may still be empty."""

    pattern_steps: Sequence[int]
    tracks: Sequence[Track]
    loss_steps: np.ndarray
    loss: np.ndarray
    floor: float | None
    """The least loss that is possible; None where nobody knows."""
    chance_loss: float
    loss_axes: tuple[tuple[float, float], tuple[float, float]]
    """From where to where the axes of the loss go: of steps, and of nats."""
    solved_at: int | None
    accuracy_steps: Sequence[int]
    accuracy: np.ndarray
    """float [measurement, target]"""
    sequences: Sequence[int]
    """On how many sequences each measurement was taken."""
    names: Sequence[str]
    groups: Sequence[str]
    chance: float
    ceiling: np.ndarray
    """float [target]; nan where nobody knows."""
    called: Sequence[str] = ()
    """What the pointer says of each target; its position and its name, where nothing else is said."""
    moment: Moment | None = None
    focus: int | None = None
    """The number of the head that is outlined."""
    kept: Sequence[int] = ()
    """Steps whose weights can be looked at: what "use this step" chooses from."""
    guess: str = "guessing"
    """What the loss `chance_loss` is called."""
    hit: str = "chance"
    """What the accuracy `chance` is called."""
    held_out: tuple[np.ndarray, np.ndarray] | None = None
    """The loss on what was held out of a text: its steps, and nats at each."""
    flow: bool = False
    """Let the heads stand in their order, as many abreast as makes them largest: rows and columns mean nothing."""


def film_player(
    reel: Reel,
    *,
    key: str,
    alt: str,
    height: int = 430,
    live: bool = False,
    on_step: Callable[[], None] | None = None,
    on_focus: Callable[[], None] | None = None,
    on_end: Callable[[], None] | None = None,
) -> int | None:
    """Show the film, and return the step that was chosen for every page in this rerun, if any.

    In `on_step` this step is `st.session_state[key]["step"]`, one of `reel.kept`; without it nothing can be chosen. In
    `on_focus` the number of the head that was clicked is `st.session_state[key]["focus"]`. With `live` there are no
    controls: the newest of everything is shown, as soon as it comes. `alt` says in words what is to be seen; `height`
    is that of the stage, in pixels, where the width allows it. With `on_end` it is a replay: it plays once, without
    controls, is marked as one, and calls this at its end, at a key or at a click; at once where less motion is wanted.
    """
    mount = renderer("film", html=HTML, isolate_styles=True)
    replay = on_end is not None
    data = pack_reel(reel, alt=alt, height=height, live=live, uses=on_step is not None, replay=replay)
    result = mount(
        key=key,
        data=data,
        on_step_change=on_step or nothing,
        on_focus_change=on_focus or nothing,
        on_end_change=on_end or nothing,
    )
    step: int | None = result.step
    return step


def pack_reel(
    reel: Reel, *, alt: str, height: int = 430, live: bool = False, uses: bool = False, replay: bool = False
) -> bytes:
    """The message for the browser. The header says where each array begins in the body, in bytes."""
    _check(reel, alt, height)
    body, labels = Body(), Distinct()
    pictures = _pictures(reel)
    points = thinned(len(reel.loss), MOST_POINTS)
    panels = [_pack_track(track, pictures, body, labels) for track in reel.tracks]
    header = {
        "alt": alt,
        "height": height,
        "live": live,
        "replay": replay,
        "length": LENGTH,
        "uses": uses and bool(len(reel.kept)),
        "note": _note(reel, pictures),
        "looks": {name: _look(dark, body) for name, dark in (("light", False), ("dark", True))},
        "panels": panels,
        "labels": labels.values,
        "patternSteps": [int(reel.pattern_steps[i]) for i in pictures],
        "loss": {
            "count": len(points),
            "steps": body.add(np.asarray(reel.loss_steps, dtype="<f4")[points].tobytes()),
            "values": body.add(np.asarray(reel.loss, dtype="<f4")[points].tobytes()),
            "axes": [[float(end) for end in axis] for axis in reel.loss_axes],
            "floor": reel.floor,
            "guessing": float(reel.chance_loss),
            "guess": reel.guess,
            "heldOut": []
            if reel.held_out is None
            else [[int(x), float(y)] for x, y in zip(*reel.held_out, strict=True)],
            "solvedAt": reel.solved_at,
        },
        "accuracySteps": [int(step) for step in reel.accuracy_steps],
        "accuracy": body.add(np.ascontiguousarray(reel.accuracy, dtype="<f4").tobytes()),
        "sequences": [int(count) for count in reel.sequences],
        "names": list(reel.names),
        "groups": list(reel.groups),
        "chance": float(reel.chance),
        "hit": reel.hit,
        "ceiling": [None if math.isnan(value) else float(value) for value in reel.ceiling],
        "called": list(reel.called) or [f"Position {i} ({name})" for i, name in enumerate(reel.names, start=1)],
        "moment": None if reel.moment is None else asdict(reel.moment),
        "focus": reel.focus,
        "kept": [int(step) for step in reel.kept],
        "stops": stops(reel, pictures),
        "flow": reel.flow,
    }
    return pack(header, bytes(body.data))


def stops(reel: Reel, pictures: Sequence[int]) -> list[int]:
    """The steps at which the playhead can stand: those of the pictures and measurements, and of losses when few."""
    found = {int(reel.pattern_steps[i]) for i in pictures} | {int(step) for step in reel.accuracy_steps}
    if reel.moment is not None:
        found.add(reel.moment.step)
    if len(found) < FEW_STOPS and len(reel.loss_steps):
        last = int(reel.loss_steps[-1])
        spaced = np.expm1(np.linspace(0, math.log1p(last), MANY_STOPS)).round()
        found |= {int(step) for step in reel.loss_steps[np.isin(reel.loss_steps, spaced)]} | {last}
    return sorted(found)


def _pictures(reel: Reel) -> list[int]:
    """Which pictures travel: all, or as many as MOST_BYTES hold, with the first, the last and the moment's own."""
    cells = sum(math.prod(track.patterns.shape[1:]) for track in reel.tracks)
    steps = np.asarray(reel.pattern_steps)
    keep = [] if reel.moment is None else [int(i) for i in np.flatnonzero(steps == reel.moment.step)]
    return thinned(len(steps), MOST_BYTES // max(1, cells), keep)


def _note(reel: Reel, pictures: Sequence[int]) -> str:
    if len(pictures) == len(reel.pattern_steps):
        return ""
    return (
        f"The heads are shown at {len(pictures)} of {len(reel.pattern_steps)} kept steps: "
        "all of them would be too many for the browser."
    )


def _pack_track(track: Track, pictures: Sequence[int], body: Body, labels: Distinct) -> dict[str, Any]:
    _, rows, columns = track.patterns.shape
    patterns = track.patterns[pictures]
    record: dict[str, Any] = {
        "name": track.name,
        "group": track.group,
        "row": track.row,
        "column": track.column,
        "rows": rows,
        "columns": columns,
        "patterns": body.add((patterns if patterns.dtype == np.uint8 else quantise(patterns)).tobytes()),
        "queries": labels.add(track.queries),
        "keys": labels.add(track.keys),
    }
    if track.called:
        record["called"] = track.called
    if track.mask is not None and not track.mask.all():
        record["mask"] = body.add_once(np.ascontiguousarray(track.mask, dtype=np.uint8).tobytes())
    return record


def _look(dark: bool, body: Body) -> dict[str, Any]:
    """The colours of a theme; the browser knows which of the two it shows."""
    colours = theme.palette(dark)
    names = ("background", "surface", "text", "muted", "grid", "accent", "measured", "right", "chance", "ceiling")
    return {
        **{name: getattr(colours, name) for name in names},
        "forbidden": list(theme.rgb(colours.forbidden)),
        "colours": body.add(theme.pattern_colours(dark).tobytes()),
    }


def _check(reel: Reel, alt: str, height: int) -> None:
    if not alt.strip():
        raise ValueError("A film needs alt: one sentence that says in words what is to be seen.")
    if height < 200:
        raise ValueError(f"A film's height is at least 200 pixels, not {height}.")
    targets = len(reel.names)
    if len(reel.loss_steps) != len(reel.loss):
        raise ValueError(f"{len(reel.loss_steps)} steps for {len(reel.loss)} losses.")
    if np.shape(reel.accuracy) != (len(reel.accuracy_steps), targets):
        raise ValueError(f"accuracy is [measurement, target], not {list(np.shape(reel.accuracy))}.")
    if not len(reel.sequences) == len(reel.accuracy_steps):
        raise ValueError(f"{len(reel.sequences)} numbers of sequences for {len(reel.accuracy_steps)} measurements.")
    if not len(reel.groups) == len(reel.ceiling) == targets:
        raise ValueError("names, groups and ceiling have one entry a target.")
    if reel.focus is not None and not 0 <= reel.focus < len(reel.tracks):
        raise ValueError(f"focus is the number of a head, 0 to {len(reel.tracks) - 1}, not {reel.focus}.")
    for track in reel.tracks:
        places = (len(reel.pattern_steps), len(track.queries), len(track.keys))
        if track.patterns.shape != places:
            raise ValueError(f"Head {track.name}: patterns are {list(places)}, not {list(track.patterns.shape)}.")

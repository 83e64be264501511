"""The page of the film: its sentences and figures against the film itself, what it chooses, and what it gives away."""

from __future__ import annotations

import base64
import hashlib
import html
import math
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dashboard import theme
from dashboard.components.documents import colours, film_file
from dashboard.components.payload import unpack
from dashboard.figures import learning
from dashboard.parts import film as parts_film
from tests.kit.pages import ROOT, open_page, staged
from transformer import checkpoints
from transformer.analysis.film.film import Film
from transformer.analysis.heads.survey import survey
from transformer.training.runs import Run

SHIPPED = Run(ROOT / "checkpoints" / "reverse")


def film_of(run: Run) -> Film:
    return Film.load(run.folder / "film.npz")


@pytest.fixture
def run(root: Path) -> Run:
    """A copy of a shipped run: with its film, and the weights of some of its steps."""
    return Run(Path(shutil.copytree(SHIPPED.folder, root / "reverse")))


def told(film: Film) -> tuple[str, str]:
    """The headline and what is said of its numbers, worked out by hand from the shares."""
    ends = {head: (float(share[0]), float(share[-1])) for head, share in film.shares.items()}
    head = max(ends, key=lambda head: ends[head][1])
    before, after = ends[head]
    risen = (film.shares[head] - before) / (after - before)
    tenth, frame, most = (next(i for i in range(len(risen)) if (risen[i:] >= p).all()) for p in (0.1, 0.5, 0.9))
    return (
        f"Head {head.short} learns to look at the token to say next in steps {film.steps[tenth - 1]} to "
        f"{film.steps[most]}: from {before:.2f} to {after:.2f}.",
        f"on the token to say next, at steps {film.steps[0]} and {film.steps[-1]}; at step {film.steps[frame]} it is "
        f"{film.shares[head][frame]:.2f}.",
    )


def test_it_plays_the_film_that_the_run_kept_and_gives_it_away_as_a_file():
    film, app = film_of(SHIPPED), open_page("film", run="reverse")
    title, numbers = told(film)
    assert app.title[0].value == title
    assert any(numbers in caption.value for caption in app.caption)
    header = staged(app)
    assert header["patternSteps"] == header["accuracySteps"] == film.steps.tolist()
    assert header["kept"] == list(SHIPPED.snapshots())
    assert header["uses"]
    assert f"at step {header['moment']['step']} it is" in numbers
    assert header["panels"][header["focus"]]["name"] in title
    assert not app.warning
    assert not app.error
    (button,) = app.get("download_button")
    size = re.search(r"\((\d+) kB\)", button.proto.label)
    assert size is not None
    assert 50 < int(size[1]) < 400


def test_the_last_frame_is_what_the_other_pages_say_of_these_weights():
    model, config = checkpoints.load(SHIPPED.snapshot())
    shares = survey(model, config.build_task()).expected_share
    last = {head: float(share[-1]) for head, share in film_of(SHIPPED).shares.items()}
    assert last == pytest.approx(shares, abs=1e-6)


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        lambda path: shutil.copy(ROOT / "checkpoints" / "reverse-aligned" / "film.npz", path),
        lambda path: path.write_bytes(path.read_bytes()[:1000]),
    ],
    ids=["missing", "another", "broken"],
)
def test_without_a_film_of_its_weights_one_is_taken_from_the_snapshots(run: Run, spoil: Callable[[Path], object]):
    spoil(run.folder / "film.npz")
    app = open_page("film", run="reverse")
    assert staged(app)["patternSteps"] == list(run.snapshots())
    assert re.match(
        r"Head 0\.2 learns to look at the token to say next in steps \d+ to \d+: from 0\.12 to 0\.99\.",
        app.title[0].value,
    )


def test_a_run_that_is_being_trained_shows_what_there_is(run: Run):
    for name in ("film.npz", "evaluation.json", "example.npz"):
        (run.folder / name).unlink()
    for step, path in run.snapshots().items():
        if step > 0:
            path.unlink()
    lines = (run.folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run.folder / "metrics.jsonl").write_text("".join(lines[:6]))
    app = open_page("film", run="reverse")
    header = staged(app)
    assert (header["patternSteps"], header["loss"]["count"], header["stops"]) == ([0], 6, list(range(7)))
    model, config = checkpoints.load(run.snapshot(0))
    shares = survey(model, config.build_task()).expected_share
    best = max(shares, key=lambda head: shares[head])
    assert app.title[0].value == (
        f"Head {best.short} looks most at the token to say next: {shares[best]:.2f} of its attention is there."
    )


def test_the_order_of_learning_in_words():
    film = film_of(SHIPPED)
    assert parts_film.order_sentence(film, SHIPPED.config) == (
        "Right at least nine times in ten from then on: y1 to y5, y7 and y8 from step 20, SEP and y6 from step 24. "
        "x2 to x8 cannot be: nothing in sight there tells the answer."
    )
    for name, row in zip(film.names, (film.correct / film.sequences).T, strict=True):
        since = [int(step) for i, step in enumerate(film.steps) if (row[i:] >= 0.9).all()]
        assert (since[:1] or [None])[0] == (None if name[0] == "x" else 24 if name in ("SEP", "y6") else 20)


@pytest.mark.parametrize(
    ("min_length", "said"),
    [
        (8, "y5 to y8 could be, but not yet."),
        (
            4,
            "y5 to y7 cannot be: what is in sight there tells the answer only in part. y8 could be, but not yet.",
        ),
    ],
)
def test_where_the_length_is_not_told_an_answer_is_known_in_part(min_length: int, said: str):
    causal = Run(ROOT / "checkpoints" / "reverse-aligned-causal")
    film = film_of(causal)
    config = replace(causal.config, task=replace(causal.config.task, min_length=min_length))
    found = parts_film.order_sentence(replace(film, correct=np.zeros_like(film.correct)), config)
    assert found == f"y1 to y4 cannot be: nothing in sight there tells the answer. {said}"


def test_an_even_look_is_that_of_a_head_without_preference():
    # y1 … y8 are said at positions 8 … 15, where 9 … 16 tokens may be seen, one of them the mirror image.
    even = sum(1 / seen for seen in range(9, 17)) / 8
    assert parts_film.even_look(film_of(SHIPPED), SHIPPED.config) == pytest.approx(even)


# Figures

STEPS = np.array([0, 1, 4, 9])
ACCURACY = np.array([[0.1, 0.0], [0.2, 0.5], [0.95, 0.6], [1.0, 0.7]])


def test_the_heatmap_shows_every_accuracy_at_its_step():
    figure = learning.accuracy_by_step_heatmap(
        STEPS, ACCURACY, ("y1", "y<2>"), ("first half", "second half"), learned=np.array([4, math.nan]), moment=4
    )
    heat, dots = figure.data
    np.testing.assert_allclose(heat.z, ACCURACY.T.astype(np.float32))
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert heat.hovertext[1][3] == "position 2 (y&lt;2&gt;) at step 9: 0.700 right"
    assert (list(dots.x), list(dots.y)) == ([2], [0])
    assert list(figure.layout.xaxis.ticktext) == ["0", "1", "4", "9"]
    assert [line.y0 for line in figure.layout.shapes if line.y0 == line.y1] == [0.5]
    assert [line.x0 for line in figure.layout.shapes if line.x0 == line.x1] == [1.5]
    assert figure.layout.yaxis.autorange == "reversed"


def test_the_curves_show_every_share_and_name_the_chosen_head():
    shares = {"0.0": np.array([0.1, 0.2, 0.8, 0.9]), "0.1": np.array([0.1, 0.1, 0.8, 0.88]), "1.0": np.zeros(4)}
    figure = learning.share_curves(STEPS, shares, focus="0.1", even=0.1, moment=9, palette=theme.DARK)
    drawn = {one.name: one for one in figure.data}
    for name, share in shares.items():
        np.testing.assert_allclose(drawn[name].y, share.astype(np.float32))
    assert figure.data[-1].name == "0.1"
    assert drawn["0.1"].hovertext[2] == "head 0.1 at step 4: 0.80"
    texts = [note.text for note in figure.layout.annotations]
    assert {"<b>0.1</b>", "1.0", "even attention: 0.10", "heads sharpen"} <= set(texts)
    assert "0.0" not in texts  # it would touch the chosen one's
    assert [line.x0 for line in figure.layout.shapes if line.x0 == line.x1] == [3]


@pytest.mark.parametrize("count", [1, 2, 17, 41, 90])
def test_the_numbers_below_an_axis_have_room_and_end_at_the_last(count: int):
    steps = np.arange(count) * 10
    axis = learning.share_curves(steps, {"0.0": np.zeros(count)}).layout.xaxis
    assert list(axis.ticktext) == [str(10 * place) for place in axis.tickvals]
    assert axis.tickvals[-1] == count - 1
    assert axis.tickvals[0] == 0
    assert len(" ".join(axis.ticktext)) < learning.MOST_DIGITS


# The film as a file


@pytest.fixture(scope="module")
def page() -> str:
    reel = parts_film.of_film(film_of(SHIPPED), SHIPPED.config, SHIPPED.metrics(), [])
    told = {"title": "It <found> & kept.", "description": "a “run”", "sentence": 'It "reads".'}
    return film_file.film_file(reel, **told, digest=film_of(SHIPPED).snapshot).decode()


def test_the_file_holds_the_film_and_its_words(page: str):
    film = film_of(SHIPPED)
    assert page.count("It &lt;found&gt; &amp; kept.") == 2
    assert "<found>" not in page
    assert f"Weights {film.snapshot}." in page
    message = re.search(r'<script type="text/plain" id="film-message">(.*?)</script>', page)
    assert message is not None
    header, body = unpack(base64.b64decode(message[1]))
    assert header["patternSteps"] == film.steps.tolist()
    levels = film.readings["decoder.0.self_attention"].levels[:, 2]
    kept = np.frombuffer(body, np.uint8, levels.size, header["panels"][2]["patterns"])
    np.testing.assert_array_equal(kept, levels.ravel())


def test_the_file_forbids_itself_every_request_and_allows_only_its_own_script(page: str):
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])  # type: ignore[index]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:,)""", page.split("<script")[0])


def test_the_file_looks_like_the_dashboard():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
    for dark, name in ((False, "light"), (True, "dark")):
        assert colours.PRIMARY[dark] == config[name]["primaryColor"]
        assert theme.palette(dark).background == config[name]["backgroundColor"]

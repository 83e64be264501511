"""The shipped population on *What positions buy*: its sentences and its lines against the table and the scenes."""

from __future__ import annotations

import csv
import re
import shutil
import statistics
from pathlib import Path

import pytest

from dashboard.app_pages.train_it.lengths import population
from tests.kit.pages import array, figures, open_page

SHIPPED = Path(__file__).parents[4] / "checkpoints" / "encodings"
NAMES = {"learned": "Learned", "sinusoidal": "Sinusoidal", "rotary": "Rotary", "alibi": "ALiBi", "none": "No positions"}


def rows_of(positions: str) -> list[dict[str, str]]:
    with (SHIPPED / "results.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["positions"] == positions]


@pytest.mark.parametrize("positions", NAMES)
def test_what_is_said_of_each_encoding_is_counted_in_the_table(positions: str) -> None:
    rows = rows_of(positions)
    solved = sorted(int(row["step"]) for row in rows if row["solved"] == "yes")
    said = population.sentence(population.encodings())
    assert len(rows) == 64
    assert f"{NAMES[positions]}: {len(solved)} of 64 seeds" in said
    if len(solved) == 64:
        assert re.search(rf"{NAMES[positions]}: 64 of 64 seeds, after {statistics.median(solved):g} steps", said)
    else:
        assert f"{NAMES[positions]}: {len(solved)} of 64 seeds within 600 steps" in said
        assert all(row["step"] == "600" for row in rows if row["solved"] == "no")


def test_a_line_is_the_share_of_the_second_half_at_each_kept_step() -> None:
    each = next(found for found in population.encodings() if found.positions == "rotary")
    drawn = population.line(each)
    names = [place for place, group in enumerate(each.scenes.groups) if group == "second half"]
    member, frame = 5, 7
    by_hand = sum(int(each.scenes.right[member, frame, place]) for place in names) / (
        len(names) * each.scenes.sequences
    )
    assert drawn.values[member, frame] == pytest.approx(by_hand)
    assert drawn.x.tolist() == each.scenes.steps.tolist()
    assert drawn.name == f"rotary {sum(row['solved'] == 'yes' for row in rows_of('rotary'))}/64"


def test_the_page_draws_all_seeds_and_says_how_many() -> None:
    app = open_page("lengths")
    assert any("over 64 seeds?" in each.value for each in app.markdown)
    drawn = figures(app)["seeds"]
    thick = [trace for trace in drawn["data"] if trace.get("showlegend") is not False]
    assert len(thick) == 5
    for trace, each in zip(thick, population.encodings(), strict=True):
        assert array(trace["y"]) == pytest.approx(population.line(each).values.mean(axis=0), abs=1e-6)
    assert population.sentence(population.encodings()) in " ".join(each.value for each in app.caption)


def test_without_the_population_the_page_goes_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(population, "FOLDER", tmp_path)
    assert population.encodings() == []
    assert "seeds" not in figures(open_page("lengths"))
    (tmp_path / "results.csv").write_text("nonsense")
    (tmp_path / "scenes.npz").write_bytes(b"nonsense")
    assert population.encodings() == []


def test_what_could_not_be_read_for_a_moment_is_not_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "encodings"
    shutil.copytree(SHIPPED, folder)
    monkeypatch.setattr(population, "FOLDER", folder)
    with monkeypatch.context() as full:
        full.setattr(population, "scenes", lambda *_: None)
        assert population.encodings() == []
    assert len(population.encodings()) == 5

"""Texts at hand: fetched from a server of the test's own, put in by hand, listed, learned from, and measured."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.kit import texts
from tests.kit.text_server import BOOK, nowhere, server
from transformer import checkpoints
from transformer.__main__ import main
from transformer.foundation.program import program
from transformer.text import download, shelf, task
from transformer.text.corpus import TextError
from transformer.training.runs import Run

SMALL = ["--length", "16", "--min-count", "2", "--n-layers", "1", "--n-heads", "2", "--d-model", "16", "--d-ff", "0"]
SMALL += ["--max-steps", "3", "--evaluate-every", "1", "--batch-size", "4", "--device", "cpu", "--seed", "1"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shelf with nothing on it, and an empty folder to work in."""
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "cache" / "texts"


@pytest.fixture(scope="module")
def clutter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are no text that can be learned from."""
    folder = tmp_path_factory.mktemp("clutter")
    (folder / "latin.txt").write_bytes("Entrée, ".encode("latin-1") * 500)
    (folder / "large.txt").write_bytes(b"word " * (shelf.LARGEST // 5 + 2))
    (folder / "few.txt").write_text("a few words, and a few more. " * 60)
    return folder


def left(cache: Path) -> list[str]:
    return [path.name for path in cache.rglob("*")] if cache.exists() else []


# --- fetched


def test_shakespeare_is_fetched_once_and_then_he_is_here(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with server(BOOK.encode("utf-8-sig")) as (url, asked):
        assert main(["corpus", "shakespeare", "--url", url]) == 0
        first = capsys.readouterr()
        assert main(["corpus", "shakespeare", "--url", url]) == 0
        second = capsys.readouterr().out
    assert asked == ["/book.txt"]
    (file,) = left(cache)
    # Counted anew: every token is a run of word characters, or of what stands between two of them.
    inside = BOOK.split("***\n", 1)[1].split("*** END")[0]
    tokens = re.findall(r"\w+|\W+", "\n" + inside)
    line = f"{file.removesuffix('.txt')}: 3 works, {len(tokens):,} tokens, {len(set(tokens)):,} of them distinct\n"
    assert first.out == line
    assert re.fullmatch(r"shakespeare [^\n]* kB [^\n]*\n", first.err)  # the bar, and nothing else
    assert second == f"the works of Shakespeare are already here, in {cache}\n{line}"
    assert main(["corpus"]) == 0
    assert capsys.readouterr().out == line
    assert shelf.read(file.removesuffix(".txt")) == BOOK


def test_it_says_how_much_has_come(cache: Path) -> None:
    said: list[tuple[int, int]] = []
    content = BOOK.encode() * 30
    with server(content) as (url, _):
        download.download(url, lambda done, total: said.append((done, total)))
    assert {total for _, total in said} == {len(content)}
    assert said[-1][0] == len(content)
    assert [done for done, _ in said] == sorted(done for done, _ in said)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"content": b"gone", "status": 404}, "the server says 404 Not Found"),
        ({"content": BOOK.encode(), "length": 10**6}, "the connection was lost"),
        ({"content": b"\n<!DOCTYPE html><p>Please log in" + b" " * 2000}, "sent a web page instead of a text"),
        ({"content": b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(5000)}, "is not a text"),
        ({"content": b"nothing yet"}, "is too short"),
        ({"content": b"x" * (shelf.LARGEST + 2**20)}, "it is larger than 20 MB"),
    ],
    ids=["404", "cut off", "web page", "picture", "short", "large"],
)
def test_what_does_not_come_whole_is_one_sentence_and_leaves_nothing(
    answer: dict, why: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with server(**answer) as (url, _):
        assert main(["corpus", "shakespeare", "--url", url]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    last = said.err.splitlines()[-1]
    assert last.startswith("error: ")
    assert why in last
    assert left(cache) == []


def test_without_a_network_it_says_where_to_put_a_file_by_hand(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_LAB_SHAKESPEARE", nowhere())
    assert main(["corpus", "shakespeare"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "there is no connection" in last
    assert f"`{program()} corpus shakespeare --file PATH`" in last
    Path("from-a-friend.txt").write_text(BOOK)
    assert main(["corpus", "shakespeare", "--file", "from-a-friend.txt"]) == 0
    assert capsys.readouterr().out.startswith("shakespeare-")
    assert shelf.read(shelf.resolve("shakespeare")) == BOOK


# --- put in by hand


def test_any_file_is_a_text(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my book.txt").write_text(texts.TEXT)
    assert main(["corpus"]) == 0
    assert f"download one with `{program()} corpus shakespeare`" in capsys.readouterr().out
    assert main(["corpus", "my book.txt"]) == 0
    assert re.match(r"my-book-[0-9a-f]{8}: 3 works, ", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["corpus", "nothing.txt"], "there is no text 'nothing.txt': name a file"),
        (["corpus", "shakespeare", "--file", "nothing.txt"], "there is no file nothing.txt"),
        (["corpus", "--file", "latin.txt"], "give the text a name"),
        (["corpus", "latin.txt"], "latin.txt is not encoded in UTF-8 (byte 5): save it as UTF-8 first"),
        (["corpus", "large.txt"], "large.txt is larger than 20 MB, the most that a text may have"),
        (["corpus", "."], "there is no text '.'"),
        (["train", "--task", "text", "--out", "out"], "which text? Say --text shakespeare, or name a file"),
        (["train", "--task", "text", "--text", "shakespeare", "--out", "out"], f"`{program()} corpus shakes"),
        (["train", "--task", "text", "--text", "nothing.txt", "--out", "out"], "there is no text 'nothing.txt'"),
        (["train", "--text", "latin.txt", "--out", "out"], "the task reverse reads no text"),
        (
            ["train", "--task", "text", "--text", "few.txt", "--length", "900", "--out", "out"],
            "choose a shorter length",
        ),
        (["train", "--task", "text", "--text", "few.txt", "--architecture", "encoder", "--out", "o"], "decoder"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_what_cannot_be_used_is_one_line(arguments, sentence, clutter, monkeypatch, capsys) -> None:
    monkeypatch.chdir(clutter)
    before = sorted(Path().iterdir())
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"error: [^\n]+\n", said.err)
    assert sentence in said.err
    assert sorted(Path().iterdir()) == before


# --- learned from


def trained(capsys: pytest.CaptureFixture[str]) -> tuple[Run, str, str]:
    """A run of the small text, trained from the command line, and what was said."""
    Path("plays.txt").write_text(texts.TEXT)
    assert main(["train", "--task", "text", "--text", "plays.txt", *SMALL, "--out", "run"]) == 0
    said = capsys.readouterr()
    return Run(Path("run")), said.out, said.err


def perplexity(run: Run) -> tuple[float, int]:
    """Over all that is held out, worked out anew: one window at a time, through the logits."""
    model, config = checkpoints.load(run.snapshot())
    works = shelf.corpus(config.task.text, config.task.split, config.task.min_count).held_out
    length, separator = config.task.length, config.build_task().separator
    nats = []
    for work in works:
        for start in range(0, len(work) - length + 1, length):
            window = work[start : start + length]
            with torch.no_grad():
                logits = model(torch.tensor([[separator, *window[:-1]]]))[0].double().numpy()
            for row, target in zip(logits, window, strict=True):
                nats.append(math.log(np.exp(row - row.max()).sum()) + row.max() - row[target])
    return math.exp(np.mean(nats)), len(nats)


def test_a_text_is_trained_and_measured_by_what_was_held_out(capsys: pytest.CaptureFixture[str]) -> None:
    run, said, progress = trained(capsys)
    expected, tokens = perplexity(run)
    assert said == f"all 3 steps taken\nheld-out perplexity {expected:.1f}\n"
    assert re.search(r"held-out perplexity \d+\.\d", progress)
    assert "second half" not in progress
    assert run.config.task.text == shelf.resolve("plays")

    assert main(["evaluate", "run", "--json", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["perplexity"] == pytest.approx(expected, rel=1e-5)
    assert found["read"] == tokens
    assert main(["evaluate", "run", "--device", "cpu"]) == 0
    line = f"held-out perplexity {expected:.1f}, {math.log(expected):.3f} nats a token, {tokens:,} tokens that were"
    assert capsys.readouterr().out.startswith(line)
    assert main(["list", "."]) == 0
    assert f"perplexity {expected:.1f}, finished" in capsys.readouterr().out


def test_a_run_is_measured_where_its_text_is_not(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it carries with it is enough; to learn more, the text is needed, and that is said."""
    run, _, _ = trained(capsys)
    for path in cache.iterdir():
        path.unlink()
    task._windows.cache_clear()
    for place in ("run", str(run.snapshot())):
        monkeypatch.setattr(shelf, "_excerpts", {})  # as in a process of its own
        assert main(["evaluate", place, "--json", "--device", "cpu"]) == 0
        assert math.isfinite(json.loads(capsys.readouterr().out)["perplexity"])
    with pytest.raises(TextError, match="is not here"):
        run.config.build_task().batch(np.random.default_rng(0), 2)

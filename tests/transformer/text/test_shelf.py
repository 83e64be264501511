"""The texts at hand: what a key names, what is refused and with which words, and who reads them at once."""

import hashlib
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit import texts
from tests.kit.waiting import PATIENCE
from transformer.__main__ import main
from transformer.commands.corpus import take_away
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.text import shelf
from transformer.text.corpus import TextError
from transformer.training import lock
from transformer.training.listing import list_runs
from transformer.training.runs import Run, RunError

LONG = "Naïve “verse”, line after line.\n" * 60


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shelf, "_excerpts", {})
    monkeypatch.setattr(shelf, "_marks", {})


def test_texts_lie_in_the_users_cache_unless_another_folder_is_named(monkeypatch, tmp_path):
    assert shelf.folder() == tmp_path / "cache" / "texts"
    monkeypatch.delenv("ATTENTION_LAB_CACHE")
    assert shelf.folder().parts[-2:] == ("attention-lab", "texts")


def test_a_key_is_the_name_and_what_the_text_is(tmp_path):
    key = shelf.put("My Verses (2).txt", LONG.encode())
    assert key == "my-verses-2-" + hashlib.sha256(LONG.encode()).hexdigest()[:8]
    assert shelf.keys() == (key,)
    assert (shelf.folder() / f"{key}.txt").read_text(encoding="utf-8") == LONG
    assert shelf.put("My Verses (2).txt", LONG.encode()) == key
    assert shelf.keys() == (key,)


@pytest.mark.parametrize(
    ("name", "stem"),
    [("Ä.txt", "text"), (".txt", "txt"), ("../../etc/passwd", "passwd"), ("a" * 99 + ".md", "a" * 40), ("", "text")],
)
def test_any_name_gives_a_key_that_is_a_file_here(name, stem):
    key = shelf.put(name, LONG.encode())
    assert key.rpartition("-")[0] == stem
    assert [path.name for path in shelf.folder().iterdir()] == [f"{key}.txt"]


@pytest.mark.parametrize(
    "content",
    [
        LONG.encode("utf-8-sig"),
        LONG.encode("utf-16"),
        b"\xfe\xff" + LONG.encode("utf-16-be"),
        LONG.replace("\n", "\r\n").encode(),
        LONG.replace("\n", "\r").encode(),
    ],
    ids=["UTF-8 with a mark", "UTF-16", "UTF-16, the other way round", "Windows' line ends", "old line ends"],
)
def test_the_same_words_are_the_same_text_however_they_are_written_down(content):
    assert shelf.decoded(content, "verse.txt") == LONG
    assert shelf.put("verse.txt", content) == shelf.put("verse.txt", LONG.encode())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (LONG.encode("latin-1", "replace"), r"verse\.txt is not encoded in UTF-8 \(byte 3\): save it as UTF-8 first"),
        (
            b"\xff\xfe" + LONG.encode("utf-16-le") + b"x",
            r"verse\.txt is not encoded in UTF-8 \(byte \d+\): save it as UTF-8 first",
        ),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(5000), r"verse\.txt is not a text: it holds binary data"),
        (b"", r"verse\.txt is too short: a text needs 1000 characters, and it has 0"),
        (b"short", r"verse\.txt is too short: a text needs 1000 characters, and it has 5"),
        (b" \n" * 5000, r"verse\.txt is too short: a text needs 1000 characters, and it has 0"),
        (b"x" * (20 * 2**20 + 1), r"verse\.txt is larger than 20 MB, the most that a text may have"),
    ],
    ids=["Latin-1", "half a character", "a picture", "empty", "short", "blanks", "too large"],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(content, sentence):
    with pytest.raises(TextError, match=f"^{sentence}"):
        shelf.put("verse.txt", content)
    assert shelf.keys() == ()


def test_a_text_is_found_by_its_key_its_name_and_its_file(tmp_path):
    key = shelf.put("verse.txt", LONG.encode())
    path = tmp_path / "elsewhere.txt"
    path.write_text(LONG, encoding="utf-8")
    assert shelf.resolve(key) == shelf.resolve("verse") == key
    assert shelf.resolve(str(path)) == "elsewhere-" + key.rpartition("-")[2]


def test_a_name_that_several_have_asks_which():
    both = sorted(shelf.put("verse.txt", (LONG + more).encode()) for more in ("", "and on"))
    with pytest.raises(TextError, match=f"several texts named verse: say which of {both[0]}, {both[1]}"):
        shelf.resolve("verse")


def test_what_is_nowhere_is_said_with_what_is_here(tmp_path):
    with pytest.raises(TextError, match=r"^there is no text 'nothing': name a file$"):
        shelf.resolve("nothing")
    with pytest.raises(TextError, match="corpus shakespeare"):
        shelf.resolve("shakespeare")
    key = shelf.put("verse.txt", LONG.encode())
    with pytest.raises(TextError, match=f"name a file, or one of {key}$"):
        shelf.resolve(str(tmp_path))


def test_no_other_file_is_read_for_a_key():
    shelf.put("verse.txt", LONG.encode())
    for key in ("", "nothing-12345678", "../cache", "a/b", "A", "a.txt", "*"):
        for look in (shelf.corpus, shelf.excerpt):
            with pytest.raises(TextError, match="is not here"):
                look(key, "words", 1)


@pytest.mark.parametrize(
    "ask",
    [
        *(lambda key, look=look: look(key, "words", 1) for look in (shelf.corpus, shelf.excerpt)),
        *(shelf.read, shelf.remove, shelf.restore, shelf.resolve),
        lambda key: take_away(key, shelf.folder()),
        lambda key: shelf.take(Path(key)),
        lambda key: shelf.put(key, b"short"),
    ],
)
def test_little_of_a_key_and_no_path_is_repeated(ask):
    shelf.put("verse.txt", LONG.encode())
    for wanted in ("k" * 10_000, "K" * 10_000, "/" + "k" * 10_000, "é" * 300, "a\0b"):
        with pytest.raises(TextError) as error:
            ask(wanted)
        assert wanted[:80] not in str(error.value)
        assert len(str(error.value)) < 250
        assert str(shelf.folder()) not in str(error.value)


def test_a_runs_own_excerpt_is_read_where_the_text_is_not_and_where_it_has_moved_to(tmp_path):
    key = shelf.put("plays.txt", texts.TEXT.encode())
    whole = shelf.excerpt(key, "words", 2)
    path = tmp_path / "text.npz"
    whole.save(path)
    (shelf.folder() / f"{key}.txt").unlink()
    for _ in range(2):
        shelf.register(path, key, "words", 2)
        assert shelf.excerpt(key, "words", 2).vocabulary == whole.vocabulary
        assert shelf.resolve(key) == key
        path = path.rename(tmp_path / "moved.npz")
    for other in (("words", 3), ("characters", 2)):  # another vocabulary is another excerpt
        with pytest.raises(TextError, match="is not here"):
            shelf.excerpt(key, *other)
    path.unlink()
    with pytest.raises(TextError, match="is not here"):
        shelf.excerpt(key, "words", 2)


def test_many_who_put_and_cut_the_same_text_at_once_share_one():
    found, failed, ready = [], [], threading.Barrier(8)

    def work():
        try:
            ready.wait(PATIENCE)
            key = shelf.put("plays.txt", texts.TEXT.encode())
            found.append((key, shelf.corpus(key, "words", 2)))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not failed
    assert len(found) == 8
    assert len({(key, id(corpus)) for key, corpus in found}) == 1
    assert [path.name for path in shelf.folder().iterdir()] == [f"{found[0][0]}.txt"]


# --- one key, one text


def other_words(key):
    """An excerpt under a foreign hand's key: the same in all but two words, which have changed places."""
    own = shelf.excerpt(key, "words", 2)
    tokens = list(own.vocabulary.tokens)
    tokens[0], tokens[1] = tokens[1], tokens[0]
    return replace(own, vocabulary=replace(own.vocabulary, tokens=tuple(tokens)))


def test_a_run_whose_words_are_others_under_the_same_key_is_refused_and_the_first_goes_on(tmp_path):
    key = shelf.put("plays.txt", texts.TEXT.encode())
    foreign = other_words(key)
    own = Run.create(tmp_path / "own", config_of(key))
    stranger = shutil.copytree(own.folder, tmp_path / "stranger")
    foreign.save(stranger / "text.npz")
    assert own.config.build_task().known.vocabulary.tokens[0] != foreign.vocabulary.tokens[0]
    with pytest.raises(
        RunError, match=rf"run stranger .* words in stranger/text\.npz are not those of {key}, in words"
    ):
        _ = Run(stranger).config
    assert [run.name for run in list_runs(tmp_path)] == ["own"]
    assert shelf.excerpt(key, "words", 2).vocabulary == own.config.build_task().known.vocabulary


def test_a_text_is_not_learned_from_where_runs_have_read_other_words_by_its_name(tmp_path):
    key = shelf.put("plays.txt", texts.TEXT.encode())
    foreign = other_words(key)
    shelf._marks.clear()  # as in a process of its own, which meets the stranger first
    foreign.save(tmp_path / "text.npz")
    shelf.register(tmp_path / "text.npz", key, "words", 2)
    assert shelf.excerpt(key, "words", 2).vocabulary == foreign.vocabulary
    with pytest.raises(TextError, match=f"^the words of the text are not those of {key}"):
        shelf.corpus(key, "words", 2)


@pytest.mark.parametrize("field", ["titles", "sizes", "held_out"])
def test_any_other_tokens_are_another_mark(field):
    own = shelf.excerpt(shelf.put("plays.txt", texts.TEXT.encode()), "words", 2)
    changed = {
        "titles": ("ANOTHER PLAY",),
        "sizes": (own.sizes[0] + 1, own.sizes[1]),
        "held_out": tuple(part[::-1] for part in own.held_out),
    }
    assert replace(own, **{field: changed[field]}).mark != own.mark == replace(own).mark


def config_of(key):
    return RunConfig(
        task=TaskConfig(task="text", text=key, length=32, min_count=2),
        model=ModelConfig(n_layers=1, n_heads=2, d_model=16),
    )


# --- taken off the shelf


def test_a_text_is_removed_and_brought_back_as_it_was():
    key = shelf.put("verse.txt", LONG.encode())
    shelf.remove(key)
    assert shelf.keys() == ()
    with pytest.raises(TextError, match="is not here"):
        shelf.read(key)
    shelf.restore(key)
    shelf.restore(key)  # it is there already
    assert shelf.keys() == (key,)
    assert shelf.read(key) == LONG


def test_only_the_last_that_was_removed_can_be_had_back():
    first, second = (shelf.put(f"{name}.txt", (LONG + name).encode()) for name in ("first", "second"))
    shelf.remove(first)
    shelf.remove(second)
    with pytest.raises(TextError, match=f"^{first} cannot be restored: add its file again$"):
        shelf.restore(first)
    shelf.restore(second)
    assert [path.name for path in shelf.folder().iterdir()] == [f"{second}.txt"]
    with pytest.raises(TextError, match="is not here"):
        shelf.remove(first)


def test_the_shelf_is_full_at_some_size_and_says_so(monkeypatch):
    key = shelf.put("verse.txt", LONG.encode())
    size = len(LONG.encode())
    monkeypatch.setattr(shelf, "TOGETHER", 2 * size)
    full = r"^the texts here may have 0 MB together, and with more\.txt they would have more: remove one first$"
    with pytest.raises(TextError, match=full):
        shelf.put("more.txt", (LONG + "and on").encode())
    assert shelf.put("verse.txt", LONG.encode()) == key  # it is there, and takes no more room
    shelf.remove(key)
    shelf.put("more.txt", (LONG + "and on").encode())


def test_the_command_line_removes_a_text_by_its_key_or_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    keys = [shelf.put(f"{name}.txt", LONG.encode()) for name in ("verse", "prose")]
    assert main(["corpus", "--remove", keys[0]]) == 0
    assert main(["corpus", "--remove", "prose"]) == 0
    assert capsys.readouterr().out == f"{keys[0]} is removed\n{keys[1]} is removed\n"
    assert shelf.keys() == ()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--remove", "nothing"], "error: there is no text 'nothing' here; there is verse-"),
        (["--remove", "../verse"], "error: there is no text '../verse' here; there is verse-"),
        (["verse", "--remove", "verse"], "error: --remove takes no other option"),
    ],
)
def test_what_cannot_be_removed_is_one_line(arguments, sentence, capsys):
    shelf.put("verse.txt", LONG.encode())
    assert main(["corpus", *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(sentence)
    assert said.err.count("\n") == 1
    assert not said.out
    assert len(shelf.keys()) == 1


@pytest.mark.parametrize("status", ["running", "queued", "paused"])
def test_a_text_that_is_being_read_stays(status, tmp_path):
    key = shelf.put("plays.txt", texts.TEXT.encode())
    run = Run.create(tmp_path / "runs" / "reader", config_of(key))
    run.set_state(status, 3)
    with (
        lock.hold(run.folder),
        pytest.raises(TextError, match=f"^{key} is being read by reader: stop the training first$"),
    ):
        take_away(key, tmp_path / "runs")
    run.set_state("stopped", 3)
    assert take_away(key, tmp_path / "runs") == key
    assert run.config.build_task().known.vocabulary.tokens  # it can still be looked at

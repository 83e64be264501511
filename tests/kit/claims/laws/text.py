"""Laws of the pages of a text: it is cut, numbered and predicted here by other means.

No model of the grid reads a text: `test_what_every_other_page_says…` judges them on the shipped one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from dashboard.models.passages import held_out
from tests.kit.claims import Shown, law
from tests.kit.claims.world import Head, Pass, World
from transformer import masks
from transformer.tasks import Batch

TOKENS = "app_pages/text/tokens/words.headline"


def cut_by_hand(world: World) -> tuple[list[str], int]:
    """The tokens of the text that the page cuts, and how long its windows are."""
    view = dict(world.view)
    text = view.get("cut_text", world.task.typed(world.task.example)).replace("↵", "\n")
    by = view.get("cut_by", "words")
    return [*text] if by == "characters" else re.findall(r"⟨unk⟩|\w+|[^\w⟨]+", text), int(view.get("cut_window", 8))


@law(TOKENS, r"(?P<tokens>[\d,]+) tokens: none is predicted from more than (?P<most>\d+) before it\.")
def predicted_from(world: World, tokens: Shown, most: str) -> None:
    """What is read begins with SEP, so that much of the text stands before the last target of a window."""
    cut, window = cut_by_hand(world)
    assert tokens == len(cut) >= window
    read = np.arange(window) > 0
    assert int(most) == int((masks.parse(world.sizes.mask).matrix(window) & read).sum(axis=1).max())


@law(TOKENS, r"(?P<tokens>[\d,]+) tokens?: too few for a window of (?P<length>\d+)\.")
def too_few(world: World, tokens: Shown, length: str) -> None:
    cut, window = cut_by_hand(world)
    assert tokens == len(cut)
    assert int(length) == window > len(cut)


# --- a text that the model writes

WRITES = "app_pages/text/writing/words.headline"
SURPRISE = "app_pages/text/writing/words.own_surprise"
CAME = "app_pages/text/writing/words.came"
LOOKED = "app_pages/text/writing/words.looked"


def shares_of(logits: np.ndarray) -> np.ndarray:
    """A softmax over the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def text_of(world: World) -> list[int]:
    """The text that the page has the model write, drawn here: SEP, the prompt, and what follows."""
    view = dict(world.view)
    temperature, seed = float(view.get("temperature", 0.8)), int(view.get("writing_seed", 0))
    tokens, vocabulary = world.task.begun(view["prompt"]), world.task.known.vocabulary
    said = list(range(len(vocabulary.tokens)))  # the unknown token, SEP and padding stand last, and in no text
    for _ in range(int(view["written"])):
        logits = read_by_hand(world, tokens).logits[0, -1]
        if temperature:
            drawn = shares_of(logits[said] / temperature).cumsum()
            thrown = np.random.default_rng((seed, len(tokens))).random()
            token = int(np.searchsorted(drawn, thrown * drawn[-1], side="right"))
        else:
            token = int(logits[said].argmax())
        tokens.append(token)
    return tokens


def read_by_hand(world: World, *rows: list[int]) -> Pass:
    """A pass over rows of tokens of one length, as they are read."""
    read = np.array(rows)
    alike = np.ones_like(read, dtype=bool)
    return world.through(Batch(read, read, alike, alike))


def text_by_hand(world: World) -> tuple[list[float], list[bool]]:
    """The probability of each token that the model writes, and was none likelier?"""
    tokens, given = text_of(world), len(world.task.begun(dict(world.view)["prompt"]))
    logits = read_by_hand(world, tokens).logits[0, given - 1 : -1]
    own = np.arange(len(logits)), tokens[given:]
    return shares_of(logits)[own].tolist(), (logits[own] >= logits[:, :-1].max(axis=1)).tolist()


@law(
    WRITES, r"(?P<part>None|Each|\d+) of the (?P<tokens>\d+) tokens that it wrote (?P<were>was|were) its first guess\."
)
def were_first(world: World, part: str, tokens: str, were: str) -> None:
    _, first = text_by_hand(world)
    assert int(tokens) == len(first) > 1
    assert {"None": 0, "Each": len(first)}.get(part, part) in (sum(first), str(sum(first)))
    assert (were == "were") == (1 < sum(first) < len(first))


@law(WRITES, r"The token that it wrote was (?P<no>not )?its first guess\.")
def was_first(world: World, no: str | None) -> None:
    _, first = text_by_hand(world)
    assert first == [no is None]


@law(WRITES, r"It writes (?P<tokens>\d+) tokens?, one by one\.", rare=True)
def writes(world: World, tokens: str) -> None:
    """The tests of the page wait until a text is whole; that of the words says this."""
    assert tokens == dict(world.view).get("written", "120")


@law(SURPRISE, r"To the model itself this text has perplexity (?P<perplexity>[\d.,]+)\.")
def has_perplexity(world: World, perplexity: Shown) -> None:
    found, _ = text_by_hand(world)
    assert perplexity == float(np.exp(-np.log(found).mean()))


@law(SURPRISE, None, rare=True)
def writes_still(world: World) -> None:
    """The same."""


@law(
    CAME,
    r"‘(?P<token>.*)’ at (?P<at>\d+)(?: is (?P<prompt>part of the prompt)\. The model gave it| had probability) "
    r"(?P<share>[\d.]+), (?:(?P<first>its first guess)|its guess number (?P<rank>\d+)|(?P<none>not among its first ten "
    r"guesses))\.(?: It was drawn with (?P<drawn>[\d.]+)\.)?",
)
def was_its_guess(
    world: World, token: str, at: str, prompt: str | None, share: Shown, first: str | None, rank: str | None,
    none: str | None, drawn: Shown | None,
) -> None:  # fmt: skip
    """Padding is no guess. The draw leaves out what stands in no text."""
    tokens, place = text_of(world), int(at) - 1
    logits = read_by_hand(world, tokens[:place]).logits[0, -1]
    assert token == world.task.vocabulary[tokens[place]]
    assert share == shares_of(logits)[tokens[place]]
    likelier = int((logits[:-1] > logits[tokens[place]]).sum())
    assert (first is not None, none is not None) == (likelier == 0, likelier >= 10)
    assert rank is None or int(rank) == likelier + 1
    given = place < len(world.task.begun(dict(world.view)["prompt"]))
    assert (prompt is not None, drawn is None) == (given, given)
    if drawn is not None:
        temperature = float(dict(world.view).get("temperature", 0.8))
        words = len(world.task.known.vocabulary.tokens)
        drawable = logits[:words]
        assert drawn == (
            shares_of(drawable / temperature)[tokens[place]]
            if temperature
            else float(tokens[place] == drawable.argmax())
        )


@dataclass(frozen=True)
class Looks:
    """A made-up row of attention, of tokens that are named by their places."""

    row: tuple[float, ...]


def row_by_hand(world: World | Looks, at: str, query: str, who: str) -> tuple[np.ndarray, list[str]]:
    """What the query before a token gave each token that it saw, and what these are called."""
    place = int(at) - 1
    assert int(query) == place
    if isinstance(world, Looks):
        return np.nan_to_num(np.array(world.row)), [f"t{key}" for key in range(len(world.row))]
    tokens = text_of(world)
    seen = read_by_hand(world, tokens[:place])
    rows = {head: seen.patterns[head.site][0, head.index, -1] for head in world.heads}
    named = re.fullmatch(r"the mean of (\d+) heads|head ([\d.]+)", who)
    assert named is not None
    if named[1]:
        assert int(named[1]) == len(rows)
        return np.mean([*rows.values()], axis=0), [world.task.vocabulary[token] for token in tokens]
    return rows[world.head(named[2])], [world.task.vocabulary[token] for token in tokens]


BEFORE = r"‘(?P<token>.*)’ at (?P<at>\d+) was predicted by query (?P<query>\d+), ‘.*?’\. There (?P<who>[^’]*) "


@law(LOOKED, rf"{BEFORE}looked most at (?P<places>‘.*\))\.")
def looked_most(world: World | Looks, token: str, at: str, query: str, who: str, places: str) -> None:
    """No token that is not named got as much as one that is."""
    row, names = row_by_hand(world, at, query, who)
    assert names[int(at) - 1] == token
    named = re.findall(r"‘(.*?)’ at (\d+) \(([\d.]+)\)(?:, |$)", places)
    keys = [int(place) - 1 for _, place, _ in named]
    assert 1 <= len(keys) <= 3
    for name, place, share in named:
        assert name == names[int(place) - 1]
        assert Shown(share) == row[int(place) - 1]
        assert float(share) > 0
    rest = np.delete(row, keys)
    assert not len(rest) or row[keys].min() > rest.max()
    assert (np.diff(row[keys]) <= 1e-6).all()


@law(LOOKED, rf"{BEFORE}looked most at (?P<many>\d+) tokens \((?P<share>[\d.]+) each\)\.", rare=True)
def looked_at_many(world: Looks, token: str, at: str, query: str, who: str, many: str, share: Shown) -> None:
    row, _ = row_by_hand(world, at, query, who)
    assert int(many) == sum(share == each for each in row) > 3
    assert share == row.max()


@law(LOOKED, rf"{BEFORE}gave none of (?P<many>\d+) tokens? as much as 0\.005\.", rare=True)
def looked_at_none(world: Looks, token: str, at: str, query: str, who: str, many: str) -> None:
    row, _ = row_by_hand(world, at, query, who)
    assert int(many) == (row > 0).sum()
    assert row.max() < 0.005 + 1e-9


@law(LOOKED, rf"{BEFORE}saw no token\.", rare=True)
def saw_no_token(world: Looks, token: str, at: str, query: str, who: str) -> None:
    assert not row_by_hand(world, at, query, who)[0].any()


# --- a text that the model reads

READING = "app_pages/text/reading/words."
READS, DISTANCE = f"{READING}headline", f"{READING}distance_title"


@dataclass(frozen=True)
class Costs:
    """The tokens of a passage, and what each costs; made up, or read here."""

    words: tuple[str, ...]
    nats: np.ndarray

    @property
    def candidates(self) -> np.ndarray:
        """Which tokens are known ones, bool; all where none is."""
        known = np.array([word != "⟨unk⟩" for word in self.words])
        return known | ~known.any()

    @property
    def most(self) -> float:
        return float(self.nats[self.candidates].max())

    @property
    def level(self) -> list[str]:
        """Those that cost the most, as two digits show it."""
        level = self.candidates & np.array([f"{each:.2f}" == f"{self.most:.2f}" for each in self.nats])
        return [word for word, there in zip(self.words, level, strict=True) if there]

    def judge_known(self, known: str | None) -> None:
        """Raises AssertionError where it is said without need, or not said, that unknown tokens cost more."""
        assert (known is not None) == (self.nats.max() > self.most)


def passage_of(world: World) -> tuple[np.ndarray, int]:
    """The tokens that the page reads, and how many of them only lead up to the passage."""
    view = dict(world.view)
    if view.get("read_what") == "input":
        return world.task.parse(view["input"]), 0
    return held_out(world.task, int(view.get("read_work", 1)), int(view.get("read_place", 1)))[:2]


def passage_by_hand(world: World) -> tuple[np.ndarray, np.ndarray, int]:
    """The tokens of the passage, how likely every token was in place of each, float [token, symbol], and how many stand
    before it."""
    passage, before = passage_of(world)
    likely = shares_of(read_by_hand(world, [world.task.separator, *passage[:-1].tolist()]).logits[0])
    return passage[before:], likely[before:], before


def spelt(world: World, tokens: np.ndarray) -> tuple[str, ...]:
    known = [*world.task.known.vocabulary.tokens, "⟨unk⟩"]
    return tuple(known[token].replace(" ", "␣").replace("\n", "↵") for token in tokens.tolist())


def costs_of(world: World | Costs) -> Costs:
    if isinstance(world, Costs):
        return world
    passage, likely, _ = passage_by_hand(world)
    return Costs(spelt(world, passage), -np.log(likely[np.arange(len(passage)), passage]))


def by_frequency(world: World) -> np.ndarray:
    """What each token of the passage costs somebody who only counts: one that never stood in the text counts once."""
    passage, before = passage_of(world)
    counts = np.maximum(np.array(world.task.known.vocabulary.counts, dtype=float), 1)
    return -np.log(counts / counts.sum())[passage[before:]]


@law(
    READS,
    r"(?P<known>Of known words, )?“(?P<word>[^”]*)” surprised it most: (?P<nats>[\d.]+) nats\.",
)
def surprises_most(world: World | Costs, known: str | None, word: str, nats: Shown) -> None:
    costs = costs_of(world)
    assert costs.level == [word]
    assert nats == costs.most
    costs.judge_known(known)


@law(READS, r"“(?P<word>[^”]*)” surprised it by (?P<nats>[\d.]+) nats\.")
def surprises_by(world: World | Costs, word: str, nats: Shown) -> None:
    costs = costs_of(world)
    assert costs.words == (word,)
    assert nats == costs.most


@law(
    READS,
    r"(?P<known>Of known words, )?(?:(?P<names>“.*”)|(?P<many>\d+) tokens) surprised it most: (?P<nats>[\d.]+) nats "
    r"each\.",
    rare=True,
)
def several_surprise(world: Costs, known: str | None, names: str | None, many: str | None, nats: Shown) -> None:
    assert nats == world.most
    assert 1 < len(world.level) < len(world.words)
    assert many is None or int(many) == len(world.level)
    assert names is None or re.findall(r"“(.*?)”", names) == world.level
    world.judge_known(known)


@law(READS, r"Each of the (?P<all>\d+) tokens surprised it as much: (?P<nats>[\d.]+) nats\.", rare=True)
def all_surprise(world: Costs, all: str, nats: Shown) -> None:
    assert int(all) == len(world.words) == len(world.level) > 1
    assert nats == world.most


@law(
    f"{READING}passage_sentence",
    r"(?:A|(?P<one>The)) token costs (?P<nats>[\d.]+) nats(?: on average)? here \(perplexity (?P<perplexity>[\d.,]+)\)"
    r", and (?P<unread>[\d.]+) if only its frequency is known\. (?:(?P<first>\d+) of the (?P<all>\d+) tokens "
    r"(?P<were>was|were)|It was (?P<no>not )?)\s?its first guess\. It had read (?:nothing|(?P<before>\d+) tokens?) "
    r"before\.",
)
def passage_costs(
    world: World, one: str | None, nats: Shown, perplexity: Shown, unread: Shown, first: str | None, all: str | None,
    were: str | None, no: str | None, before: str | None,
) -> None:  # fmt: skip
    passage, likely, led = passage_by_hand(world)
    own = likely[np.arange(len(passage)), passage]
    best = int((own >= likely.max(axis=1)).sum())
    assert nats == -np.log(own).mean()
    assert perplexity == np.exp(-np.log(own).mean())
    assert unread == by_frequency(world).mean()
    assert int(before or 0) == led
    assert (one is not None) == (len(passage) == 1) == (all is None)
    if first is None or all is None:
        assert (no is None) == (best == 1)
    else:
        assert (int(first), int(all), were == "was") == (best, len(passage), best == 1)


@law(
    f"{READING}word_sentence",
    r"“(?P<word>[^”]*)”, token (?P<at>\d+), cost (?P<nats>[\d.]+) nats, (?:(?P<far>[\d.]+) (?P<way>more|less) than|as "
    r"much as) by its frequency alone\. The model gave it probability (?:(?P<p>[\d.]+)|1 in (?P<times>[\d,]+)): rank "
    r"(?P<rank>[\d,]+) among the (?P<words>[\d,]+) words it knows, ⟨unk⟩, SEP and padding\.",
)
def word_costs(
    world: World, word: str, at: str, nats: Shown, far: Shown | None, way: str | None, p: Shown | None,
    times: Shown | None, rank: Shown, words: Shown,
) -> None:  # fmt: skip
    passage, likely, _ = passage_by_hand(world)
    place = int(at) - 1
    own, row = float(likely[place, passage[place]]), likely[place]
    assert word == spelt(world, passage)[place]
    assert nats == -np.log(own)
    dearer = float(-np.log(own) - by_frequency(world)[place])
    assert abs(dearer) < 0.0052 if far is None else far == abs(dearer)
    assert far is None or (way == "more") == (dearer > 0)
    assert p is None or p == own
    assert times is None or abs(own * times.value - 1) < 0.06
    assert rank.value == 1 + (row > own).sum()
    assert words.value == len(world.task.known.vocabulary.tokens) == len(row) - 3
    asked = dict(world.view).get("read_word")
    assert at == asked if asked else costs_of(world).nats[place] == costs_of(world).most


@law(
    f"{READING}growth_sentence",
    r"The first token of a window costs (?P<first>[\d.]+)(?: ± (?P<room>[\d.]+))? nats(?:, and one at (?P<start>\d+)"
    r"(?: to (?P<end>\d+))? costs (?P<last>[\d.]+)(?: ± (?P<half>[\d.]+))?)?\. If only frequencies were known, a token "
    r"would cost (?P<unread>[\d.]+)\.",
)
def windows_cost(
    world: World, first: Shown, room: Shown | None, start: str | None, end: str | None, last: Shown | None,
    half: Shown | None, unread: Shown,
) -> None:  # fmt: skip
    """In the windows that the page draws, each read here by itself."""
    task, length = world.task, world.task.length
    windows = np.array(task.draw(np.random.default_rng([0, 7]), max(2, 2**13 // length), length))
    costs = window_costs(world, windows)
    for shown, error, part in ((first, room, costs[:, :1]), (last, half, costs[:, int(start or 1) - 1 :])):
        if shown is None:
            assert length == 1
            continue
        each = part.mean(axis=1)
        assert shown == each.mean()
        assert (error is None) == (len(each) == 1)
        assert error is None or error == 1.959964 * each.std(ddof=1) / len(each) ** 0.5
    assert start is None or int(end or start) == length
    counts = np.maximum(np.array(task.known.vocabulary.counts, dtype=float), 1)
    assert unread == -np.log(counts / counts.sum())[windows].mean()


def window_costs(world: World, windows: np.ndarray) -> np.ndarray:
    """Nats of each token, float [window, place]."""
    found = []
    for window in windows:
        likely = shares_of(read_by_hand(world, [world.task.separator, *window[:-1].tolist()]).logits[0])
        found.append(-np.log(likely[np.arange(len(window)), window]))
    return np.array(found)


@law(
    f"{READING}whole_sentence",
    r"Perplexity (?P<own>[\d.,]+) over (?P<read>[\d,]+) held-out tokens, in windows of (?P<length>\d+)\. Models that "
    r"count runs of tokens have (?P<others>.+) and (?P<least>[\d.]+) for (?P<best>.+), the best of orders (?P<low>\d+) "
    r"to (?P<high>\d+) \((?P<by>.+)\)\. A share of (?P<share>[\d.]+) of the tokens are blanks, line ends or marks: on "
    r"average (?P<seen>.+)\.",
)
def counting_models_have(
    world: World, own: Shown, read: Shown, length: str, others: str, least: Shown, best: str, low: str, high: str,
    by: str, share: Shown, seen: str,
) -> None:  # fmt: skip
    """By the run's own file; and how many tokens are words by all of the excerpt."""
    kept = json.loads((world.run.folder / "evaluation.json").read_text())
    orders = {name: 1 if name == "unigram" else 3 if name == "trigram" else int(name.split("-")[0])
              for name in kept["baselines"] if name.endswith("gram")}  # fmt: skip
    runs = {name: kept["baselines"][name] for name, order in orders.items() if order > 1}
    assert own == kept["perplexity"]
    assert (read.value, int(length)) == (kept["read"], world.task.length)
    assert least == min(runs.values())
    assert named_models(best) == {name for name, value in runs.items() if f"{value:.2f}" == str(least)}
    assert (int(low), int(high)) == (min(orders[name] for name in runs), max(orders[name] for name in runs))
    assert by == kept["baselines"]["library"]
    for each in others.split(", "):
        value, name = each.split(" for ")
        assert Shown(value) == kept["baselines"][name.split()[1]]
    every = np.concatenate([*world.task.known.held_out])
    bare = np.array([not re.search(r"[^\W_]", token) for token in (*world.task.known.vocabulary.tokens, "unk")])
    assert abs(share.value - bare[every].mean()) < 0.03
    for each in seen.split(" and "):
        name, words = re.fullmatch(r"an? (\S+) sees ([\d.]+) words", each).groups()  # type: ignore[union-attr]
        assert abs(float(words) - (1 - share.value) * (orders[name] - 1)) < 0.05 + 0.005 * orders[name]
        assert name == "5-gram" or orders[name] == max(orders[one] for one in named_models(best))


def named_models(text: str) -> set[str]:
    """ "a 9-gram and a 10-gram"."""
    return {each.split()[1] for each in text.replace(" and ", ", ").split(", ")}


@law(f"{READING}whole_sentence", r"Perplexity (?P<own>[\d.,]+) over (?P<read>[\d,]+) held-out tokens, in windows of "
     r"(?P<length>\d+)\.", rare=True)  # fmt: skip
def held_out_costs(world: World, own: Shown, read: Shown, length: str) -> None:
    """A run with which nothing was compared: a test of the shipped runs says it."""
    kept = json.loads((world.run.folder / "evaluation.json").read_text())
    assert own == kept["perplexity"]
    assert (read.value, int(length)) == (kept["read"], world.task.length)


# --- what heads do where something is repeated


def twice_by_hand(world: World) -> dict[str, np.ndarray]:
    """Shares and costs in the blocks that the page draws.

    By head, float [sequence, head]: the share on the token behind the first occurrence (`again`), on that place without
    a repetition (`other`), on the token before (`previous`), and what an even head gives (`even`). By place, float
    [sequence, place]: the nats of the first block, its repetition and another one.
    """
    task, rng = world.task, np.random.default_rng([0, 5])
    common = min(1000, task.symbols if task.lawful else task.symbols - 1)
    block = min(64, world.model.n_ctx // 2, common)
    if dict(world.view).get("repeated") == "passages":
        first = np.array(task.draw(rng, 32, block))
        other = np.roll(first, 2, axis=0)
    else:
        both = np.array([rng.permutation(common)[:block] for _ in range(64)])
        first, other = both[:32], both[32:]
    found: dict[str, list[list[float]]] = {}
    asked = np.arange(block + 1, 2 * block)
    for one, another in zip(first, other, strict=True):
        for name, second in (("again", one), ("other", another)):
            row = [task.separator, *one.tolist(), *second.tolist()]
            seen = read_by_hand(world, row[:-1])
            rows = [seen.patterns[head.site][0, head.index] for head in world.heads]
            found.setdefault(name, []).append([float(each[asked, asked - block + 1].mean()) for each in rows])
            if name == "again":
                found.setdefault("previous", []).append([float(each[asked, asked - 1].mean()) for each in rows])
            masks = [seen.masks[head.site][0, head.index] for head in world.heads]
            even = [each / np.maximum(each.sum(axis=1, keepdims=True), 1) for each in masks]
            found.setdefault("even", []).append([float(each[asked, asked - block + 1].mean()) for each in even])
            nats = -np.log(shares_of(seen.logits[0])[np.arange(2 * block), row[1:]])
            found.setdefault(f"nats, {name}", []).append(nats[block:].tolist())
            if name == "again":
                found.setdefault("nats, first", []).append(nats[:block].tolist())
    return {name: np.array(values) for name, values in found.items()}


def ends(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A mean over sequences and the ends of its 95 % interval."""
    half = 1.959964 * values.std(axis=0, ddof=1) / len(values) ** 0.5
    return values.mean(axis=0), values.mean(axis=0) - half, values.mean(axis=0) + half


@law(f"{READING}named", r"On (?P<on>random tokens|passages held out), read twice, (?P<parts>.+)\.")
def have_names(world: World, on: str, parts: str) -> None:
    """By the rule that the page states; within a little of its borders either may be said."""
    assert (on == "passages held out") == (dict(world.view).get("repeated") == "passages")
    found = twice_by_hand(world)
    (_, low, _), (_, _, rival), (_, before, _) = (ends(found[name]) for name in ("again", "other", "previous"))
    even = found["even"].mean(axis=0)
    induction = low - np.maximum(0.4, np.maximum(rival, even) + 0.2)
    previous = before - np.maximum(0.4, even + 0.2)
    said: dict[str, list[int]] = {"induction": [], "previous-token": []}
    for part in parts.split("; "):
        if part == "no induction head has formed":
            continue
        heads, kind = re.fullmatch(r"heads? (.+) (?:is an?|are) (\S+) heads?", part).groups()  # type: ignore[union-attr]
        assert not said[kind]
        said[kind] = [world.heads.index(world.head(each)) for each in heads.replace(" and ", ", ").split(", ")]
    assert ("no induction head" in parts) == (not said["induction"])
    for index in range(len(world.heads)):
        is_one, is_other = (index in said[kind] for kind in said)
        assert is_one == (induction[index] >= 0) or abs(induction[index]) < 1e-4
        assert is_one or is_other == (previous[index] >= 0) or abs(previous[index]) < 1e-4


SHARE = r"(?P<{0}>[−\d.]+)(?: ± (?P<{0}_half>[\d.]+))?"


@law(
    f"{READING}head_sentence",
    rf"Head (?P<head>[\d.]+) puts {SHARE.format('again')} of its attention on the token after the first occurrence, "
    rf"and {SHARE.format('other')} on the same position if nothing is repeated\. It puts {SHARE.format('previous')} on "
    r"the previous token\. A head that looks evenly puts (?P<even>[\d.]+) on each\.",
)
def puts_on_each(world: World, head: str, even: Shown, **said: str | None) -> None:
    found, index = twice_by_hand(world), world.heads.index(world.head(head))
    for name in ("again", "other", "previous"):
        mean, _, high = ends(found[name][:, index])
        assert Shown(said[name] or "") == mean
        assert Shown(said[f"{name}_half"] or "0.000") == high - mean
    assert even == found["even"][:, index].mean()


SAVED = (
    r"(?:as much as in the first, within (?P<{0}_within>[\d.]+) nats|"
    r"(?P<{0}>[\d.]+) ± (?P<{0}_half>[\d.]+) nats (?P<{0}_way>less|more))"
)


@law(
    f"{READING}drop_sentence",
    rf"In a repeated block a token costs {SAVED.format('again')}; in a new block, {SAVED.format('other')}\.",
)
def block_costs(world: World, **said: str | None) -> None:
    """The first token of a block is left out: nothing announces it."""
    found = twice_by_hand(world)
    for name in ("again", "other"):
        mean, low, high = ends((found["nats, first"] - found[f"nats, {name}"])[:, 1:].mean(axis=1))
        half = high - mean
        if (within := said[f"{name}_within"]) is not None:
            assert low <= 1e-6
            assert high >= -1e-6
            assert Shown(within) == half
        else:
            assert low > -1e-6 or high < 1e-6
            assert Shown(said[name] or "") == abs(mean)
            assert Shown(said[f"{name}_half"] or "") == half
            assert (said[f"{name}_way"] == "less") == (mean > 0)


# --- how far heads look


def by_distance(world: World, *, even: bool = False) -> dict[str, np.ndarray]:
    """The share of attention at each distance, by head, of the second half's queries; or of heads that look evenly.

    Of a task with a law on sequences that the page has not read; of a text on those that it draws.
    """
    lawful, rng = world.task.lawful, np.random.default_rng([0, 6])
    batch = world.others(1024) if lawful else world.task.encode(world.task.draw(rng, 16, 256))
    seen, n, found = world.through(batch), batch.tokens.shape[1], {}
    away = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))[n // 2 :]
    for head in world.heads:
        if head.site.endswith("self_attention"):
            looks = (seen.masks if even else seen.patterns)[head.site][:, head.index, n // 2 :].astype(float)
            looks = looks / np.maximum(looks.sum(axis=2, keepdims=True), 1e-300) if even else looks
            mean = looks.mean(axis=0)
            found[f"{head.layer}.{head.index}"] = np.bincount(away.ravel(), mean.ravel(), n) / len(away)
    return found


def away_by_hand(world: World) -> dict[str, float]:
    """How many tokens away each head looks on average."""
    return {name: float(each @ np.arange(len(each))) for name, each in by_distance(world).items()}


HEADS = r"(?:[Hh]eads? (?P<{0}>[\d., and]+)|(?P<{0}_many>\d+) heads)"


@law(DISTANCE, rf"{HEADS.format('near')} looks? nearest, {HEADS.format('far')} farthest: (?P<low>[\d.]+) and "
     r"(?P<high>[\d.]+) tokens\.")  # fmt: skip
def look_near_and_far(
    world: World | dict[str, float], near: str | None, near_many: str | None, far: str | None, far_many: str | None,
    low: Shown, high: Shown,
) -> None:  # fmt: skip
    """Of a model within what other sequences can tell; of made-up distances to the last digit that is shown."""
    made_up = isinstance(world, dict)
    found = world if isinstance(world, dict) else away_by_hand(world)
    room = 0.05 if made_up else 0.05 + (0.02 if world.task.lawful else 0.15) * max(found.values())
    for names, many, shown, end in (
        (near, near_many, low, min(found.values())),
        (far, far_many, high, max(found.values())),
    ):
        level = {name for name, value in found.items() if f"{value:.1f}" == f"{end:.1f}"}
        named = {*names.replace(" and ", ", ").split(", ")} if names else level
        assert not made_up or named == level
        assert many is None or not made_up or int(many) == len(level) > 4
        for name in named:
            assert abs(found[name] - shown.value) < room + 1e-6
            assert abs(found[name] - end) < room + 0.05
    assert low.value < high.value


@law(DISTANCE, r"(?P<who>Head [\d.]+ looks|All \d+ heads look) (?P<far>[\d.]+) tokens away on average\.", rare=True)
def looks_away(world: dict[str, float], who: str, far: Shown) -> None:
    """A test of the words says it: the shipped models have several heads, and they look near and far."""
    assert {f"{value:.1f}" for value in world.values()} == {str(far)}
    assert who == (f"Head {next(iter(world))} looks" if len(world) == 1 else f"All {len(world)} heads look")


@law(
    f"{READING}distance_sentence",
    r"Head (?P<head>[\d.]+) looks (?P<away>[\d.]+)(?: ± (?P<half>[\d.]+))? tokens away on average, a head that looks "
    r"evenly (?P<even>[\d.]+)\. 90% of its attention is at most (?P<reach>\d+) tokens? away\.",
)
def looks_so_far(world: World, head: str, away: Shown, half: str | None, even: Shown, reach: str) -> None:
    """Of a task with a law within what other sequences can tell; of a text by the digit that is shown."""
    looks, room = by_distance(world), 0.02 if world.task.lawful else 0.0
    mean = float(looks[head] @ np.arange(len(looks[head])))
    assert abs(mean - away.value) < 0.05 + 1e-3 + room * mean
    assert half is None or float(half) < max(1.0, away.value)
    evenly = by_distance(world, even=True)[head]
    assert abs(evenly @ np.arange(len(evenly)) - even.value) < 0.05 + 1e-3
    within = looks[head].cumsum()
    assert within[int(reach)] > 0.9 - 1e-4 - room
    assert int(reach) == 0 or within[int(reach) - 1] < 0.9 + 1e-4 + room


# --- a text on pages that speak of every model


@dataclass(frozen=True)
class Told:
    """A passage: its tokens, what is guessed in place of each, and what each costs."""

    tokens: tuple[str, ...]
    guesses: tuple[str, ...]
    nats: np.ndarray


def told_by_hand(world: World) -> tuple[Told, Told | None]:
    """The page's passage as the model reads it, and as it does after the change that the link names."""
    batch, view = world.task.encode(world.question[None]), dict(world.view)
    passes = [world.through(batch)]
    if "mask" in view:
        passes.append(world.through(batch, sees=masks.parse(view["mask"]).matrix(len(world.question))))
    if "edits" in view:
        _, site, index = re.fullmatch(r"(zero):(.+)\.(\d+)", view["edits"]).groups()  # type: ignore[union-attr]
        passes.append(world.through(batch, (Head(site, int(index)),)))
    names = world.task.vocabulary
    found = []
    for seen in passes:
        likely = shares_of(seen.logits[0])
        own = likely[np.arange(len(likely)), batch.targets[0]]
        found.append(
            Told(
                tuple(names[token] for token in batch.targets[0]),
                tuple(names[token] for token in likely.argmax(axis=1)),
                -np.log(own),
            )
        )
    return found[0], found[1] if len(found) > 1 else None


def are_counted(which: list[bool], tokens: tuple[str, ...], said: str) -> None:
    """Asserts that words and the rest are counted apart, and so many of each are `which`."""
    kinds = [bool(re.search(r"[^\W_]", token)) for token in tokens]
    found = {}
    for part in said.split(", and "):
        hits, of, what = re.fullmatch(r"(\d+) of (\d+) (.+)", part).groups()  # type: ignore[union-attr]
        word = what.startswith(("word", "letter"))
        assert (what[-1] == "s") == (int(of) != 1)
        found[word] = int(hits), int(of)
    assert found == {
        kind: (sum(hit for hit, each in zip(which, kinds, strict=True) if each == kind), kinds.count(kind))
        for kind in set(kinds)
    }


def stands_out(said: str | None, tokens: tuple[str, ...], change: np.ndarray, *, signs: bool) -> None:
    """Asserts that those tokens are named, or counted, whose number is the greatest as it is shown, up or down."""
    size = np.abs(change)
    shown = [f"{each:.1f}" for each in size]
    most = f"{size.max():.1f}"
    level = [place for place, each in enumerate(shown) if each == most]
    if not said:
        assert len(level) == len(tokens)
        assert not signs or most != "0.0"
        return
    if said.startswith("The cost of no token"):
        assert signs
        assert size.max() < 0.05 + 1e-9
        return
    form = re.fullmatch(
        r"(?:(?P<names>‘.+)|(?P<many>\d+) tokens) (?:surprises?|changes?) most, (?:with|by) (?P<sign>[+−]?)"
        r"(?P<most>[\d.]+) nats(?P<each> each)?\.",
        said,
    )
    assert form is not None
    assert abs(float(form["most"]) - size.max()) <= 0.05 + 1e-3
    assert (form["each"] is not None) == (len(level) > 1)
    if form["names"]:
        named = re.findall(r"‘(.*?)’ at (\d+)(?:, | and |$)", form["names"])
        assert [(token, int(place) - 1) for token, place in named] == [(tokens[place], place) for place in level]
    else:
        assert int(form["many"]) == len(level) > 3
    assert (form["sign"] == "") == (not signs or len(level) > 1)
    assert form["sign"] == "" or (form["sign"] == "+") == (change[level[0]] > 0)


PASSAGE = "parts/text.passage_sentence"
Both = tuple[Told, "Told | None"]


@law(PASSAGE, r"It guesses (?P<counts>.+?), at (?P<nats>[\d.]+) nats a token\.(?: (?P<most>.+))?")
def passage_is_guessed(world: World | Both, counts: str, nats: Shown, most: str | None) -> None:
    first, last = told_by_hand(world) if isinstance(world, World) else world
    assert last is None
    are_counted([one == other for one, other in zip(first.tokens, first.guesses, strict=True)], first.tokens, counts)
    assert nats == first.nats.mean()
    stands_out(most, first.tokens, first.nats, signs=False)


@law(
    PASSAGE,
    r"The guess changes for (?P<counts>.+?)\. A token costs (?P<before>[\d.]+) nats before and (?P<after>[\d.]+) "
    r"after\.(?: (?P<most>.+))?",
)
def passage_changes(world: World | Both, counts: str, before: Shown, after: Shown, most: str | None) -> None:
    first, last = told_by_hand(world) if isinstance(world, World) else world
    assert last is not None
    are_counted([one != other for one, other in zip(first.guesses, last.guesses, strict=True)], first.tokens, counts)
    assert before == first.nats.mean()
    assert after == last.nats.mean()
    stands_out(most, first.tokens, last.nats - first.nats, signs=True)


ACCURACY = "app_pages/training/accuracy/text."


@dataclass(frozen=True)
class Windows:
    """Windows of a text as the page of accuracy reads them: tokens, guesses and nats, [window, place]."""

    targets: np.ndarray
    guesses: np.ndarray
    nats: np.ndarray

    @property
    def right(self) -> np.ndarray:
        return self.targets == self.guesses


def windows_by_hand(world: World, most: int) -> Windows:
    """The windows that are drawn, so many at most."""
    drawn = np.array(
        world.task.draw(np.random.default_rng([world.config.training.seed + 1, 1]), most, length_of(world))
    )
    batch = world.task.encode([*drawn])
    likely = shares_of(world.through(batch).logits)
    own = np.take_along_axis(likely, batch.targets[..., None], axis=-1)[..., 0]
    return Windows(batch.targets, likely.argmax(axis=-1), -np.log(own))


def length_of(world: World) -> int:
    return int(dict(world.view).get("measured_length", world.task.length))


def few_windows(world: World) -> Windows:
    """What the page's first part reads: some 8,192 tokens."""
    return windows_by_hand(world, max(1, 2**13 // length_of(world)))


def many_windows(world: World) -> Windows:
    """What the closer looks read: as many as the page can afford."""
    n = length_of(world)
    asked = int(dict(world.view).get("sequences", 4096))
    return windows_by_hand(world, max(8, min(asked, 2**24 // n**2, 2**25 // (n * len(world.task.vocabulary)))))


@law(
    f"{ACCURACY}headline",
    r"It guesses (?P<share>[\d.]+) of (?P<tokens>[\d,]+) tokens right\. Its perplexity is (?P<perplexity>[\d.,]+): it "
    r"is as unsure as a fair choice among (?P<again>[\d.,]+) tokens\.",
)
def guesses_so_many(world: World, share: Shown, tokens: Shown, perplexity: Shown, again: Shown) -> None:
    found = few_windows(world)
    assert share == found.right.mean()
    assert tokens.value == found.targets.size
    assert str(perplexity) == str(again)
    assert perplexity == np.exp(found.nats.mean())


def last_places(world: World, start: str | None) -> slice:
    """The last stretch of a window, of which the sentence says where it begins."""
    return slice(int(start or 1) - 1, None)


@law(f"{ACCURACY}worth", r"(?P<nats>[\d.]+) nats a token\.")
def costs_without_context(world: World, nats: Shown) -> None:
    assert length_of(world) == 1
    assert nats == few_windows(world).nats.mean()


@law(
    f"{ACCURACY}worth",
    r"At place 1 of the window a token costs (?P<first>[\d.]+) nats, at (?P<start>\d+)(?:–(?P<end>\d+))? "
    r"(?P<last>[\d.]+)\.(?P<same> These windows show no difference\.)?(?: The tokens before it (?P<way>save|add) "
    r"(?P<far>[\d.]+) nats\.)?",
)
def context_is_worth(
    world: World, first: Shown, start: str, end: str | None, last: Shown, same: str | None, way: str | None,
    far: Shown | None,
) -> None:  # fmt: skip
    found = few_windows(world)
    one, other = found.nats[:, 0], found.nats[:, last_places(world, start)].mean(axis=1)
    assert int(end or start) == length_of(world)
    assert first == one.mean()
    assert last == other.mean()
    if len(one) == 1:
        assert same is way is None
        return
    room = sum(1.959964 * each.std(ddof=1) / len(each) ** 0.5 for each in (one, other))
    assert (same is not None) == (abs(one.mean() - other.mean()) <= room + 1e-6) == (way is None)
    assert far is None or far == abs(one.mean() - other.mean())
    assert way is None or (way == "save") == (other.mean() < one.mean())


@law(f"{ACCURACY}guessed_sentence", r"(?P<share>[\d.]+) of the tokens are guessed right\.")
def are_guessed(world: World, share: Shown) -> None:
    assert length_of(world) == 1
    assert share == few_windows(world).right.mean()


@law(
    f"{ACCURACY}guessed_sentence",
    r"At place 1 of the window (?P<first>[\d.]+) of the tokens are guessed right, at (?P<start>\d+)(?:–(?P<end>\d+))? "
    r"(?P<last>[\d.]+)\.",
)
def are_guessed_at(world: World, first: Shown, start: str, end: str | None, last: Shown) -> None:
    right = few_windows(world).right
    assert int(end or start) == length_of(world)
    assert first == right[:, 0].mean()
    assert last == right[:, last_places(world, start)].mean()


@dataclass(frozen=True)
class Guessed:
    """How often each of some tokens occurs and how often it is guessed, the most frequent first."""

    times: dict[str, int]
    right: dict[str, int]

    @property
    def frequencies(self) -> dict[str, float]:
        """The share guessed of the more frequent half."""
        middle = sorted(self.times.values())
        least = (middle[(len(middle) - 1) // 2] + middle[len(middle) // 2]) / 2
        return {name: self.right[name] / times for name, times in self.times.items() if times >= least}


def guessed_by_hand(world: World | Guessed) -> Guessed:
    if isinstance(world, Guessed):
        return world
    found, names = many_windows(world), world.task.vocabulary
    times = Counter(found.targets.ravel().tolist())
    first = sorted(times, key=lambda token: (-times[token], token))[:40]
    right = Counter(found.targets[found.right].tolist())
    return Guessed({names[token]: times[token] for token in first}, {names[token]: right[token] for token in first})


@law(
    f"{ACCURACY}token_sentence",
    r"Among (?P<many>\d+) tokens that occur (?P<least>\d+) times? or more, (?P<high>.+) (?P<verb>is|are) guessed most "
    r"often \((?P<most>[\d.]+)\) and (?P<low>.+) least often \((?P<share>[\d.]+)\)\.",
)
def guessed_most_often(
    world: World | Guessed, many: str, least: str, high: str, verb: str, most: Shown, low: str, share: Shown
) -> None:
    found = guessed_by_hand(world)
    assert int(many) == len(found.frequencies)
    assert int(least) == min(found.times[name] for name in found.frequencies)
    for names, shown, end in (
        (high, most, max(found.frequencies.values())),
        (low, share, min(found.frequencies.values())),
    ):
        level = [name for name, value in found.frequencies.items() if f"{value:.2f}" == f"{end:.2f}"]
        assert shown == end
        assert names != high or (verb == "is") == (len(level) == 1)
        named = re.findall(r"‘(.*?)’(?:, | and |$)", names)
        assert named == level if named else int(names.split()[0]) == len(level) > 3


@law(
    f"{ACCURACY}token_sentence",
    r"Among (?P<many>\d+) tokens that occur (?P<least>\d+) times? or more, each is guessed as often "
    r"\((?P<share>[\d.]+)\)\.",
    rare=True,
)
def guessed_as_often(world: Guessed, many: str, least: str, share: Shown) -> None:
    assert int(many) == len(world.frequencies) > 1
    assert int(least) == min(world.times[name] for name in world.frequencies)
    assert {f"{each:.2f}" for each in world.frequencies.values()} == {str(share)}


@law(f"{ACCURACY}token_sentence", r"‘(?P<token>.+)’ is guessed (?P<share>[\d.]+) of the time\.", rare=True)
def guessed_of_the_time(world: Guessed, token: str, share: Shown) -> None:
    assert [*world.frequencies] == [token]
    assert share == world.frequencies[token]


@dataclass(frozen=True)
class Confused:
    """How often each of some tokens was said where each was right, and how often each was right."""

    wrong: dict[tuple[str, str], int]
    """By the token that is right and the one that is said."""
    times: dict[str, int]

    @property
    def level(self) -> list[tuple[str, str]]:
        return [pair for pair, count in self.wrong.items() if count and count == max(self.wrong.values())]


def confused_by_hand(world: World | Confused) -> Confused:
    if isinstance(world, Confused):
        return world
    found, names = many_windows(world), world.task.vocabulary
    times = Counter(found.targets.ravel().tolist())
    first = sorted(times, key=lambda token: (-times[token], token))[:12]
    said = Counter(zip(found.targets.ravel().tolist(), found.guesses.ravel().tolist(), strict=True))
    pairs = [(true, other) for true in first for other in first if true != other]
    return Confused(
        {(names[true], names[other]): said[true, other] for true, other in pairs},
        {names[token]: times[token] for token in first},
    )


@law(
    f"{ACCURACY}confusion_sentence",
    r"Among the (?P<many>\d+) commonest tokens it most often says (?P<pairs>‘.+ times?\))\.",
)
def says_most_often(world: World | Confused, many: str, pairs: str) -> None:
    found = confused_by_hand(world)
    assert int(many) == len(found.times)
    named = re.findall(r"‘(.*?)’ where ‘(.*?)’ is right \(([\d,]+) of ([\d,]+) times?\)", pairs)
    assert [(true, said) for said, true, _, _ in named] == found.level
    assert len(named) <= 3
    for said, true, count, of in named:
        assert (Shown(count).value, Shown(of).value) == (found.wrong[true, said], found.times[true])


@law(
    f"{ACCURACY}confusion_sentence",
    r"Among the (?P<many>\d+) commonest tokens (?P<pairs>\d+) confusions are the most frequent, (?P<count>\d+) times? "
    r"each\.",
    rare=True,
)
def confuses_as_often(world: Confused, many: str, pairs: str, count: str) -> None:
    assert int(many) == len(world.times)
    assert int(pairs) == len(world.level) > 3
    assert int(count) == max(world.wrong.values())


@law(
    f"{ACCURACY}confusion_sentence",
    r"It never says one of the (?P<many>\d+) commonest tokens where another of them is right\.",
    rare=True,
)
def never_says(world: Confused, many: str) -> None:
    assert int(many) == len(world.times) > 1
    assert not any(world.wrong.values())


@law(f"{ACCURACY}confusion_sentence", r"One token alone is asked for, ‘(?P<token>.+)’\.", rare=True)
def one_is_asked_for(world: Confused, token: str) -> None:
    assert [*world.times] == [token]


@law(
    f"{ACCURACY}hardest_sentence",
    r"The hardest of (?P<many>[\d,]+) windows of (?P<length>\d+) tokens? costs (?P<most>[\d.]+) nats a token, the "
    r"easiest (?P<least>[\d.]+)\. The mean is (?P<mean>[\d.]+)\.",
)
def costs_between(world: World, many: Shown, length: str, most: Shown, least: Shown, mean: Shown) -> None:
    nats = many_windows(world).nats.mean(axis=1)
    assert (many.value, int(length)) == (len(nats), length_of(world))
    assert most == nats.max()
    assert least == nats.min()
    assert mean == nats.mean()


@law(
    f"{ACCURACY}hardest_sentence",
    r"(?:The (?P<one>one) window|Each of (?P<many>[\d,]+) windows) of (?P<length>\d+) tokens? costs (?P<nats>[\d.]+) "
    r"nats a token\.",
    rare=True,
)
def costs_alike(world: np.ndarray, one: str | None, many: Shown | None, length: str, nats: Shown) -> None:
    """A test of the words says it: of made-up windows, float [window]."""
    assert {f"{each:.2f}" for each in world} == {str(nats)}
    assert len(world) == (1 if many is None else many.value)
    assert (one is not None) == (len(world) == 1)

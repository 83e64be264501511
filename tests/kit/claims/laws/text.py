"""Laws of the pages of a text: it is cut, numbered and predicted here by other means.

No model of the grid reads a text: `test_what_every_other_page_says…` judges them on the shipped one.
"""

from __future__ import annotations

import re

import numpy as np

from dashboard.models.passages import held_out
from tests.kit.claims import Shown, law
from tests.kit.claims.world import World
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


def text_by_hand(world: World) -> tuple[list[float], list[bool]]:
    """The text that the page has the model write, drawn here: the probability of each token, and was none likelier?"""
    view = dict(world.view)
    temperature, seed = float(view.get("temperature", 0.8)), int(view.get("writing_seed", 0))
    tokens, vocabulary = world.task.begun(view["prompt"]), world.task.known.vocabulary
    said = list(range(len(vocabulary.tokens)))  # the unknown token, SEP and padding stand last, and in no text
    found, first = [], []
    for _ in range(int(view["written"])):
        read = np.array([tokens])
        alike = np.ones_like(read, dtype=bool)
        logits = world.through(Batch(read, read, alike, alike)).logits[0, -1]
        shares = np.exp(logits - logits.max())
        found_likely = shares / shares.sum()
        if temperature:
            drawn = np.exp((logits[said] - logits[said].max()) / temperature).cumsum()
            thrown = np.random.default_rng((seed, len(tokens))).random()
            token = int(np.searchsorted(drawn, thrown * drawn[-1], side="right"))
        else:
            token = int(logits[said].argmax())
        tokens.append(token)
        found.append(float(found_likely[token]))
        first.append(bool(logits[token] >= logits[:-1].max()))
    return found, first


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


# --- a text that the model reads

READS = "app_pages/text/reading/words.headline"
DISTANCE = "app_pages/text/reading/words.distance_title"


@law(
    READS,
    r"(?P<known>Of known words, )?“(?P<word>.*)” surprised it most: (?P<nats>[\d.]+) nats\.",
)
def surprises_most(world: World, known: str | None, word: str, nats: Shown) -> None:
    view = dict(world.view)
    passage, before, _ = held_out(world.task, int(view.get("read_work", 1)), int(view.get("read_place", 1)))
    read = np.array([[world.task.separator, *passage[:-1]]])
    alike = np.ones_like(read, dtype=bool)
    logits = world.through(Batch(read, read, alike, alike)).logits[0]
    logits = logits - logits.max(axis=1, keepdims=True)
    own = logits[np.arange(len(passage)), passage]
    cost = (np.log(np.exp(logits).sum(axis=1)) - own)[before:]
    vocabulary = world.task.known.vocabulary
    spelt = [*vocabulary.tokens, "⟨unk⟩"]
    of_known = np.where(passage[before:] == vocabulary.unknown, -1.0, cost)
    place = int(of_known.argmax() if of_known.max() >= 0 else cost.argmax())
    assert word == spelt[passage[before:][place]].replace(" ", "␣").replace("\n", "↵")
    assert nats == cost[place]
    assert (known is not None) == (cost.max() > cost[place])


@law(
    DISTANCE,
    r"Head (?P<near>[\d.]+) looks nearest, head (?P<far>[\d.]+) farthest: (?P<low>[\d.]+) and "
    r"(?P<high>[\d.]+) tokens\.",
)
def look_near_and_far(world: World, near: str, far: str, low: Shown, high: Shown) -> None:
    """Also on sequences that the page has not read; of a text they are few, so of it less is asked."""
    lawful = world.task.lawful
    batch = world.others(1024) if lawful else world.task.encode(world.task.draw(np.random.default_rng(5), 16, 256))
    seen = world.through(batch)
    n = batch.tokens.shape[1]
    away = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))[n // 2 :]
    found = {
        head: float((seen.patterns[head.site][:, head.index, n // 2 :] * away).sum(axis=2).mean())
        for head in world.heads
        if head.site.endswith("self_attention")
    }
    room = 0.05 + (0.02 if lawful else 0.15) * max(found.values())
    for name, shown in ((near, low), (far, high)):
        assert abs(found[world.head(name)] - shown.value) < room
    assert found[world.head(near)] < min(found.values()) + room
    assert found[world.head(far)] > max(found.values()) - room


@law(DISTANCE, r"(?P<who>Head [\d.]+ looks|All \d+ heads look) (?P<far>[\d.]+) tokens away on average\.", rare=True)
def looks_away(world: World, who: str, far: Shown) -> None:
    """A test of the words says it."""
    raise AssertionError("the shipped models have several heads, and they look near and far")

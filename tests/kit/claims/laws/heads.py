"""Laws of the page "Attention heads": what heads are called, whom they are like, what they look at."""

from __future__ import annotations

import itertools
import re

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import NOISE, costs_of, named
from tests.kit.claims.world import Head, World
from tests.kit.claims.written import is_share

HEADS = "app_pages/attention/heads/words."


@law(f"{HEADS}likeness_sentence", r"No query sees more than one key here, so no two heads can be told apart\.")
@law(f"{HEADS}named_sentence", r"No query sees more than one key here, so where a head looks says nothing about it\.")
def no_choice(world: World) -> None:
    _, seen = world.looked
    assert all(mask.sum(axis=-1).max() < 2 for mask in seen.masks.values())


@law(
    f"{HEADS}without", r".+ has no attention: its decoder gets only (?P<vectors>.+) of (?P<d>\d+) numbers\.", rare=True
)
def has_no_attention(world: World, vectors: str, d: str) -> None:
    """Of a GRU: test_every_page_gru.py says it."""
    assert not world.sizes.attends
    assert int(d) == world.sizes.d_model
    assert vectors == ("one vector" if world.sizes.n_layers == 1 else f"{world.sizes.n_layers} vectors")


@law(f"{HEADS}named_sentence", r"(?!No query)(?P<said>.+)\.")
def are_called(world: World, said: str) -> None:
    """What a head is called, it does for the most part; and one that does a thing nearly always has its name."""
    _, seen = world.looked
    does = {"reads? the expected key": "expected", "looks? at the token before": "previous", "itself": "self"}
    does |= {"themselves": "self", "at the first key": "first", "evenly": "uniform"}
    for part in said.split("; "):
        name = next((name for words, name in does.items() if re.search(words, part)), None)
        if name is None:
            assert "mixed" in part, part
            continue
        labels = part.partition(" ")[2].partition(" reads")[0].partition(" read ")[0].partition(" look")[0]
        if not labels[0].isdigit() and labels.split()[0] not in ("enc", "dec", "cross"):
            continue  # many heads, which the sentence counts
        for label in labels.replace(" and ", ", ").split(", "):
            head = world.head(label)
            pattern, visible = seen.patterns[head.site][:, head.index], seen.masks[head.site][:, head.index]
            chosen = visible.sum(axis=-1) > 1
            n = pattern.shape[-1]
            if name == "expected":
                assert world.shares()[head] >= 0.5 - NOISE
            elif name == "uniform":
                even = visible / np.maximum(visible.sum(axis=-1, keepdims=True), 1)
                assert 1 - 0.5 * np.abs(pattern - even).sum(axis=-1)[chosen].mean() >= 0.9 - NOISE
            else:
                at = {"previous": np.arange(pattern.shape[1]) - 1, "self": np.arange(pattern.shape[1])}
                keys = at.get(name, np.zeros(pattern.shape[1], dtype=int))
                rows = [q for q in range(pattern.shape[1]) if 0 <= keys[q] < n]
                shares = [pattern[b, q, keys[q]] for b in range(len(pattern)) for q in rows if chosen[b, q]]
                assert np.mean(shares) >= 0.5 - 2 * NOISE


@law(
    f"{HEADS}most_read",
    r"Here '(?P<query>.+?)' at (?P<place>\d+) looks most at (?P<tokens>.+)\.",
    rare=True,
)
def reads_most(world: World, query: str, place: str, tokens: str) -> None:
    """Of some head of a text, which the tests of the page have: nothing that is not named has more."""
    batch, seen = world.alone
    names = [world.task.vocabulary[token] for token in batch.tokens[0]]
    called = re.findall(r"'(.+?)' at (\d+) \(([\d.]+)\)", tokens)
    counted = re.search(r"(\d+) tokens \(([\d.]+) each\)$", tokens)
    least = counted[2] if counted else called[-1][2]

    def holds(row: np.ndarray, visible: np.ndarray) -> bool:
        others = np.delete(np.where(visible, row, -1.0), [int(at) - 1 for _, at, _ in called])
        level = sum(is_share(least, each) for each in others)
        sure = sum(is_share(least, each, -2e-4) for each in others)
        enough = len(called) + len(others[others > 0]) * bool(counted) > 2 or others.max() < 0.05 + 2e-4
        return (
            all(visible[int(at) - 1] and is_share(share, row[int(at) - 1]) for _, at, share in called)
            and not any(each > float(least) + 0.0052 for each in others)
            and (sure <= int(counted[1]) <= level if counted else not sure)
            and enough
        )

    assert names[int(place) - 1] == query
    assert all(names[int(at) - 1] == name for name, at, _ in called)
    shares = [float(share) for _, _, share in called] + ([float(counted[2])] if counted else [])
    assert shares == sorted(shares, reverse=True)
    rows = [
        tuple(part[head.site][0, head.index, int(place) - 1] for part in (seen.patterns, seen.masks))
        for head in world.heads
    ]
    assert any(holds(*each) for each in rows)


@law(f"{HEADS}most_read", r"Here '(?P<query>.+?)' at (?P<place>\d+) may see nothing\.", rare=True)
def reads_nothing(world: World, query: str, place: str) -> None:
    raise AssertionError("no shipped model of a text has such a mask: a test of the words says it")


def likenesses(world: World) -> dict[frozenset[Head], float]:
    """The mean cosine of the rows of each two heads of one kind, over all questions and the queries with a choice."""
    _, seen = world.looked

    def alike(a: Head, b: Head) -> float:
        p, q, m = seen.patterns[a.site][:, a.index], seen.patterns[b.site][:, b.index], seen.masks[a.site][:, 0]
        asked = m.sum(axis=-1) > 1
        dots = (p * q).sum(axis=-1) / np.maximum(np.linalg.norm(p, axis=-1) * np.linalg.norm(q, axis=-1), 1e-300)
        return float(dots[asked].mean())

    kind = {head: head.site.split(".")[0] + head.site.split(".")[2] for head in world.heads}
    return {frozenset((a, b)): alike(a, b) for a, b in itertools.combinations(world.heads, 2) if kind[a] == kind[b]}


def pair_named(world: World, names: str) -> frozenset[Head]:
    return frozenset(world.head(each) for each in names.split(" and "))


@law(f"{HEADS}likeness_sentence", r"Heads (?P<pair>.+) are most alike: (?P<cosine>[\d.]+)\.")
def are_alike(world: World, pair: str, cosine: Shown) -> None:
    pairs = likenesses(world)
    assert len(pairs) > 1
    assert abs(pairs[pair_named(world, pair)] - cosine.value) < NOISE
    assert pairs[pair_named(world, pair)] >= max(pairs.values()) - NOISE


@law(
    f"{HEADS}likeness_sentence",
    r"Heads (?P<pair>.+) are the only two to compare: their likeness is (?P<cosine>[\d.]+)\.",
    rare=True,
)
def are_the_only_two(world: World, pair: str, cosine: Shown) -> None:
    assert {*likenesses(world)} == {pair_named(world, pair)}
    assert abs(likenesses(world)[pair_named(world, pair)] - cosine.value) < NOISE


@law(
    f"{HEADS}likeness_sentence",
    r"These pairs of heads are most alike, (?P<cosine>[\d.]+) each: (?P<pairs>.+)\.",
    rare=True,
)
@law(
    f"{HEADS}likeness_sentence",
    r"(?P<many>\d+) of (?P<of>\d+) pairs of heads are most alike: (?P<cosine>[\d.]+) each\.",
    rare=True,
)
@law(
    f"{HEADS}likeness_sentence",
    r"All (?P<of>\d+) pairs of heads are about equally alike: (?P<cosine>[\d.]+) each\.",
    rare=True,
)
def as_much_alike(
    world: World, cosine: Shown, pairs: str | None = None, many: str | None = None, of: str | None = None
) -> None:
    """None is more alike, and as many as are said are as much alike, as far as other questions tell."""
    found = likenesses(world)
    level = {pair for pair, alike in found.items() if abs(alike - cosine.value) < NOISE}
    assert max(found.values()) < cosine.value + NOISE
    assert of is None or int(of) == len(found)
    if pairs is not None:
        assert {pair_named(world, each) for each in pairs.split("; ")} <= level
    else:
        assert len(level) >= int(many or of or 0) > 1


@law(f"{HEADS}likeness_sentence", r"There are no two heads to compare\.")
def no_two(world: World) -> None:
    assert not likenesses(world)


STANDS = (
    r"(?: (?P<missing>\d+) of (?P<all>\d+) heads are left out, because one of the two metrics is not defined for "
    r"them\.)?"
)


@law(
    f"{HEADS}scatter_sentence",
    r"Head (?P<head>.+) stands highest: drop when removed (?P<drop>[−\d.]+)(?: ± (?P<half>[\d.]+))?, expected key "
    rf"(?P<share>[\d.]+)(?: ± [\d.]+)?\.{STANDS}",
)
def stands_highest(
    world: World, head: str, drop: Shown, half: str | None, share: Shown, missing: str | None, all: str | None
) -> None:
    shares = {each: value for each, value in world.shares().items() if value == value}
    found = costs_of(world)
    assert abs(found[world.head(head)] - drop.value) < NOISE
    assert found[world.head(head)] >= max(found[each] for each in shares) - 2 * NOISE
    assert abs(shares[world.head(head)] - share.value) < NOISE
    assert int(missing or 0) == len(world.heads) - len(shares)
    assert all is None or int(all) == len(world.heads)


@law(
    f"{HEADS}scatter_sentence",
    rf"(?:(?P<many>\d+) heads|Heads (?P<heads>.+)) stand highest: drop when removed (?P<drop>[−\d.]+) each\.{STANDS}",
    rare=True,
)
def stand_highest(
    world: World, many: str | None, heads: str | None, drop: Shown, missing: str | None, all: str | None
) -> None:
    shares = {each: value for each, value in world.shares().items() if value == value}
    found = {each: costs_of(world)[each] for each in shares}
    level = sum(abs(each - drop.value) < NOISE for each in found.values())
    assert level >= (int(many) if many else len(named(world, heads or "")))
    assert all is None or int(all) == len(world.heads)
    assert int(missing or 0) == len(world.heads) - len(shares)
    assert max(found.values()) < drop.value + 2 * NOISE
    assert heads is None or {*named(world, heads)} <= {*shares}


@law(f"{HEADS}scatter_sentence", r"No head here has values for both metrics: expected key and drop when removed\.")
def no_values(world: World) -> None:
    """What may see one key alone has no share of its own: nothing was chosen."""
    _, seen = world.looked
    choice = {site: mask.sum(axis=-1).max() > 1 for site, mask in seen.masks.items()}
    assert all(each != each or not choice[head.site] for head, each in world.shares().items())

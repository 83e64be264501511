"""Laws of the words that several pages use: where heads look, what removing them costs, what was learned when."""

from __future__ import annotations

import math
import re

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.world import Head, World, expected_of, spans
from tests.kit.claims.written import LARGEST, are_largest, reads
from transformer import masks

NOISE = 0.06
"""How far a mean over 256 sequences or more may lie from the same over others: four standard errors."""
HEAD, SHARE = r"(?P<head>\d+\.\d+(?: \([^)]+\))?)", r"(?P<share>[\d.]+)"
WHERE = r"(?:, at (?:the (?P<seeing>\d+) of (?P<of>\d+)|those (?P<part>[\d.]+) of the) outputs that may see it)?"


FOREMOST = r"(?:(?P<many>\d+) heads|Heads? (?P<heads>\d+\.\d+.*?))"

# --- vectors

SIZE = "parts/claims.largest_in_size"
STANDS = r"'(?P<token>[^']+)' at (?P<place>\d+)"
TURNED = r"(?P<turned>, changed by its position)?"


def vectors_of(world: World, name: str, place: str | None = None, *, turned: str | None = None) -> list[np.ndarray]:
    """What is called so of any attention, of each head where it is a head's, at a place or at all of them."""
    _, seen = world.alone
    rotates, found = world.sizes.encoding.told == "rotation", []
    for path, each in (seen.written if name == "written" else seen.vectors).items():
        site = path if name == "written" else path.removesuffix(f".{name}")
        if name != "written" and site == path:
            continue
        if name in ("query", "key") and (turned is not None) != (rotates and site.endswith("self_attention")):
            continue
        rows = each[0] if place is None else each[0][..., int(place) - 1 : int(place), :]
        found += [*rows.reshape(-1, rows.shape[-1])]
    return found


def judge_largest(world: World, name: str, d: str, end: str, place: str | None, turned: str | None = None) -> None:
    found = vectors_of(world, name, place, turned=turned)
    assert {len(each) for each in found} == {int(d)}
    assert any(are_largest(each, end) for each in found)


@law(SIZE, rf"Query {STANDS} asks with (?P<d>\d+) numbers?{TURNED}: the framed row\.{LARGEST}")
def asks_with(world: World, token: str, place: str, d: str, turned: str | None, end: str) -> None:
    assert reads(world, token, place)
    judge_largest(world, "query", d, end, place, turned)


@law(SIZE, rf"{STANDS}, (?:one of (?P<n>\d+) keys|the only key), answers with (?P<d>\d+) numbers?{TURNED}\.{LARGEST}")
def answers_with(world: World, token: str, place: str, n: str | None, d: str, turned: str | None, end: str) -> None:
    assert reads(world, token, place)
    assert int(n or 1) in {each.shape[-1] for each in world.alone[1].patterns.values()}
    judge_largest(world, "key", d, end, place, turned)


@law(SIZE, rf"{STANDS} has (?P<d>\d+) numbers? to give\.{LARGEST}")
def has_to_give(world: World, token: str, place: str, d: str, end: str) -> None:
    assert reads(world, token, place)
    judge_largest(world, "value", d, end, place)


@law(
    SIZE,
    r"Through this head's (?P<rows>\d+) rows? of W_O, z becomes (?P<d>\d+) numbers? for the residual stream\."
    rf"{LARGEST}",
)
def becomes(world: World, rows: str, d: str, end: str) -> None:
    assert int(rows) == world.sizes.d_head
    judge_largest(world, "written", d, end, None)


@law(SIZE, rf"{STANDS} comes with (?P<d>\d+) numbers?\.{LARGEST}")
def comes_with(world: World, token: str, place: str, d: str, end: str) -> None:
    assert reads(world, token, place)
    judge_largest(world, "read", d, end, place)


@law(
    SIZE,
    rf"W_O has (?P<rows>\d+) rows?(?P<alone>, one for each number of z\. Each| for each head, and each) of the "
    rf"(?P<d>\d+) outputs adds up (?:all rows|the rows of all heads)\.{LARGEST}",
)
def adds_up(world: World, rows: str, alone: str, d: str, end: str) -> None:
    assert int(rows) == world.sizes.d_head
    assert alone.startswith(",") == (world.sizes.n_heads == 1)
    judge_largest(world, "out", d, end, None)


@law(
    "app_pages/attention/inside/steps.division",
    r"The sums of the (?P<keys>\d+) keys that this query may see have (?P<spread>[\d.]+); divided, "
    r"(?P<divided>[\d.]+)\. This query's largest weight is (?P<weight>[\d.]+); without the division it would be "
    r"(?P<bare>[\d.]+)\.",
)
def division(world: World, keys: str, spread: Shown, divided: Shown, weight: Shown, bare: Shown) -> None:
    """Of some query of some head that may see so many keys: its sums are taken one by one."""
    _, seen = world.alone
    root, found = math.sqrt(world.sizes.d_head), []
    for head in world.heads:
        query, key = (seen.vectors[f"{head.site}.{name}"][0, head.index] for name in ("query", "key"))
        masks, patterns = seen.masks[head.site], seen.patterns[head.site][0, head.index]
        bias = None if head.site.endswith("cross_attention") else world.model.positions.bias(len(query), len(key))
        for place, (row, sees) in enumerate(zip(patterns, masks[0, head.index], strict=True)):
            if sees.sum() == int(keys):
                sums = np.array([sum(query[place] * key[each]) for each in np.flatnonzero(sees)])
                added = 0.0 if bias is None else bias[head.index, place].detach().double().numpy()[sees]
                powers = np.exp(sums + added - (sums + added).max())
                found.append((sums.std(), sums.std() / root, row.max(), powers.max() / powers.sum()))
    assert any(all(x == y for x, y in zip((spread, divided, weight, bare), each, strict=True)) for each in found)


STRONGEST = "parts/head_focus.strongest"
BEGINS = r"(?P<several>Of queries that see several keys, the|The) largest weight is (?P<share>[\d.]+)"
AMONG = r"(?:, in (?P<cells>\d+) cells\. In the first of them,|:)"


def is_strongest(pattern: np.ndarray, mask: np.ndarray, several: str, share: Shown, cells: str | None) -> np.ndarray:
    """The cells that may be meant, [cell, 2]: none where the sentence is false of this pattern."""
    choice = mask.sum(axis=1) > 1
    values = np.where(mask & choice[:, None], pattern, -1.0)
    sure, perhaps = (np.argwhere(np.abs(values - share.value) < 0.005 + slack) for slack in (-2e-4, 2e-4))
    right = share == values.max() and len(sure) <= int(cells or 1) <= len(perhaps)
    right = right and several.startswith("Of") == bool((mask.sum(axis=1) == 1).any())
    return perhaps if right and choice.any() else perhaps[:0]


@law(
    STRONGEST,
    rf"{BEGINS}{AMONG} query '(?P<query>[^']+)' at (?P<row>\d+) reads '(?P<key>[^']+)' at (?P<column>\d+)\.",
)
def is_largest_weight(
    world: World, several: str, share: Shown, cells: str | None, query: str, row: str, key: str, column: str
) -> None:
    """Of some head: which one, what stands before the sentence says."""
    _, seen = world.alone
    assert reads(world, query, row)
    assert reads(world, key, column)
    found = [
        is_strongest(
            seen.patterns[head.site][0, head.index], seen.masks[head.site][0, head.index], several, share, cells
        )
        for head in world.heads
    ]
    assert any([int(row) - 1, int(column) - 1] in each.tolist() for each in found)


@law(
    STRONGEST,
    rf"{BEGINS}{AMONG} query '(?P<query>[^']+)' from (?P<row>\d+) on reads '(?P<key>[^']+)' from (?P<column>\d+) on\.",
    rare=True,
)
def is_largest_of_blocks(
    world: World, several: str, share: Shown, cells: str | None, query: str, row: str, key: str, column: str
) -> None:
    """Of a long input, in blocks whose size their names tell: the test of the picture has one."""
    _, seen = world.alone
    first, last = (int(each) for each in query.split("–"))
    factor, found = last - first + 1, []
    assert (row, column) == (str(first), key.split("–")[0])
    for head in world.heads:
        whole, mask = seen.patterns[head.site][0, head.index], seen.masks[head.site][0, head.index]
        starts = [range(0, size, factor) for size in whole.shape]
        blocks, visible = (
            np.array([[all_[q : q + factor, k : k + factor].max() for k in starts[1]] for q in starts[0]])
            for all_ in (whole, mask)
        )
        found.append(is_strongest(blocks, visible, several, share, cells))
    assert any([(int(row) - 1) // factor, (int(column) - 1) // factor] in each.tolist() for each in found)


@law(STRONGEST, r"No query sees more than one key\.")
def no_query_chooses(world: World) -> None:
    assert any(each.sum(axis=-1).max() < 2 for each in world.alone[1].masks.values())


# --- where heads look


def is_where(world: World, seeing: str | None, of: str | None, part: str | None) -> None:
    """At how many outputs the token to be said may be seen at all."""
    _, seen = world.looked
    answers = int(world.task.answers(world.task.length).sum())
    site = next(head.site for head in world.shares())
    rows = (expected_of(world.task) & seen.masks[site][:, 0]).any(axis=2).sum(axis=1).tolist()
    if part is not None:
        assert abs(np.mean(rows) / answers - float(part)) < NOISE
    elif seeing is not None:
        assert {*rows} == {int(seeing)}
        assert int(of or 0) == answers > int(seeing)
    else:
        assert {*rows} == {answers}, "not all outputs may see it"


def are_foremost(found: dict[Head, float], world: World, many: str | None, heads: str | None, share: float) -> None:
    """None has more, and who is not named has less, as far as a sample tells."""
    known = {head: each for head, each in found.items() if each == each}
    assert max(known.values()) < share + 2 * NOISE
    if many is not None:
        assert sum(abs(each - share) < NOISE for each in known.values()) >= int(many) > 4
    else:
        assert all(abs(known[each] - share) < NOISE for each in named(world, heads or ""))


def looks(
    world: World, many: str | None, heads: str | None, share: Shown, seeing: str | None, of: str | None,
    part: str | None,
) -> None:  # fmt: skip
    are_foremost(world.shares(), world, many, heads, share.value)
    is_where(world, seeing, of, part)


LOOKS = "app_pages/attention/heads/words.headline", "parts/claims.looks"
for name in LOOKS:

    @law(name, rf"{FOREMOST} looks? most at the answer: {SHARE} of (?:its|their) attention is there{WHERE}\.")
    def mostly(
        world: World, many: str | None, heads: str | None, share: Shown, seeing: str | None, of: str | None,
        part: str | None,
    ) -> None:  # fmt: skip
        assert share.value >= 0.5
        looks(world, many, heads, share, seeing, of, part)

    @law(
        name,
        rf"No head looks mostly at the answer\. {FOREMOST} comes? closest: {SHARE} of (?:its|their) attention is "
        rf"there{WHERE}\.",
    )
    def nowhere(
        world: World, many: str | None, heads: str | None, share: Shown, seeing: str | None, of: str | None,
        part: str | None,
    ) -> None:  # fmt: skip
        assert max(each for each in world.shares().values() if each == each) < 0.5 + NOISE
        looks(world, many, heads, share, seeing, of, part)


@law(LOOKS[0], r"Under this mask no head ever sees the token it should output\.")
@law(
    "parts/heads.share_sentence",
    r"Under this mask head \d+\.\d+(?: \([^)]+\))? never sees the token it should output\.",
)
def sees_nothing(world: World) -> None:
    assert all(math.isnan(each) for each in world.shares().values())


@law(
    "parts/heads.share_sentence",
    rf"Head {HEAD} puts (?P<only>only )?{SHARE} of its attention on the token it should output{WHERE}\.",
)
def puts(
    world: World, head: str, only: str | None, share: Shown, seeing: str | None, of: str | None, part: str | None
) -> None:
    assert abs(world.shares()[world.head(head)] - share.value) < NOISE
    assert (only is None) == (share.value >= 0.5) or share.value == 0.5
    is_where(world, seeing, of, part)


@law("parts/heads.share_sentence", rf"This task expects no particular key of head {HEAD}\.", rare=True)
def expects_nothing(world: World, head: str) -> None:
    assert world.head(head) not in world.shares()


@law(
    "parts/heads.habit_sentence",
    rf"Head {HEAD} looks at (?P<at>[a-z ]+): {SHARE} of its attention is there\.",
    rare=True,
)
@law("parts/heads.habit_sentence", rf"No single place has half of head {HEAD}’s attention: (?P<at>.*)\.", rare=True)
def of_a_text(world: World, at: str, head: str = "", share: Shown | None = None) -> None:
    """The pages of texts hold it (test_every_page_text.py)."""
    raise AssertionError("no model of the grid reads a text")


LOOKS = (
    r"(?:looks at (?P<itself>the token it should output): (?P<all>[\d.]+) of its attention is there|looks "
    r"(?P<far>\d+) tokens? (?P<side>after|before) the one it should output: (?P<there>[\d.]+) of its attention is "
    r"there, and (?P<right>[\d.]+) on that one|looks mostly at no single place\. (?:The token (?P<near>\d+) tokens? "
    r"(?P<beside>after|before) the one it should output|(?P<own>The token it should output)) comes closest: "
    r"(?P<most>[\d.]+) of its attention is there(?:\. On that one is (?P<rest>[\d.]+))?)\."
)


@law("parts/heads.alignment_sentence", rf"The decoder {LOOKS}")
def looks_beside(world: World, **said: str | None) -> None:
    """On the page's question, or in the mean over many: the share of attention so far from the token to be said."""
    patterns = [world.alone[1].patterns["decoder.0.cross_attention"][0, 0]]
    patterns.append(world.looked[1].patterns["decoder.0.cross_attention"][:, 0].mean(axis=0))
    assert any(is_beside(world, pattern, **said) for pattern in patterns)


def is_beside(world: World, pattern: np.ndarray, **said: str | None) -> bool:
    """Does that sentence say where this pattern [query, key] looks, counted from the token to be said?"""
    wanted = [int(row.argmax()) for row in world.task.expected_keys(world.question)]
    n = pattern.shape[1]
    shares = {
        later: float(
            np.mean([pattern[query, key + later] if 0 <= key + later < n else 0.0 for query, key in enumerate(wanted)])
        )
        for later in range(1 - n, n)
    }
    far, side = (said["far"], said["side"]) if said["far"] else (said["near"], said["beside"])
    at = int(far) * (1 if side == "after" else -1) if far else 0
    share = float(said["all"] or said["there"] or said["most"] or "nan")
    clear, right = said["most"] is None, said["right"] or said["rest"]
    return bool(
        abs(shares[at] - share) < NOISE
        and (shares[at] >= 0.5 - NOISE if clear else shares[at] < 0.5 + NOISE)
        and shares[at] > max(shares.values()) - NOISE
        and (right is None or abs(shares[0] - float(right)) < NOISE)
    )


# --- what removing them costs


def costs_of(world: World) -> dict[Head, float]:
    """What of the answer's accuracy each removal takes, on sequences that no page has seen.

    Where the page is one with an edit, that has been made before. A recurrent network reads the right answers so far
    here, unlike where its accuracy is measured.
    """
    answers, edit = world.task.answers(world.task.length), dict(world.view).get("edits", "").removeprefix("zero:")
    gone = tuple(head for head in world.heads if f"{head.site}.{head.index}" == edit)
    if "_costs" not in world.__dict__:
        batch = world.others(2048)

        def right(without: tuple[Head, ...]) -> float:
            return float((world.through(batch, without).said == batch.targets)[:, answers].mean())

        before = right(gone)
        world.__dict__["_costs"] = {head: before - right((*gone, head)) for head in world.heads}
    return world.__dict__["_costs"]


def named(world: World, labels: str) -> list[Head]:
    return [world.head(each) for each in labels.replace(" or ", ", ").replace(" and ", ", ").split(", ")]


@law("parts/claims.works", r"Head (?P<head>.+) does the work: removing it costs (?P<cost>[\d.]+) of the accuracy\.")
def one_works(world: World, head: str, cost: Shown) -> None:
    found = costs_of(world)
    assert abs(found[world.head(head)] - cost.value) < NOISE
    assert sum(each >= 0.5 - NOISE for each in found.values()) >= 1
    assert all(each < 0.5 + NOISE for h, each in found.items() if h != world.head(head))


@law(
    "parts/claims.works",
    r"Several heads are needed: removing any of (?P<heads>.+) costs at least a half of the accuracy\.",
    rare=True,
)
def several_work(world: World, heads: str) -> None:
    assert all(costs_of(world)[each] >= 0.5 - NOISE for each in named(world, heads))


for name, form in (
    ("parts/claims.works", r"No head is needed by itself: removing any one costs less than 0\.005 of the accuracy\."),
    (
        "parts/yardstick.dearest",
        r"No head is needed by itself: removing any one costs less than 0\.005 of the answer’s accuracy\.",
    ),
):

    @law(name, form)
    def none_needed(world: World) -> None:
        assert max(costs_of(world).values()) < 0.005 + NOISE


for name, form in (
    (
        "parts/claims.works",
        r"No head does the work alone: removing head (?P<head>.+) costs most, (?P<cost>[\d.]+) of the accuracy\.",
    ),
    ("parts/yardstick.dearest", r"Removing head (?P<head>.+) costs most: (?P<cost>[\d.]+) of the answer’s accuracy\."),
):

    @law(name, form)
    def costs_most(world: World, head: str, cost: Shown) -> None:
        """Also on sequences that the page has not seen."""
        found = costs_of(world)
        assert abs(found[world.head(head)] - cost.value) < NOISE
        assert found[world.head(head)] >= max(found.values()) - 0.005


for name, form in (
    (
        "parts/claims.works",
        r"No head does the work alone: removing head (?P<heads>.+) costs about as much, up to (?P<cost>[\d.]+) of the "
        r"accuracy\.",
    ),
    (
        "parts/yardstick.dearest",
        r"Removing head (?P<heads>.+) costs about as much, up to (?P<cost>[\d.]+) of the answer’s accuracy\.",
    ),
):

    @law(name, form)
    def cost_as_much(world: World, heads: str, cost: Shown) -> None:
        found = costs_of(world)
        assert len(named(world, heads)) > 1
        assert max(found[each] for each in named(world, heads)) >= max(found.values()) - NOISE
        assert all(abs(found[each] - cost.value) < 2 * NOISE for each in named(world, heads))


@law(
    "parts/yardstick.ByLoss.furthest",
    r"A token costs (?:most|about as much|most, and about as much,) with (?P<what>.+): (?:up to )?(?P<mean>[\d.]+) "
    r"nats, (?P<was>[\d.]+) before\.",
    rare=True,
)
def costs_most_of_a_text(world: World, what: str, mean: Shown, was: Shown) -> None:
    """The page of a text holds it (test_yardstick.py)."""
    raise AssertionError("no model of the grid reads a text")


TOGETHER = "parts/claims.together"


def beyond(world: World, *pair: Head) -> float:
    """What removing two heads costs beyond the sum of each by itself."""
    answers = world.task.answers(world.task.length)
    before, after = (world.right(2048, without=gone, other=True)[:, answers].mean() for gone in ((), pair))
    return float(before - after - sum(costs_of(world)[each] for each in pair))


@law(TOGETHER, r"Removing two heads together costs the sum of removing each alone, to within 0\.005\.", rare=True)
def is_the_sum(world: World) -> None:
    pairs = [(a, b) for i, a in enumerate(world.heads) for b in world.heads[i + 1 :]]
    assert all(abs(beyond(world, *pair)) < 0.005 + NOISE for pair in pairs)


@law(
    TOGETHER,
    r"Removing two heads together costs the sum of removing each alone, as far as these sequences can tell "
    r"\(± (?P<noise>[\d.]+)\)\.",
)
def is_about_the_sum(world: World, noise: Shown) -> None:
    pairs = [(a, b) for i, a in enumerate(world.heads) for b in world.heads[i + 1 :]]
    assert all(abs(beyond(world, *pair)) < noise.value + NOISE for pair in pairs)


@law(
    TOGETHER,
    r"Removing heads (?P<one>[\d.]+(?: \([^)]+\))?) and (?P<other>[\d.]+(?: \([^)]+\))?) together costs "
    r"(?P<extra>[\d.]+) (?P<way>more|less) than the sum of removing each alone(?:: (?P<why>one makes up for the other|"
    r"they are links of one chain)\.|\. Alone they cost (?P<a>[−\d.]+) and (?P<b>[−\d.]+), together (?P<both>[−\d.]+)\."
    r"(?P<below> Below 0, accuracy rises\.)?)",
)
def is_not_the_sum(
    world: World, one: str, other: str, extra: Shown, way: str, why: str | None, a: Shown | None, b: Shown | None,
    both: Shown | None, below: str | None,
) -> None:  # fmt: skip
    pair = world.head(one), world.head(other)
    found, alone = beyond(world, *pair), [costs_of(world)[each] for each in pair]
    together = found + sum(alone)
    assert (found > 0) == (way == "more")
    assert abs(found - (extra.value if way == "more" else -extra.value)) < 3 * NOISE
    if a is not None and b is not None and both is not None:
        assert abs(a.value - alone[0]) < NOISE
        assert abs(b.value - alone[1]) < NOISE
        assert abs(both.value - together) < 2 * NOISE
        assert (below is not None) == (min(a.value, b.value, both.value) < 0)
    elif way == "more":
        assert "makes up" in str(why)
        assert min(alone) > -NOISE, "without one of them it is better"
        assert together > max(alone) - NOISE
    else:
        assert "chain" in str(why)
        assert min(alone) > 0, "one of them does nothing by itself"
        assert together > max(alone) - 3 * NOISE, "without both it is better than without one"


# --- what was learned, and when


def last(world: World) -> World:
    return world.at_step(max(world.run.snapshots()))


def first(world: World) -> World:
    return world.at_step(min(world.run.snapshots()))


MOMENT, FOUND = "parts/film.moment_sentence", "the token to say next"


@law(
    MOMENT,
    r"This model has no heads: (?P<known>\d+) of (?P<places>\d+) places are right nine times in ten at step "
    r"(?P<step>\d+)\.",
)
def has_no_heads(world: World, known: str, places: str, step: str) -> None:
    assert not world.heads
    right = last(world).right(4096, other=True).mean(axis=0)
    assert (len(right), max(world.run.snapshots())) == (int(places), int(step))
    assert (right > 0.9 + 0.06).sum() <= int(known) <= (right > 0.9 - 0.06).sum()


@law(MOMENT, rf"At step (?P<step>\d+) the decoder {LOOKS}")
def looks_in_the_end(world: World, step: str, **said: str | None) -> None:
    assert max(world.run.snapshots()) == int(step)
    looks_beside(last(world), **said)


@law(
    MOMENT,
    rf"Head {HEAD} learns to look at {FOUND} in steps (?P<began>\d+) to (?P<ended>\d+): from (?P<before>[\d.]+) to "
    r"(?P<after>[\d.]+)\.",
)
def learns(world: World, head: str, began: str, ended: str, before: Shown, after: Shown) -> None:
    then, now = first(world).shares(), last(world).shares()
    assert abs(then[world.head(head)] - before.value) < NOISE
    assert abs(now[world.head(head)] - after.value) < NOISE
    assert after.value - before.value >= 0.2 - 0.01
    assert min(world.run.snapshots()) <= int(began) < int(ended) <= max(world.run.snapshots())
    low, high = before.value + 0.1 * (after.value - before.value), before.value + 0.9 * (after.value - before.value)
    if int(began) in world.run.snapshots() and int(ended) in world.run.snapshots():
        assert world.at_step(int(began)).shares()[world.head(head)] <= low + 2 * NOISE
        assert world.at_step(int(ended)).shares()[world.head(head)] >= high - 2 * NOISE


@law(
    MOMENT,
    rf"No head’s attention on {FOUND} has risen by 0\.20\. {FOREMOST} (?:has|have) most there, (?P<after>[\d.]+), and "
    r"had (?P<before>[\d.]+)(?: to (?P<up_to>[\d.]+))? at step (?P<step>\d+)\.",
)
def has_not_risen(
    world: World, many: str | None, heads: str | None, after: Shown, before: Shown, up_to: Shown | None, step: str
) -> None:
    then, now = first(world).shares(), last(world).shares()
    assert all(now[each] - then[each] < 0.2 + 2 * NOISE for each in now if now[each] == now[each])
    are_foremost(now, world, many, heads, after.value)
    began = [then[each] for each in (named(world, heads) if heads else now) if then[each] == then[each]]
    assert min(began) < before.value + NOISE
    assert max(began) > (up_to or before).value - NOISE
    assert int(step) == min(world.run.snapshots())


@law(MOMENT, rf"{FOREMOST} looks? most at {FOUND}: {SHARE} of (?:its|their) attention is there\.")
def at_one_step(world: World, many: str | None, heads: str | None, share: Shown) -> None:
    assert len(world.run.snapshots()) == 1
    are_foremost(last(world).shares(), world, many, heads, share.value)


@law(MOMENT, rf"Under this mask no head ever sees {FOUND}\.")
def never_sees(world: World) -> None:
    assert world.task.expected_keys(world.question).any()
    assert all(math.isnan(each) for each in world.shares().values())


@law(MOMENT, r"This task has no token that a head would have to look at\.", rare=True)
def no_token(world: World) -> None:
    assert not world.task.expected_keys(world.question).any()


ORDER = (
    r"(?:Right at least nine times in ten from then on: (?P<learned>[^.]+)\.)?(?: ?(?P<blind>[^.]+) cannot be: "
    r"nothing in "
    r"sight there tells the answer\.)?(?: ?(?P<partly>[^.]+) cannot be: what is in sight there tells the answer "
    r"only in "
    r"part\.)?(?: ?(?P<open>[^.]+) could be(?:, but not yet|(?P<untold> with positions, and this model has none))\.)?"
)


@law("parts/film.order_sentence", ORDER)
def was_learned(
    world: World, learned: str | None, blind: str | None, partly: str | None, open: str | None, untold: str | None
) -> None:
    blindfold = world.sizes.positions == "none" and not world.sizes.recurrent
    assert open is None or (untold is not None) == blindfold
    task, most = world.task, world.most()
    names, unread = task.target_names(task.length), world.most(blind=True)
    right = last(world).right(2048, other=True).mean(axis=0)
    found: list[int] = []
    for part in learned.split(", ") if learned else []:
        targets, _, step = part.rpartition(" from step ")
        carried = targets if targets else part
        if not step.isdigit():
            continue
        assert int(step) in world.run.snapshots()
        found += spans(carried, names) if carried in names or " to " in carried or " and " in carried else []
    assert all(right[each] >= 0.9 - NOISE for each in found)
    for text in (blind, partly, open):
        assert not text or not {*spans(text, names)} & {*found}
    reach = world.reach(task.length)
    for target in spans(blind, names) if blind else []:
        assert most[target] <= unread[target] + 1e-6, (names[target], most[target], unread[target])
    for target in spans(partly, names) if partly else []:  # it need not change what is likeliest
        assert unread[target] <= most[target] + 1e-9
        assert most[target] < 0.9 + 0.02
        assert reach[target].any()
    for target in spans(open, names) if open else []:
        assert most[target] >= 0.9 - 0.02
        assert right[target] < 0.9 + NOISE


# --- the verdict, and the loss

END = (
    r"(?P<end>your mask leaks|not yet at the ceiling|the mask holds|every answer can be known, and is|the mask shows "
    r"the answers, and the model does not use them)"
)


@law("parts/learning.verdict_sentence", rf"(?P<parts>.+?)(?:, chance (?P<chance>[\d.]+))?: {END}\.")
def verdict(world: World, parts: str, chance: Shown | None, end: str) -> None:

    task, right = world.task, world.right(world.sequences)
    groups = np.array(task.groups(task.length))
    honest, least, greatest = world.most(honest=True), world.least(honest=True), world.greatest(honest=True)
    assert chance is None or chance == 1 / task.symbols
    leaks, short = [], []
    found = {part: part for part in task.parts if (groups == part).any()}
    assert sum(part.lower() in parts.lower() for part in found) == len(found)
    for part in found:
        named = re.search(
            rf"{part}(?: from the source)? (?P<share>[\d.]+)(?P<at> = chance)?(?: \(the best guess without knowing the "
            rf"length has (?P<best>[\d.]+)(?:, or (?P<worst>[\d.]+) if every tie goes wrong)?\)"
            r"| (?P<random>\(random symbols, which can only be guessed\)))?",
            parts,
            re.IGNORECASE,
        )
        assert named, part
        chosen = groups == part
        share, count = float(right[:, chosen].mean()), len(right) * int(chosen.sum())
        assert Shown(named["share"]) == share
        slack = 5.5 * math.sqrt(max(share * (1 - share), 1 / count) / count)
        assert not named["at"] or abs(share - 1 / task.symbols) <= slack
        if named["best"]:
            assert abs(float(named["best"]) - honest[chosen].mean()) < 0.02
        assert bool(named["random"]) == (
            not (task.answers(task.length) & chosen).any()
            and not (world.greatest() > greatest + 1e-9).any()
            and not np.allclose(honest[chosen], greatest[chosen])
        )
        if named["worst"]:
            assert abs(float(named["worst"]) - least[chosen].mean()) < 0.02
        leaks.append((share - float(greatest[chosen].mean()), slack))
        short.append(
            (float(least[chosen].mean()) - share, slack, bool((honest[chosen] > 1 / task.symbols + 1e-6).any()))
        )
    if end == "your mask leaks":
        assert any(more > 0 for more, _ in leaks)
        return
    assert all(more <= slack + 0.02 for more, slack in leaks), "more is right than can be, and it is not said"
    if end == "not yet at the ceiling":
        assert any(less > 0.005 and knowable for less, _, knowable in short)
        return
    assert all(less <= slack + 0.02 or not knowable for less, slack, knowable in short), "less is right than can be"
    shown = bool((world.greatest() > greatest + 1e-9).any())
    assert (end == "the mask shows the answers, and the model does not use them") == shown
    assert shown or (end == "the mask holds") == bool((honest < 1 - 1e-9).any())


@law(
    "parts/learning.untold_sentence",
    r"The model is not told the length\. The ceiling is the most that can be right in sequences of length "
    r"(?P<length>\d+): (?P<most>[\d.]+) at (?P<below>[^.]+)\. There the best guess of a model that does not know the "
    r"length is right (?P<best>[\d.]+) of the time\.(?: At (?P<ends>[^.]+) it guesses that SEP comes: SEP is likelier "
    r"than any one symbol\.)?",
)
def untold(world: World, length: str, most: Shown, below: str, best: Shown, ends: str | None) -> None:
    n, task = int(length), world.task
    names, answers = task.target_names(n), task.answers(n)
    guessed, greatest = world.most(n), world.greatest(n)
    where = guessed < greatest - 1e-9
    assert len(task.lengths) > 1
    assert spans(below, names) == np.flatnonzero(where).tolist()
    assert abs(most.value - greatest[where].mean()) < 0.02
    assert abs(best.value - guessed[where].mean()) < 0.02
    never = where & (guessed < 1e-9) & ~answers
    assert (spans(ends, names) if ends else []) == np.flatnonzero(never).tolist()
    causal = masks.parse(world.sizes.mask).matrix(len(names)).sum() == len(names) * (len(names) + 1) / 2
    for target in np.flatnonzero(never & causal).tolist():  # SEP, of the lengths that are left, against one symbol
        left = len([each for each in task.lengths if each > target])
        assert 1 / left > (1 - 1 / left) / task.symbols


@law("parts/learning.untold_sentence", None)
def told(world: World) -> None:
    """Where the best guess is at the ceiling."""
    assert np.allclose(world.most(), world.greatest())


@law(
    "parts/learning.loss_sentence",
    r"The loss is (?P<loss>[\d.]+) nats after (?P<steps>\d+) steps?\. Guessing a symbol costs (?P<guess>[\d.]+); "
    r"(?P<masked>under this mask )?no model gets below (?P<floor>[\d.]+)(?: \(estimated, ± (?P<half>[\d.]+)\))?\.",
)
def loss(
    world: World, loss: Shown, steps: str, guess: Shown, masked: str | None, floor: Shown, half: str | None
) -> None:
    assert world.sizes.recurrent == (masked is None)
    metrics = world.run.metrics()
    assert int(steps) == metrics[-1]["step"]
    assert loss == metrics[-1]["loss"]
    assert guess == math.log(world.task.symbols)
    room = 0.02 if half is None else 0.02 + 2 * float(half)
    assert abs(floor.value - world.floor) < room, world.floor


@law("parts/learning.loss_sentence", r"No step has been recorded yet\.")
def no_loss(world: World) -> None:
    assert not world.run.metrics()


@law(
    "parts/learning.floor_sentence",
    r"The floor: (?P<guessed>\d+) of (?P<of>\d+) tokens can only be guessed, which costs ln (?P<symbols>\d+) = "
    r"(?P<each>[\d.]+) each\.(?: A token of the question weighs (?P<weight>[\d.]+), one of the answer 1\.)? So it "
    r"is .* = "
    r"(?P<floor>[\d.]+)\.",
)
def floor(world: World, guessed: str, of: str, symbols: str, each: Shown, weight: str | None, floor: Shown) -> None:
    assert int(of) == world.task.count_targets(world.task.length)
    assert int(guessed) == int((world.most() <= 1 / world.task.symbols + 1e-9).sum())
    assert (int(symbols), each) == (world.task.symbols, each)
    assert each == math.log(world.task.symbols)
    assert floor == world.floor


@law("parts/learning.floor_sentence", None)
def no_floor_in_a_line(world: World) -> None:
    """Where it is 0, or no sum of a few terms."""
    partly = (world.most() < 1 - 1e-9) & (world.most() > 1 / world.task.symbols + 1e-9)
    assert world.floor < 1e-6 or partly.any() or len(world.task.lengths) > 1

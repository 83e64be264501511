"""Laws of the pages on heads: all of them, and one of them inside."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import NOISE, costs_of, named
from tests.kit.claims.world import Head, World
from tests.kit.claims.written import is_share
from tests.kit.heads_by_hand import mapped

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


def readings(world: World, query: int, key: int) -> list[float]:
    _, seen = world.alone
    return [
        float(each[0, head, query, key])
        for each in seen.patterns.values()
        for head in range(each.shape[1])
        if query < each.shape[2] and key < each.shape[3] and each[0, head, query].argmax() == key
    ]


ASKS = r"(?:Query )?'(?P<token>[^']+)' at (?P<place>\d+)"
ASKED = r"(?:the source's )?'(?P<key>[^']+)' at (?P<at>\d+)(?: of the source)?"


@law(
    "app_pages/attention/inside/steps.headline",
    rf"{ASKS}(?: of the source)? reads {ASKED} with (?P<share>[\d.]+): here is why\.",
)
def reads(world: World, token: str, place: str, key: str, at: str, share: Shown) -> None:
    assert any(share == each for each in readings(world, int(place) - 1, int(at) - 1))


@law(
    "app_pages/attention/inside/steps.headline",
    rf"{ASKS}(?: of the source)? can only read {ASKED}: it may see nothing else\.",
)
def reads_one(world: World, token: str, place: str, key: str, at: str) -> None:
    _, seen = world.alone
    assert any(
        mask[0, 0, int(place) - 1].sum() == 1 and mask[0, 0, int(place) - 1, int(at) - 1]
        for mask in seen.masks.values()
        if int(place) <= mask.shape[2]
    )


@law(
    "app_pages/attention/inside/steps.headline",
    rf"{ASKS} may see nothing: it attends to nothing, and its head writes nothing\.",
    rare=True,
)
def reads_none(world: World, token: str, place: str) -> None:
    _, seen = world.alone
    assert any(not mask[0, 0, int(place) - 1].any() for mask in seen.masks.values() if int(place) <= mask.shape[2])


def map_through(world: World, x: np.ndarray, stack: str, site: str, *, onward: bool = False) -> np.ndarray:
    """Vectors on the straight way to what an attention reads, or `onward` from what it writes to the unembedding: what
    is linear of each norm there. Of no `site`: through the whole stack, to the memory."""
    behind = [
        f"{stack}.{layer}.around_{part}.after"
        for layer in range(world.sizes.n_layers)
        for part in ("self", "cross", "feed_forward")
        if f"{stack}.{layer}.{part}{'_attention' * (part != 'feed_forward')}" in sublayers_of(world)
    ]
    if not site:
        names = [*behind, "memory_norm"]
    else:
        own = f"{site.rpartition('.')[0]}.around_{site.rpartition('.')[2].removesuffix('_attention')}"
        at = behind.index(f"{own}.after")
        names = [*behind[at:], "final_norm"] if onward else [*behind[:at], f"{own}.before"]
    for name in names:
        x = mapped(x, world.model.get_submodule(name))
    return x


def sublayers_of(world: World) -> set[str]:
    """The paths of all sub-layers."""
    return {".".join(name.split(".")[:3]) for name in world.weights}


def circuits_of(world: World, head: Head) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """QK of all tokens but the padding, QK of all positions, and OV: products of weights alone."""
    w, sizes, site = world.weights, world.sizes, head.site
    stack, width = site.split(".")[0], world.sizes.d_head
    rows, across = slice(head.index * width, (head.index + 1) * width), site.endswith("cross_attention")

    def asked(x: np.ndarray) -> np.ndarray:
        return map_through(world, x, "encoder", "") if across else map_through(world, x, stack, site)

    def fit(x: np.ndarray) -> np.ndarray:
        query = map_through(world, x, stack, site) @ w[f"{site}.query.weight"][rows].T
        return query @ (asked(x) @ w[f"{site}.key.weight"][rows].T).T / math.sqrt(width)

    embedded = w["embedding.weight"][:-1] * (math.sqrt(sizes.d_model) if sizes.scale_embeddings else 1.0)
    n, told, places = world.model.n_ctx, world.model.positions.vectors(world.model.n_ctx), None
    if told is not None:
        places = fit(told.detach().double().numpy())
    elif not across and (bias := world.model.positions.bias(n, n)) is not None:
        places = bias[head.index].detach().double().numpy()
    said = None
    if stack == world.stack:
        written = asked(embedded) @ w[f"{site}.value.weight"][rows].T @ w[f"{site}.out.weight"][:, rows].T
        said = (map_through(world, written, stack, site, onward=True) @ w["unembedding.weight"].T)[:, :-1]
    return fit(embedded), places, said


def best_of(rows: np.ndarray, own: np.ndarray, margin: float = 1e-5) -> tuple[int, int]:
    """In how many rows one of the `own` columns is the greatest: for certain, and as far as rounding can tell."""
    inside = np.where(own, rows, -np.inf).max(axis=1)
    outside = np.where(own, -np.inf, rows).max(axis=1)
    return int((inside > outside + margin).sum()), int((inside >= outside - margin).sum())


CIRCUITS = "app_pages/attention/inside/circuits."


def fitting(world: World) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Of each head to which positions are told: how well each query and key that may be seen fit, and which keys of an
    answer are where it stands, where its keys and queries are the task's."""
    _, seen = world.alone
    expected, found = world.task.expected_keys(world.question), []
    for head in world.heads:
        fit, mask = circuits_of(world, head)[1], seen.masks[head.site][0, 0]
        if fit is not None:
            carries = not world.task.has_source or head.site.endswith("cross_attention")
            fit = np.where(mask, fit[: mask.shape[0], : mask.shape[1]], -np.inf)
            found.append((fit, expected if carries and (expected & mask).any() else None))
    return found


@law(
    f"{CIRCUITS}position_sentence",
    r"Of what it may see, the query at (?P<query>\d+) fits (?:the keys? at (?P<keys>[\d, and]+) best|(?P<many>\d+) "
    r"keys best, all alike); for (?P<right>\d+) of (?P<of>\d+) answers? that can be seen the best key is where the "
    r"answer stands\.",
)
def fits_best(world: World, query: str, keys: str | None, many: str | None, right: str, of: str) -> None:
    def holds(fit: np.ndarray, expected: np.ndarray | None) -> bool:
        if expected is None:
            return False
        answers = np.flatnonzero((expected & np.isfinite(fit)).any(axis=1))
        row = fit[int(query) - 1]
        level = np.flatnonzero(row >= row.max() - 0.0101)
        named = [int(each) - 1 for each in re.findall(r"\d+", keys or "")]
        sure, _ = best_of(fit[answers], expected[answers], 0.0101)
        _, perhaps = best_of(fit[answers], expected[answers])
        return (
            int(query) - 1 == answers[0]
            and int(of) == len(answers)
            and sure <= int(right) <= perhaps
            and {*named} <= {*level.tolist()}
            and (many is None or int(many) <= len(level))
        )

    assert any(holds(*each) for each in fitting(world))


@law(
    f"{CIRCUITS}position_sentence",
    r"Of what may be seen, the query at (?P<query>\d+) and the key at (?P<key>\d+) fit best: (?P<fit>[−\d.]+)\.",
)
@law(
    f"{CIRCUITS}position_sentence",
    r"Of what may be seen, (?P<many>\d+) pairs of a query and a key fit best: (?P<fit>[−\d.]+) each\.",
    rare=True,
)
def pair_fits_best(
    world: World, fit: Shown, query: str | None = None, key: str | None = None, many: str | None = None
) -> None:
    found = [values for values, expected in fitting(world) if expected is None and fit == values.max()]
    if query is not None and key is not None:
        assert any(fit == values[int(query) - 1, int(key) - 1] for values in found)
    else:
        assert any((values >= values.max() - 0.0101).sum() >= int(many or 0) > 1 for values in found)


@law(f"{CIRCUITS}position_sentence", r"No query may see a key\.", rare=True)
def no_query_sees(world: World) -> None:
    assert any(not np.isfinite(values).any() for values, _ in fitting(world))


LIKE = r"; for (?P<like>\d+) of (?P<of>\d+) tokens the best key is the token itself\."


@law(
    f"{CIRCUITS}token_sentence",
    rf"Query '(?P<query>[^']+)' and key '(?P<key>[^']+)' fit best: (?P<fit>[−\d.]+){LIKE}",
)
@law(
    f"{CIRCUITS}token_sentence",
    rf"(?P<many>\d+) pairs of a query and a key fit best: (?P<fit>[−\d.]+) each{LIKE}",
    rare=True,
)
def tokens_fit_best(
    world: World, fit: Shown, like: str, of: str, query: str | None = None, key: str | None = None,
    many: str | None = None,
) -> None:  # fmt: skip
    def holds(values: np.ndarray) -> bool:
        sure, perhaps = best_of(values, np.eye(len(values), dtype=bool))
        if not (fit == values.max() and int(of) == len(values) and sure <= int(like) <= perhaps):
            return False
        if query is None or key is None:
            return (values >= values.max() - 0.0101).sum() >= int(many or 0) > 1
        return fit == values[world.task.vocabulary.index(query), world.task.vocabulary.index(key)]

    assert any(holds(circuits_of(world, head)[0]) for head in world.heads)


@law(f"{CIRCUITS}token_sentence", r"All are 0: this head asks for no token\.", rare=True)
def asks_for_none(world: World) -> None:
    assert any(not circuits_of(world, head)[0].any() for head in world.heads)


@law(
    f"{CIRCUITS}copy_sentence",
    r"For (?P<copied>\d+) of (?P<of>\d+) symbols, looking at one adds most to its own logit(?P<verdict>: this head "
    r"copies)?\.",
)
def adds_most_to_its_own(world: World, copied: str, of: str, verdict: str | None) -> None:
    symbols = world.task.symbols
    assert int(of) == symbols
    assert (verdict is not None) == (copied == of)
    found = [said for head in world.heads if (said := circuits_of(world, head)[2]) is not None]
    ends = [best_of(said[:symbols], np.eye(symbols, said.shape[1], dtype=bool)) for said in found]
    assert any(sure <= int(copied) <= perhaps for sure, perhaps in ends)

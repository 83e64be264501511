"""Laws of what the pages say that look into the chosen model: overview, heads, positions, blocks, layers, machine."""

from __future__ import annotations

import copy
import itertools
import math
import re

import numpy as np
import torch

from tests.kit import terms_by_hand
from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import LARGEST, NOISE, SIZE, are_largest, costs_of, is_share, named
from tests.kit.claims.world import Head, World
from tests.kit.heads_by_hand import divided_by, mapped
from tests.kit.pages import shown
from transformer import observe
from transformer.edits import EditError, parse_edit
from transformer.model import build
from transformer.norms import NORMS
from transformer.tasks import Batch

TOKEN = r"'(?P<token>[^']+)' at (?P<place>\d+)(?P<source> of the source)?"


# --- the overview


def counts(world: World) -> tuple[int, int, bool]:
    """How many tokens of the answer can be known and are right, how many can be known, and whether that is all."""
    batch, seen = world.alone
    answers = world.task.answers(len(world.question))
    known = answers & (world.most(len(world.question)) > 1 - 1e-9)
    return int((seen.said[0] == batch.targets[0])[known].sum()), int(known.sum()), bool((known == answers).all())


NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SYMBOLS = r"(?P<upto>up to |\w+ to )?(?P<most>\w+) (?P<noun>digits?|symbols?)"
WHO = rf"This (?P<kind>transformer|recurrent network) (?P<begins>reads|is to read) {SYMBOLS}"
FAR = r"(?P<far>, as far as its mask lets it see)?"
COUNTS = r"(?P<right>\d+) of (?P<of>\d+) right"
OVERVIEW = "app_pages/overview/words."


def judge_symbols(world: World, kind: str, upto: str | None, most: str, noun: str) -> None:
    """What it is, and what it reads."""
    lengths, symbols = world.task.lengths, world.task.symbols
    assert kind == ("recurrent network" if world.sizes.architecture == "gru" else "transformer")
    assert (NUMBERS.index(most) if most in NUMBERS else int(most)) == max(lengths)
    words = [NUMBERS[min(lengths)] if min(lengths) < len(NUMBERS) else str(min(lengths)), "to "]
    assert upto == (None if min(lengths) == max(lengths) else "up to " if min(lengths) == 1 else " ".join(words))
    assert noun == ("digit" if symbols <= 10 else "symbol") + "s" * (max(lengths) != 1)


def aim_of(world: World) -> str:
    return world.task.aim.replace("them", "it") if world.task.length == 1 else world.task.aim


@law(f"{OVERVIEW}headline", rf"{WHO} and (?P<does>[^,.]+){FAR}\.")
def does(
    world: World, kind: str, begins: str, upto: str | None, most: str, noun: str, does: str, far: str | None
) -> None:
    judge_symbols(world, kind, upto, most, noun)
    right, of, everything = counts(world)
    assert (right == of > 0, everything) == (True, far is None)
    first, _, rest = aim_of(world).partition(" ")
    assert (begins, does) == ("reads", f"{first}s {rest}" if first else world.task.verb)


@law(
    f"{OVERVIEW}headline",
    rf"{WHO} and (?P<aim>[^,.]+){FAR}\. It (?P<learned>has begun to learn it|has not learned it yet): {COUNTS}\.",
)
def not_yet(
    world: World,
    kind: str,
    begins: str,
    upto: str | None,
    most: str,
    noun: str,
    aim: str,
    far: str | None,
    learned: str,
    right: str,
    of: str,
) -> None:
    judge_symbols(world, kind, upto, most, noun)
    assert (int(right), int(of), far is None) == counts(world)
    assert int(right) < int(of)
    assert (begins, aim) == ("is to read", aim_of(world) or "answer")
    blind = world.most(len(world.question), blind=True)[world.task.answers(len(world.question))].mean()
    beyond = blind * int(of) + math.sqrt(blind * (1 - blind) * int(of))
    if learned == "has begun to learn it":
        assert int(right) > beyond
    else:
        assert int(right) < blind * int(of) + 4 * math.sqrt(blind * (1 - blind) * int(of)) + 1


@law(
    f"{OVERVIEW}headline",
    r"This (?P<kind>transformer|recurrent network) was trained on .* only: of (?P<asked>\w+) \w+, \d+ of \d+ come out "
    r"right\.",
    rare=True,
)
def of_another_length(world: World, kind: str, asked: str) -> None:
    length = NUMBERS.index(asked) if asked in NUMBERS else int(asked)
    assert (world.step > 0, length in world.task.lengths, bool(kind)) == (True, False, True)


@law(
    f"{OVERVIEW}headline",
    rf"{WHO}\. No answer can be known here: the mask hides what it depends on\.",
)
def none_to_know(world: World, kind: str, begins: str, upto: str | None, most: str, noun: str) -> None:
    judge_symbols(world, kind, upto, most, noun)
    assert (counts(world)[1], begins) == (0, "reads")


HERE = r"Of this answer (?P<right>\d+) of (?P<of>\d+) tokens? (?:is|are) right\."


def judge_answer(world: World, right: str, of: str) -> None:
    batch, seen = world.alone
    answers = world.task.answers(len(world.question))
    assert int(of) == answers.sum()
    assert int(right) == (seen.said[0] == batch.targets[0])[answers].sum()


@law(
    f"{OVERVIEW}lineage",
    rf"Nobody told it how: it was shown (?P<examples>[\d,]+) examples, in (?P<steps>[\d,]+) steps?\. {HERE}",
)
def lineage(world: World, examples: str, steps: str, right: str, of: str) -> None:
    judge_answer(world, right, of)
    assert int(steps.replace(",", "")) == world.step > 0
    assert int(examples.replace(",", "")) == world.step * world.config.training.batch_size


@law(f"{OVERVIEW}lineage", rf"It has seen no example yet: its weights are random\. {HERE}")
def no_example_seen(world: World, right: str, of: str) -> None:
    judge_answer(world, right, of)
    assert world.step == 0


@law(f"{OVERVIEW}lineage", rf"Its weights were written by hand: it was never trained\. {HERE}", rare=True)
def by_hand(world: World, right: str, of: str) -> None:
    judge_answer(world, right, of)
    assert not world.run.folder.is_dir()


def shares_of(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def is_small(text: str, value: float) -> bool:
    """Is it written with three digits, or as a power of ten?"""
    if "×" not in text:
        return Shown(text) == value
    digits, _, power = text.partition(" × 10")
    exponent = int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    return abs(value / 10.0**exponent - float(digits)) < 0.06


def number(text: str) -> int:
    return int(text.replace(",", ""))


def are_likeliest(world: World, shares: np.ndarray, says: str, share: str) -> bool:
    """Is no token likelier than these, and are they all that are so likely, as it is written?"""
    names, away = world.task.vocabulary, shares.max() - shares
    half = 0.0005 if "×" not in share else 0.05 * shares.max() / float(share.partition(" ")[0])
    sure, perhaps = int((np.abs(shares - shares.max()) == 0).sum()), int((away < 2.4 * half).sum())
    if "×" not in share:
        sure = int((np.abs(shares - Shown(share).value) < half - 2e-4).sum())
    if counted := re.fullmatch(r"([\d,]+) tokens( or more)?", says):
        return is_small(share, shares.max()) and max(4, sure * (not counted[2])) <= number(counted[1]) <= perhaps
    named = [names.index(name) for name in re.findall(r"'(.+?)'(?:, | and |$)", says)]
    right = all(is_small(share, shares[each]) for each in named) and shares[named].max() >= shares.max() - 1e-6
    return right and sure <= len(named)


@law(
    "app_pages/overview/guesses.headline",
    r"It guesses (?:(?P<words>\d+) of (?P<all>\d+) (?:words?|letters?))?(?:, and )?(?:(?P<marks>\d+) of (?P<of>\d+) "
    r"(?:blank, line end or mark|blanks, line ends and marks))?\.",
    rare=True,
)
def guesses(world: World, words: str | None, all: str | None, marks: str | None, of: str | None) -> None:
    """Of a text, which the test of all pages about texts has; a word has a letter or a digit in it."""
    batch, seen = world.alone
    word = np.array([bool(re.search(r"\w", world.task.vocabulary[token])) for token in batch.targets[0]])
    right = seen.said[0] == batch.targets[0]
    assert (int(words or 0), int(all or 0)) == (right[word].sum(), word.sum())
    assert (int(marks or 0), int(of or 0)) == (right[~word].sum(), (~word).sum())


@law(
    "app_pages/overview/guesses.best_guess",
    r"After '(?P<token>.+?)' at (?P<place>\d+) its best (?:guess is|guesses are) (?P<says>.+), with probability "
    r"(?P<share>.+?)(?P<each> each)?\. The text goes on with '(?P<next>.+)', which has (?P<own>.+)\.",
    rare=True,
)
def guesses_best(
    world: World, token: str, place: str, says: str, share: str, each: str | None, next: str, own: str
) -> None:
    batch, seen = world.alone
    at, names = int(place) - 1, world.task.vocabulary
    shares, target = shares_of(seen.logits[0, at]), batch.targets[0, at]
    assert (names[batch.tokens[0, at]], names[target]) == (token, next)
    assert are_likeliest(world, shares, says, share)
    assert is_small(own, shares[target])
    assert (each is None) == (" and " not in re.sub("'.+?'", "", says) and "tokens" not in re.sub("'.+?'", "", says))


# --- attention heads

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


# --- inside a head, inside a block


def stands(world: World, token: str, place: str, source: str | None) -> bool:
    """Does the token stand there, in what one of the stacks reads?"""
    batch, _ = world.alone
    read = batch.tokens[0] if not source else batch.source[0]  # type: ignore[index]
    return world.task.vocabulary[read[int(place) - 1]] == token


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


@law(
    "app_pages/whole_model/block/heads._headline",
    rf"(?P<width>\d+) = (?P<heads>\d+) × (?P<each>\d+): head (?P<head>\d+) writes the longest of \d+ vectors at "
    rf"{TOKEN}\.",
)
def writes_longest(
    world: World, width: str, heads: str, each: str, head: str, token: str, place: str, source: str | None
) -> None:
    _, seen = world.alone
    assert (int(width), int(heads)) == (world.sizes.d_model, world.sizes.n_heads)
    assert int(heads) * int(each) == int(width)
    sizes = [
        np.linalg.norm(each[0, :, int(place) - 1], axis=-1)
        for each in seen.written.values()
        if int(place) <= each.shape[2]
    ]
    assert any(each.argmax() == int(head) and each.max() > 0 for each in sizes)


@law(
    "app_pages/whole_model/block/heads._headline",
    rf"(?P<width>\d+) = (?P<heads>\d+) × (?P<each>\d+): (?:(?P<all>both|all \d+) heads write equally long "
    r"vectors|(?:heads (?P<named>[\d, and]+)|(?P<many>\d+) heads) write the longest of \d+ vectors) "
    rf"at {TOKEN}(?:, equally long)?\.",
    rare=True,
)
def write_as_long(
    world: World, width: str, heads: str, each: str, all: str | None, named: str | None, many: str | None, token: str,
    place: str, source: str | None,
) -> None:  # fmt: skip
    n = world.sizes.n_heads
    assert (int(width), int(heads), int(heads) * int(each)) == (world.sizes.d_model, n, int(width))
    who = {*range(n)} if all else {int(head) for head in re.findall(r"\d+", named or "")}

    def holds(sizes: np.ndarray) -> bool:
        level = {*np.flatnonzero(sizes > sizes.max() * 0.9895).tolist()}
        return sizes.max() > 0 and (who <= level if who else int(many or 0) <= len(level))

    written = [each for each in world.alone[1].written.values() if int(place) <= each.shape[2]]
    assert any(holds(np.linalg.norm(each[0, :, int(place) - 1], axis=-1)) for each in written)


@law(
    "app_pages/whole_model/block/heads._headline",
    rf"(?P<width>\d+) = (?P<heads>\d+) × (?P<each>\d+): no head writes anything at {TOKEN}, which may see nothing\.",
)
def writes_nothing(world: World, width: str, heads: str, each: str, token: str, place: str, source: str | None) -> None:
    _, seen = world.alone
    assert any(not each[0, 0, int(place) - 1].any() for each in seen.masks.values() if int(place) <= each.shape[2])
    assert (int(heads), int(width)) == (world.sizes.n_heads, world.sizes.d_model)


@law(
    "app_pages/whole_model/block/heads._headline",
    rf"There is one head: all (?P<width>\d+) numbers stay together, and it writes nothing at {TOKEN}, which may see "
    r"nothing\.",
)
def one_writes_nothing(world: World, width: str, token: str, place: str, source: str | None) -> None:
    writes_nothing(world, width, "1", width, token, place, source)


@law(
    "app_pages/whole_model/block/heads._headline",
    r"There is one head: all (?P<d>\d+) numbers stay together, and it alone writes\.",
)
def writes_alone(world: World, d: str) -> None:
    assert (world.sizes.n_heads, world.model.embedding.weight.shape[1]) == (1, int(d))


def divisors(world: World, place: str) -> list[tuple[float, float]]:
    """The mean of each vector at a place that a norm of a block reads, and what it is divided by."""
    _, seen = world.alone
    read = {name: x[0, int(place) - 1] for name, x in seen.read.items() if int(place) <= x.shape[1]}
    return [
        (float(x.mean()), divided_by(x, world.model.get_submodule(name)).item())
        for name, x in read.items()
        if "around_" in name
    ]


@law(
    "app_pages/whole_model/block/norm.headline",
    rf"(?P<norm>.+?) subtracts the mean (?P<mean>[−\d.]+) from {TOKEN} and divides by (?P<size>[\d.]+)\.",
)
def subtracts(world: World, norm: str, mean: Shown, token: str, place: str, source: str | None, size: Shown) -> None:
    kind = NORMS[world.sizes.norm_kind]
    assert (norm, True) == (kind.title, kind.centres)
    assert any(mean == one and size == other for one, other in divisors(world, place))


@law(
    "app_pages/whole_model/block/norm.headline",
    rf"(?P<norm>.+?) divides the numbers of {TOKEN} by (?P<size>[\d.]+), their (?P<name>[^.]+)\.",
)
def divides(world: World, norm: str, token: str, place: str, source: str | None, size: Shown, name: str) -> None:
    kind = NORMS[world.sizes.norm_kind]
    assert (norm, name, False) == (kind.title, kind.size_name, kind.centres)
    assert any(size == each for _, each in divisors(world, place))


@law("app_pages/whole_model/block/norm.without", r"mine has no norm: each sub-layer reads the stream as it is\.")
def has_no_norm(world: World) -> None:
    assert not any(".before" in name or ".after" in name for name, _ in world.model.named_parameters())


@law(
    "app_pages/whole_model/block/feed_forward.headline",
    rf"(?P<firing>\d+) of (?P<units>\d+) hidden units fire at {TOKEN}; (?P<never>.+) (?:never fires? )?in "
    rf"(?P<n>[\d,]+) "
    r"positions\.",
)
def fire(
    world: World, firing: str, units: str, token: str, place: str, source: str | None, never: str, n: Shown
) -> None:
    _, seen = world.alone
    _, many = world.looked
    assert int(units) == world.sizes.d_ff
    here = [int((x[0, int(place) - 1] > 0).sum()) for x in seen.hidden.values() if int(place) <= x.shape[1]]
    assert int(firing) in here
    dead = [int((x > 0).any(axis=(0, 1)).sum() == 0) for x in many.hidden.values()]
    assert dead is not None
    silent = [int((~(x > 0).any(axis=(0, 1))).sum()) for x in many.hidden.values()]
    if never == "every unit fires somewhere":
        assert min(silent) <= 2
    else:
        assert min(abs(int(never.split()[0]) - each) for each in silent) <= 2


@law(
    "app_pages/whole_model/block/feed_forward.strongest_sentence",
    r"Unit (?P<unit>\d+) is the strongest here, with (?P<most>[\d.]+)\. It fires at (?P<often>\d+)% of all positions\. "
    r"(?:It also|Unit (?P<other>\d+)) writes the longest vector, of length (?P<length>[\d.]+)\.",
)
def is_strongest(world: World, unit: str, most: Shown, often: str, other: str | None, length: Shown) -> None:
    """Somewhere in one of the blocks: the sentence does not say at which token, the title does."""
    _, seen = world.alone
    _, many = world.looked
    found = []
    for site, hidden in seen.hidden.items():
        sizes = np.linalg.norm(world.weights[f"{site}.down.weight"], axis=0)
        share = (many.hidden[site][..., int(unit)] > 0).mean()
        for x in hidden[0]:
            written = x * sizes
            found.append(
                x.argmax() == int(unit)
                and most == x.max()
                and int(other or unit) == written.argmax()
                and length == written.max()
                and abs(share - int(often) / 100) < NOISE + 0.005
            )
    assert any(found)


@law(
    "app_pages/whole_model/block/parameters.moved_sentence",
    r"mine at step (?P<step>\d+): nothing has moved yet\. These are the weights that its seed draws\.",
)
def nothing_has_moved(world: World, step: str) -> None:
    assert int(step) == world.step
    drawn = build(world.config).state_dict()
    assert all(np.array_equal(drawn[name].double().numpy(), each) for name, each in world.weights.items())


@law(
    "app_pages/whole_model/block/parameters.moved_sentence",
    r"mine at step (?P<step>\d+), compared with the weights that its seed draws \(step 0\): (?P<moved>\d+) of "
    r"(?P<of>\d+) tensors of parameters have moved\. (?P<name>\S+) has moved the furthest of those that did "
    r"not begin at 0, by "
    r"(?P<far>[\d.]+) of its initial length\. A bar stands empty where the tensor began at 0, as biases do\.",
)
def has_moved_furthest(world: World, step: str, moved: str, of: str, name: str, far: Shown) -> None:
    assert int(step) == world.step
    drawn, own = build(world.config).state_dict(), dict(world.model.named_parameters())
    ways = {each: np.linalg.norm(world.weights[each] - drawn[each].double().numpy()) for each in own}
    began = {each: np.linalg.norm(drawn[each].double().numpy()) for each in own}
    shares = {each: way / began[each] for each, way in ways.items() if began[each]}
    assert (int(moved), int(of)) == (sum(way > 0 for way in ways.values()), len(own))
    assert far == shares[shown(name)]
    assert shares[shown(name)] >= max(shares.values()) - 1e-3


GREY = r"(?: Grey: (?P<hidden>\d+) of (?P<of>\d+) tokens may not be seen\.)?"


def rows_of(world: World, hidden: str | None, of: str | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each attention and query of which so many keys are hidden: the pattern, [head, key], and what is seen."""
    _, seen = world.alone
    found = []
    for site, pattern in seen.patterns.items():
        for query in range(pattern.shape[2]):
            visible = np.broadcast_to(seen.masks[site], pattern.shape)[0, 0, query]
            if int(hidden or 0) == (~visible).sum() and int(of or len(visible)) == len(visible):
                found.append((pattern[0, :, query], visible))
    return found


@law("app_pages/whole_model/block/heads.looking_sentence", rf"This token may see nothing\.{GREY}")
def sees_no_key(world: World, hidden: str | None, of: str | None) -> None:
    assert any(not visible.any() for _, visible in rows_of(world, hidden, of))


LOOKING = "app_pages/whole_model/block/heads.looking_sentence"


def level_keys(row: np.ndarray) -> tuple[list[set[int]], list[set[int]]]:
    """Of each head, float [head, key], the keys that it surely gives as much as its most, and those that it may."""
    away = row.max(axis=1, keepdims=True) - row
    return tuple([{*np.flatnonzero(each < room).tolist()} for each in away] for room in (1e-6, 0.0104))  # type: ignore[return-value]


@law(
    LOOKING,
    rf"(?:(?P<one>The head) looks|(?:Both|All (?P<heads>\d+)) heads look) most at (?:the same token, )?(?P<tokens>'.+?)"
    rf"(?:: (?P<share>[\d.]+)(?: each)?)?\.{GREY}",
    rf"(?P<one>The head) looks most at (?P<many>\d+) of \d+ tokens: (?P<share>[\d.]+) each\.{GREY}",
    rf"(?:Both|All (?P<heads>\d+)) heads look most at the same (?P<many>\d+) tokens, at each of them alike\.{GREY}",
)
def look_at_one(
    world: World, hidden: str | None, of: str | None, one: str | None = None, heads: str | None = None,
    tokens: str | None = None, share: str | None = None, many: str | None = None,
) -> None:  # fmt: skip
    places = [int(each) - 1 for each in re.findall(r"' at (\d+)", tokens or "")]

    def holds(row: np.ndarray) -> bool:
        sure, perhaps = level_keys(row)
        named = {*places} if tokens else None
        fits = (
            all(few <= named <= most for few, most in zip(sure, perhaps, strict=True))
            if named
            else max(map(len, sure)) <= int(many or 0) <= min(map(len, perhaps))
        )
        return fits and (share is None or is_share(share, float(row[0].max())))

    assert (one is not None) == (world.sizes.n_heads == 1)
    assert heads is None or int(heads) == world.sizes.n_heads > 2
    assert any(holds(row) for row, _ in rows_of(world, hidden, of))


@law(
    LOOKING,
    rf"The (?P<heads>\d+) heads look most at (?P<different>\d+) different tokens(?P<alike>, some at several alike)?\."
    rf"{GREY}",
)
def look_at_several(
    world: World, heads: str, different: str, alike: str | None, hidden: str | None, of: str | None
) -> None:
    def holds(row: np.ndarray) -> bool:
        sure, perhaps = level_keys(row)
        few, most = (len(set().union(*each)) for each in (sure, perhaps))
        single = all(len(keys) == 1 for keys in (sure if alike is None else perhaps))
        return few <= int(different) <= most and single == (alike is None)

    assert int(heads) == world.sizes.n_heads
    assert any(holds(row) for row, _ in rows_of(world, hidden, of))


SUREST = "app_pages/whole_model/block/heads.surest"


def queries_of(world: World) -> list[np.ndarray]:
    """Of each query of each attention: what its heads give to each key, float [head, key]."""
    return [each[0, :, place] for each in world.alone[1].patterns.values() for place in range(each.shape[2])]


@law(
    SUREST,
    r"(?:It|Head (?P<head>\d+) is the surest: it) looks at '(?P<token>[^']+)' at (?P<place>\d+) with "
    r"(?P<share>[\d.]+)\.",
)
def is_surest(world: World, head: str | None, token: str, place: str, share: str) -> None:
    def holds(row: np.ndarray) -> bool:
        if int(place) > row.shape[1]:
            return False
        own, others = row[int(head or 0)], np.delete(row, int(head or 0), axis=0)
        least = others.max(initial=0.0) < own.max() + 1e-6 and not is_share(share, others.max(initial=0.0), -2e-4)
        return is_share(share, own.max()) and own[int(place) - 1] >= own.max() - 1e-6 and least

    assert (head is None) == (world.sizes.n_heads == 1)
    assert stands(world, token, place, None) or (world.task.has_source and stands(world, token, place, "source"))
    assert any(holds(row) for row in queries_of(world))


@law(
    SUREST,
    r"(?:(?P<all>Both|All \d+) heads are as sure|(?P<many>\d+) of (?P<of>\d+) heads are the surest|"
    r"Heads (?P<heads>[\d, and]+) are the surest): each gives (?P<share>[\d.]+) to one token\.",
)
def are_as_sure(world: World, all: str | None, many: str | None, of: str | None, heads: str | None, share: str) -> None:
    n = world.sizes.n_heads
    named = [int(each) for each in re.findall(r"\d+", heads or "")]
    if all is not None:
        assert all == ("Both" if n == 2 else f"All {n}")
        named = [*range(n)]
    assert of is None or int(of) == n > int(many or 0) > 4

    def holds(row: np.ndarray) -> bool:
        peaks = row.max(axis=1)
        level = [index for index in range(n) if is_share(share, float(peaks[index]))]
        return is_share(share, float(peaks.max())) and ({*named} <= {*level} if named else int(many or 0) <= len(level))

    assert any(holds(row) for row in queries_of(world))


@law(
    "app_pages/whole_model/block/heads.parts_of_output",
    r"To the output in dimension (?P<at>\d+) head (?P<head>\d+) adds (?P<adds>[−\d.]+), the other heads and b_O "
    r"(?P<rest>[−\d.]+)\.",
)
def adds_to_output(world: World, at: str, head: str, adds: Shown, rest: Shown) -> None:
    """At some token, in the dimension where the output is farthest from 0, as far as rounding can tell."""
    _, seen = world.alone
    found = []
    for site, written in seen.written.items():
        bias = world.weights[f"{site}.out.bias"]
        for place in range(written.shape[2]):
            rows = written[0, :, place]
            whole = rows.sum(axis=0) + bias
            column = rows[:, int(at)]
            found.append(
                adds == column[int(head)]
                and rest == whole[int(at)] - column[int(head)]
                and abs(whole[int(at)]) > np.abs(whole).max() - 1e-4
                and abs(column[int(head)]) > np.abs(column).max() - 1e-4
            )
    assert any(found)


@law(
    "app_pages/whole_model/block/feed_forward.without",
    r"mine has no feed-forward layers, so there are no hidden units\.",
)
def has_no_units(world: World) -> None:
    assert not any("feed_forward" in name for name, _ in world.model.named_parameters())


@law(
    "app_pages/whole_model/block/dropout._headline",
    r"With dropout (?P<rate>[\d.]+), (?P<n>\d+) passes of one input in training mode give probabilities up to "
    r"(?P<up>.+) "
    r"apart; in evaluation mode (?:all \d+|both) passes agree to the last bit\.",
)
def drops(world: World, rate: Shown, n: str, up: str) -> None:
    batch, _ = world.alone
    read = [torch.tensor(each) for each in (batch.tokens, batch.source) if each is not None]
    with torch.no_grad():
        one, other = (world.model(*read) for _ in range(2))
    assert torch.equal(one, other)
    assert rate.value > 0


RANGE = "app_pages/whole_model/block/dropout.range_sentence"
PREFERS = (
    r" In (?P<changed>\d+) of (?P<total>\d+) predictions \((?P<outputs>\d+) outputs? × (?P<n>\d+) passes\) training "
    r"mode prefers another token\."
)


def in_training(world: World, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of so many passes through a twin that drops as the page does: the probability of the token that is predicted at
    each output of the answer, float [pass, output], where another is likelier, and the outputs, counted from 0."""
    batch, seen = world.alone
    shown = np.flatnonzero(world.task.answers(len(world.question)))
    predicted, twin = seen.said[0, shown], copy.deepcopy(world.model).float().train()
    for module in twin.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = world.sizes.dropout or 0.1
    read = [torch.tensor(each) for each in (batch.tokens, batch.source) if each is not None]
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        logits = np.stack([twin(*read)[0, shown].double().numpy() for _ in range(n)])
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares = powers / powers.sum(axis=-1, keepdims=True)
    return shares[:, range(len(shown)), predicted], logits.argmax(axis=-1) != predicted, shown


def judge_ranges(world: World, changed: str, total: str, outputs: str, n: str) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest probability at each output."""
    shares, other, shown = in_training(world, int(n))
    assert (int(changed), int(total), int(outputs)) == (other.sum(), other.size, len(shown))
    return shares.min(axis=0), shares.max(axis=0)


@law(
    RANGE,
    rf"(?P<widest>The widest range is a|A)t output (?P<output>\d+):? '(?P<token>[^']+)' gets (?P<low>[\d.]+) to "
    rf"(?P<high>[\d.]+) in training mode\.{PREFERS}",
)
def ranges_most(
    world: World, widest: str, output: str, token: str, low: Shown, high: Shown, changed: str, total: str, outputs: str,
    n: str,
) -> None:  # fmt: skip
    least, most = judge_ranges(world, changed, total, outputs, n)
    at = int(output) - 1 - int(np.flatnonzero(world.task.answers(len(world.question)))[0])
    assert world.task.vocabulary[world.alone[1].said[0, int(output) - 1]] == token
    assert (low, high) == (least[at], most[at])
    assert (most - least)[at] >= (most - least).max() - 1e-5
    assert (widest == "A") == (len(least) == 1)


@law(
    RANGE,
    rf"In training mode the probability ranges as widely at all (?P<all>\d+) outputs, by (?P<width>[\d.]+)\.{PREFERS}",
    rf"In training mode the probability ranges most widely at outputs (?P<at>[\d, and]+), by (?P<width>[\d.]+) at "
    rf"each\.{PREFERS}",
    rare=True,
)
def range_as_much(
    world: World, width: Shown, changed: str, total: str, outputs: str, n: str, all: str | None = None,
    at: str | None = None,
) -> None:  # fmt: skip
    least, most = judge_ranges(world, changed, total, outputs, n)
    first = int(np.flatnonzero(world.task.answers(len(world.question)))[0])
    named = range(len(least)) if at is None else [int(each) - 1 - first for each in re.findall(r"\d+", at)]
    assert width == (most - least).max()
    assert all is None or int(all) == len(least) > 1
    assert {each for each in range(len(least)) if width == (most - least)[each]} >= {*named}


@law(RANGE, rf"In training mode no probability here changes by as much as 0\.005\.{PREFERS}", rare=True)
def ranges_nowhere(world: World, changed: str, total: str, outputs: str, n: str) -> None:
    least, most = judge_ranges(world, changed, total, outputs, n)
    assert (most - least).max() < 0.005 + 2e-4


@law(
    "app_pages/whole_model/block/logits._headline",
    r"Output (?P<place>\d+) says '(?P<said>[^']+)' with probability (?P<share>[^;]+); (?P<then>.*)\.",
)
def says(world: World, place: str, said: str, share: str, then: str) -> None:
    batch, seen = world.alone
    logits = seen.logits[0, int(place) - 1]
    shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    names, target = world.task.vocabulary, int(batch.targets[0, int(place) - 1])
    assert names[int(shares.argmax())] == said
    assert "×" in share or Shown(share) == shares.max()
    assert then.startswith("that is right") == (shares.argmax() == target)
    cost = then.rpartition("costs ")[2].removesuffix(" nats")
    assert "×" in cost or Shown(cost) == -math.log(shares[target])


@law(
    "app_pages/whole_model/block/parameters.headline",
    r"mine has (?P<numbers>[\d,]+) parameters in (?P<tensors>\d+) tensors?, and (?P<buffers>\d+) buffers? that "
    r"training "
    r"never changes\.",
)
def has_parameters(world: World, numbers: Shown, tensors: str, buffers: str) -> None:
    own = [*world.model.parameters()]
    assert (numbers.value, int(tensors)) == (sum(each.numel() for each in own), len(own))
    assert int(buffers) == len([*world.model.buffers()])


# --- the machine


@law(
    "app_pages/whole_model/machine/words.headline",
    r"(?:(?P<source>\d+) source tokens? and )?(?P<tokens>\d+) tokens? pass(?:es)? (?P<blocks>\d+) blocks?(?P<each> in "
    r"each stack)?: "
    r"(?P<total>[\d,]+) parameters\.",
)
def passes(world: World, source: str | None, tokens: str, blocks: str, each: str | None, total: Shown) -> None:
    batch, _ = world.alone
    assert int(tokens) == batch.tokens.shape[1]
    assert int(source or 0) == (0 if batch.source is None else batch.source.shape[1])
    assert int(blocks) == len({n.split(".")[1] for n, _ in world.model.named_parameters() if n.startswith(world.stack)})
    assert total.value == sum(weight.numel() for weight in world.model.parameters())


@law(
    "app_pages/whole_model/machine/words.headline",
    r"(?P<stack>Encoder|Decoder) block (?P<n>\d+) has (?P<own>[\d,]+) of the model’s (?P<total>[\d,]+) parameters\.",
)
def block_has(world: World, stack: str, n: str, own: Shown, total: Shown) -> None:
    sizes = {name: weight.numel() for name, weight in world.model.named_parameters()}
    assert total.value == sum(sizes.values())
    assert own.value == sum(size for name, size in sizes.items() if name.startswith(f"{stack.lower()}.{n}."))


@law(
    "app_pages/whole_model/machine/words.headline",
    r"Head (?P<head>[\d.]+) is one of (?P<heads>\d+) in its layer: (?P<width>\d+) of the (?P<d>\d+) numbers are "
    r"its own\.",
)
def head_is(world: World, head: str, heads: str, width: str, d: str) -> None:
    assert (int(heads), int(d)) == (world.sizes.n_heads, world.model.embedding.weight.shape[1])
    assert int(heads) * int(width) == int(d)


@law(
    "app_pages/whole_model/machine/words.headline",
    r"Head (?P<head>[\d.]+) is the only one in its layer: all (?P<width>\d+) numbers are its own\.",
)
def head_is_alone(world: World, head: str, width: str) -> None:
    assert (world.sizes.n_heads, int(width)) == (1, world.model.embedding.weight.shape[1])


def weights_of(world: World, title: str, block: str) -> list[np.ndarray]:
    """The weights of a box of the machine, by what it is called; of a head its rows of the three maps."""
    if title.startswith("head "):
        part = "cross_attention" if "cross" in title else "self_attention"
        width, index = world.sizes.d_head, int(title.rpartition(".")[2])
        rows = slice(index * width, (index + 1) * width)
        maps = [f"{block}.{part}.{each}.{kind}" for each in ("query", "key", "value") for kind in ("weight", "bias")]
        return [world.weights[name][rows] for name in maps]
    begins = {
        "embedding": "embedding.",
        "unembedding": "unembedding.",
        "final ": "final_norm.",
        "encoder block ": f"encoder.{title[-1]}.",
        "decoder block ": f"decoder.{title[-1]}.",
        "feed-forward ": f"{block}.feed_forward.",
        "W_O of self": f"{block}.self_attention.out.",
        "W_O of cross": f"{block}.cross_attention.out.",
    }
    names = {"self-attention": "self", "cross-attention": "cross", "feed-forward": "feed_forward"}
    begins |= {
        f"{world.sizes.kind_of_norm.title} {when} {words}": f"{block}.around_{name}.{when}."
        for words, name in names.items()
        for when in ("before", "after")
    }
    begins |= {f"{world.sizes.kind_of_norm.title}: the memory": "memory_norm."}
    prefix = next((prefix for begin, prefix in begins.items() if title.startswith(begin)), "positions.")
    found = [weights for name, weights in world.weights.items() if name.startswith(prefix)]
    assert found, title
    return found


def boxes_of(world: World, block: str) -> list[str]:
    """What the boxes with weights are called, of the whole model or of one block."""
    names, sizes = {name for name, _ in world.model.named_parameters()}, world.sizes
    norm = sizes.kind_of_norm.title
    if not block:
        found = [each.replace(".", " block ") for each in sorted({".".join(name.split(".")[:2]) for name in names})]
        found = [each for each in found if each[-1].isdigit()]
        others = {"embedding.": "embedding", "unembedding.": "unembedding", "final_norm.": f"final {norm}"}
        others |= {"memory_norm.": f"{norm}: the memory", "positions.": "positions"}
        return found + [title for begin, title in others.items() if any(name.startswith(begin) for name in names)]
    layer, found = block.split(".")[1], []
    for part in ("self", "cross"):
        if any(name.startswith(f"{block}.{part}_attention.") for name in names):
            called = "cross " * (part == "cross")
            found += [f"head {called}{layer}.{index}" for index in range(sizes.n_heads)]
            found.append(f"W_O of {part}-attention")
    found += ["feed-forward "] * any(name.startswith(f"{block}.feed_forward.") for name in names)
    parts = {"self": "self-attention", "cross": "cross-attention", "feed_forward": "feed-forward"}
    return found + [
        f"{norm} {when} {called}"
        for part, called in parts.items()
        for when in ("before", "after")
        if any(name.startswith(f"{block}.around_{part}.{when}.") for name in names)
    ]


MOVED = "app_pages/whole_model/machine/words.movement"
STEPS = r"From step (?P<before>\d+) to step (?P<step>\d+) "


def is_moved(world: World, before: str, step: str) -> tuple[dict[str, float], str]:
    """How far each box moved from the kept step before this one, and the block that is looked into."""
    kept = [each for each in world.run.snapshots() if each < world.step]
    assert (int(step), int(before)) == (world.step, max(kept))
    view = dict(world.view)
    both = world.sizes.architecture == "encoder-decoder"
    block = view.get("block", "encoder.0" if both else f"{world.stack}.0") if view.get("zoom") == "block" else ""
    found, then = {}, world.at_step(int(before))
    for title in boxes_of(world, block):
        old, new = (np.concatenate([part.ravel() for part in weights_of(at, title, block)]) for at in (then, world))
        if old.any():
            found[title] = float(np.linalg.norm(new - old) / np.linalg.norm(old))
    return found, block


def is_by(share: str, moved: float) -> bool:
    """Is it written with three digits?"""
    return abs(float(share) - 100 * moved) <= 0.006 * 100 * moved + 1e-12


def judge_extreme(world: World, titles: str, share: str, block: str, before: str, most: float) -> None:
    then = world.at_step(int(before))
    for title in titles.strip("“”").replace("” and “", "”, “").split("”, “"):
        old, new = (np.concatenate([part.ravel() for part in weights_of(at, title, block)]) for at in (then, world))
        assert is_by(share, float(np.linalg.norm(new - old) / np.linalg.norm(old))), title
    assert is_by(share, most)


@law(
    MOVED,
    rf"{STEPS}training moved (?P<most>“.+”) most: by (?P<far>[\d.e-]+) %(?P<each> each)?, and (?P<least>“.+”) least: "
    r"by (?P<little>[\d.e-]+) %(?: each)? of its length, ‖W′ − W‖ / ‖W‖\.",
)
def moved_most(
    world: World, before: str, step: str, most: str, far: str, each: str | None, least: str, little: str
) -> None:
    found, block = is_moved(world, before, step)
    assert max(found.values()) > min(found.values())
    judge_extreme(world, most, far, block, before, max(found.values()))
    judge_extreme(world, least, little, block, before, min(found.values()))
    level = [title for title, moved in found.items() if moved > max(found.values()) * (1 - 1e-4)]
    assert most.count("“") >= len(level)
    assert (each is not None) == (most.count("“") > 1)


@law(
    MOVED,
    rf"{STEPS}training moved (?P<all>“.+”) by (?P<far>[\d.e-]+) %(?: each)? of its length, ‖W′ − W‖ / ‖W‖\.",
    rare=True,
)
def moved_alike(world: World, before: str, step: str, all: str, far: str) -> None:
    found, block = is_moved(world, before, step)
    judge_extreme(world, all, far, block, before, max(found.values()))
    assert all.count("“") == len(found)


@law(MOVED, rf"{STEPS}nothing moved\.", rare=True)
def moved_nothing(world: World, before: str, step: str) -> None:
    assert not any(is_moved(world, before, step)[0].values())


@law("app_pages/whole_model/machine/words.a_step", None, rare=True)
@law(
    "app_pages/whole_model/machine/words.a_step",
    r"Divided by the (?P<steps>\d+) steps, the most is (?P<share>[\d.e-]+) % a step\.",
    rare=True,
)
def moved_a_step(world: World, steps: str = "", share: str = "") -> None:
    """Of a training under way, which the test of the page has."""
    before = max(each for each in world.run.snapshots() if each < world.step)
    most = max(is_moved(world, str(before), str(world.step))[0].values())
    if not share:
        assert not most or world.step - before == 1
        return
    assert int(steps) == world.step - before > 1
    assert abs(float(share) - 100 * most / int(steps)) <= 0.06 * 100 * most / int(steps)


WHOSE = r"For (?P<source>source token )?'(?P<token>[^']+)' at (?P<place>\d+):"
MACHINE = "app_pages/whole_model/machine/words."


@law(SIZE, rf"{WHOSE} its length is (?P<length>[\d.]+)\.{LARGEST}")
def has_length(world: World, source: str | None, token: str, place: str, length: Shown, end: str) -> None:
    """Of the box of the page's link: what an attention as a whole writes."""
    _, seen = world.alone
    assert stands(world, token, place, source)
    vector = seen.vectors[dict(world.view)["box"]][0, int(place) - 1]
    assert length == math.sqrt(sum(vector**2))
    assert are_largest(vector, end)


@law(
    SIZE,
    rf"{WHOSE} (?P<many>[\d,]+) (?P<kind>scores?|logits?)\.{LARGEST}",
    rare=True,
)
def scores_or_logits(
    world: World, source: str | None, token: str, place: str, many: Shown, kind: str, end: str
) -> None:
    """Of the head of the page's link, or of what is said there: the page's own test opens it on both."""
    _, seen = world.alone
    at, names = int(place) - 1, world.task.vocabulary
    if kind.startswith("logit"):
        values = seen.logits[0, at]
        end = re.sub(r"for '([^']+)'", lambda found: f"in dimension {names.index(found[1])}", end)
    else:
        site, _, index = dict(world.view)["head"].rpartition(".")
        query, keys = (seen.vectors[f"{site}.{name}"][0, int(index)] for name in ("query", "key"))
        values = np.array([query[at] @ key for key in keys]) / math.sqrt(world.sizes.d_head)
        end = re.sub(r"for '[^']+' at (\d+)", lambda found: f"in dimension {int(found[1]) - 1}", end)
    assert stands(world, token, place, source)
    assert many == len(values)
    assert are_largest(values, end)


def level_of(values: np.ndarray, write: str, half: float) -> tuple[set[int], set[int]]:
    """Which values round to what is written, for certain and perhaps."""
    away = np.abs(values - Shown(write).value)
    return ({*np.flatnonzero(away < half + slack).tolist()} for slack in (-2e-4, 2e-4))  # type: ignore[return-value]


@law(
    f"{MACHINE}looking",
    rf"{WHOSE} it looks most at (?:(?P<many>\d+) of (?P<of>\d+) keys|(?P<keys>'.+)), with (?P<share>[\d.]+) of its "
    r"attention(?P<each> each)?\.",
)
def looks_most_at(
    world: World, source: str | None, token: str, place: str, many: str | None, of: str | None, keys: str | None,
    share: Shown, each: str | None,
) -> None:  # fmt: skip
    site, _, index = dict(world.view)["head"].rpartition(".")
    row = world.alone[1].patterns[site][0, int(index), int(place) - 1]
    named = {int(key) - 1 for key in re.findall(r"' at (\d+)", keys or "")}
    sure, perhaps = level_of(row, share, 0.005)
    count = int(many) if many else len(named)
    assert stands(world, token, place, source)
    assert share == row.max()
    assert named <= perhaps
    assert len(sure) <= count <= len(perhaps)
    assert of is None or int(of) == len(row)
    assert (each is not None) == (count > 1)


@law(f"{MACHINE}looking", rf"{WHOSE} it may see nothing\.")
def looks_at_nothing(world: World, source: str | None, token: str, place: str) -> None:
    site = dict(world.view)["head"].rpartition(".")[0]
    assert not world.alone[1].masks[site][0, 0, int(place) - 1].any()


@law(
    f"{MACHINE}likeliest",
    rf"{WHOSE} the likeliest (?:are (?P<many>[\d,]+) of (?P<of>[\d,]+) tokens|tokens? (?:is|are) (?P<tokens>'.+)), "
    r"with probability (?P<share>[\d.]+)(?P<each> each)?\.",
)
def is_likeliest(
    world: World, source: str | None, token: str, place: str, many: str | None, of: str | None, tokens: str | None,
    share: Shown, each: str | None,
) -> None:  # fmt: skip
    logits = world.alone[1].logits[0, int(place) - 1]
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    named = {world.task.vocabulary.index(name) for name in re.findall(r"'([^']+)'", tokens or "")}
    sure, perhaps = level_of(shares, share, 0.0005)
    count = int((many or "").replace(",", "")) if many else len(named)
    assert stands(world, token, place, source)
    assert share == shares.max()
    assert named <= perhaps
    assert len(sure) <= count <= len(perhaps)
    assert of is None or int(of.replace(",", "")) == len(shares)
    assert (each is not None) == (count > 1)


# --- through the layers

PART = {"attention": "resid_mid", "cross-attention": "resid_cross", "feed-forward": "resid_post"}
LAYERS = "app_pages/whole_model/layers/lens.Reading.headline"


def stages(world: World) -> dict[str, np.ndarray]:
    """Of each stage, in words, what it would say at each position."""
    _, seen = world.alone
    found = {}
    for site, stream in seen.stages.items():
        stack, layer, kind = site.split(".")
        if stack == world.stack:
            words = next((word for word, after in PART.items() if after == kind), "")
            found[f"after the {words} of layer {layer}" if words else "in the embedding"] = world.unembed(stream)[0]
    return found


def right_at(world: World) -> tuple[dict[str, int], int]:
    batch, _ = world.alone
    known = world.task.answers(len(world.question)) & (world.most(len(world.question)) > 1 - 1e-9)
    right = {
        name: int((logits.argmax(axis=-1) == batch.targets[0])[known].sum()) for name, logits in stages(world).items()
    }
    return right, int(known.sum())


@law(LAYERS, r"No answer can be known here: the mask hides what it depends on\.")
def hidden(world: World) -> None:
    assert right_at(world)[1] == 0


@law(
    LAYERS,
    r"(?P<none>No answer yet|Not yet the answer): (?P<stage>.+), (?P<right>\d+) of (?P<of>\d+) "
    r"(?P<verb>is|are) right\.",
)
def no_answer(world: World, none: str, stage: str, right: str, of: str, verb: str) -> None:
    found, total = right_at(world)
    assert (int(right), int(of), stage) == ([*found.values()][-1], total, [*found][-1])
    assert int(right) <= total / 2
    assert (none == "No answer yet") == (right == "0")
    assert (verb == "is") == (right == "1")


@law(
    LAYERS,
    r"The answer appears in layer (?P<layer>\d+): after its (?P<part>[a-z-]+), (?P<now>\d+) of (?P<of>\d+) "
    r"(?:is|are) right, "
    r"and (?P<before>\d+) before\.",
)
def appears(world: World, layer: str, part: str, now: str, of: str, before: str) -> None:
    found, total = right_at(world)
    names, values = [*found], [*found.values()]
    at = names.index(f"after the {part} of layer {layer}")
    assert (values[at], values[at - 1], total) == (int(now), int(before), int(of))
    assert int(now) - int(before) == max(b - a for a, b in itertools.pairwise(values))
    assert values[-1] > total / 2


@law(
    LAYERS,
    r"The answer comes little by little: (?P<first>\d+) of (?P<of>\d+) right in the embedding, (?P<last>\d+) "
    r"(?P<stage>.+)\.",
)
def little_by_little(world: World, first: str, of: str, last: str, stage: str) -> None:
    found, total = right_at(world)
    values = [*found.values()]
    assert (values[0], values[-1], total, stage) == (int(first), int(last), int(of), [*found][-1])
    assert values[0] < values[-1], "it does not come"
    assert all(b - a <= total / 2 for a, b in itertools.pairwise(values)), "it comes at once"


@law(
    LAYERS,
    r"The embedding alone says as much as the whole model: (?P<first>\d+) of (?P<of>\d+) right in the embedding, "
    r"(?P<last>\d+) "
    r"(?P<stage>.+)\.",
    rare=True,
)
def from_the_first(world: World, first: str, of: str, last: str, stage: str) -> None:
    found, total = right_at(world)
    values = [*found.values()]
    assert (values[0], values[-1], total, stage) == (int(first), int(last), int(of), [*found][-1])
    assert values[0] >= values[-1] > total / 2


@law(
    "app_pages/whole_model/layers/lens.settling",
    r"What is said, '(?P<said>[^']+)', is (?P<how>right|wrong), and settles (?P<stage>.+)\.",
)
def settles(world: World, said: str, how: str, stage: str) -> None:
    batch, seen = world.alone
    known = world.task.answers(len(world.question)) & (world.most(len(world.question)) > 1 - 1e-9)
    place = int(known.argmax())
    last = int(seen.said[0, place])
    assert world.task.vocabulary[last] == said
    assert (how == "right") == (last == batch.targets[0, place])
    same = [int(logits[place].argmax()) == last for logits in stages(world).values()]
    at = [*stages(world)].index(stage)
    assert all(same[at:])
    assert at == 0 or not same[at - 1]


@law(
    "app_pages/whole_model/layers/lens.cell_sentence",
    r"Position (?P<place>\d+), (?P<stage>[^:]+): (?P<verb>it would say|likeliest are) (?P<says>.+), with "
    r"(?P<share>[^']+?)(?P<each> each)?\. The right token '(?P<target>[^']+)' has (?P<own>.+) and rank "
    r"(?P<rank>[\d,]+) among the (?P<symbols>[\d,]+) symbols it knows, SEP and padding\."
    r"(?P<open> This token cannot be known here, so it is a guess\.)?",
)
def would_say(
    world: World, place: str, stage: str, verb: str, says: str, share: str, each: str | None, target: str, own: str,
    rank: str, symbols: str, open: str | None,
) -> None:  # fmt: skip
    at, right = int(place) - 1, world.alone[0].targets[0, int(place) - 1]
    shares = shares_of(stages(world)[stage][at])
    known = world.task.answers(len(world.question)) & (world.most(len(world.question)) > 1 - 1e-9)
    assert world.task.vocabulary[right] == target
    assert are_likeliest(world, shares, says, share)
    assert is_small(own, shares[right])
    level = [int((shares >= shares[right] + slack).sum()) for slack in (1e-6, -1e-6)]
    assert level[0] <= int(rank) <= level[1]
    assert int(symbols) == world.task.symbols
    assert (open is None) == bool(known[at])
    assert (verb == "it would say") == (each is None)


def led_by(world: World, place: int) -> dict[str, float]:
    """What each part adds to the right token's logit at a place, from 0, above what it adds to the mean token's: each
    vector taken by itself through the norms behind it, whose divisors are those of the whole pass."""
    batch, seen = world.alone
    weight, target = world.weights["unembedding.weight"], batch.targets[0, place]
    direction = weight[target] - weight.mean(axis=0)
    last = [site for site in seen.stages if site.startswith(world.stack)][-1]
    behind = [name for name in seen.read if name.startswith(f"{world.stack}.") and name.endswith(".after")]
    norms = [(name, seen.read[name][0, place]) for name in behind]
    norms.append(("final_norm", seen.stages[last][0, place]))

    def through(vector: np.ndarray, first: str) -> float:
        names = [name for name, _ in norms]
        for name, whole in norms[names.index(first) :]:
            norm = world.model.get_submodule(name)
            vector = mapped(vector, norm) / divided_by(whole, norm)
        return float(vector @ direction)

    found = {}
    for layer in range(world.sizes.n_layers):
        block = f"{world.stack}.{layer}"
        for part in ("self", "cross"):
            site = f"{block}.{part}_attention"
            for index, written in enumerate(seen.written[site][0, :, place] if site in seen.written else ()):
                label = f"head {layer}.{index}" + " (cross-attention)" * (part == "cross")
                found[label] = through(written, f"{block}.around_{part}.after")
        site = f"{block}.feed_forward"
        if site in seen.hidden:
            down = world.weights[f"{site}.down.weight"], world.weights[f"{site}.down.bias"]
            written = seen.hidden[site][0, place] @ down[0].T + down[1]
            found[f"the feed-forward of layer {layer}"] = through(written, f"{block}.around_feed_forward.after")
    found["embedding"] = through(seen.stages[f"{world.stack}.0.resid_pre"][0, place], norms[0][0])
    return found


WRITTEN = "app_pages/whole_model/layers/lens.written_for"
ALL_PARTS = (
    r"All parts together put its logit (?P<total>[\d.]+) (?P<way>above|below) the mean token's, of which the embedding "
    r"adds (?P<embedding>[−+\d.]+) and biases (?P<biases>[−+\d.]+)\."
)


def judge_writes(
    world: World, place: str, target: str, total: Shown, way: str, embedding: Shown, biases: Shown
) -> dict[str, float]:
    """What is said of all parts; returns what each of them adds."""
    batch, seen = world.alone
    token, logits = batch.targets[0, int(place) - 1], seen.logits[0, int(place) - 1]
    assert world.task.vocabulary[token] == target
    whole, found = float(logits[token] - logits.mean()), led_by(world, int(place) - 1)
    assert total == abs(whole)
    assert (way == "below") == (whole < 0) or total.value == 0
    assert embedding == found.pop("embedding")
    assert abs(biases.value - (whole - embedding.value - sum(found.values()))) < 0.012
    return found


@law(
    WRITTEN,
    rf"At position (?P<place>\d+), (?P<none>no part writes for '(?P<target>[^']+)'; )(?:(?P<many>\d+) parts|"
    rf"(?P<who>.+?)) comes? closest: (?P<amount>[−+\d.]+)(?: each)?\. {ALL_PARTS}",
    rare=True,
)
@law(
    WRITTEN,
    rf"At position (?P<place>\d+), (?:(?P<many>\d+) parts|(?P<who>.+?)) writes? most for '(?P<target>[^']+)': "
    rf"(?P<amount>[−+\d.]+)(?: each)?\. {ALL_PARTS}",
)
def writes_most(
    world: World, place: str, many: str | None, who: str | None, target: str, amount: Shown, total: Shown, way: str,
    embedding: Shown, biases: Shown, none: str | None = None,
) -> None:  # fmt: skip
    found = judge_writes(world, place, target, total, way, embedding, biases)
    assert len(found) > 1
    assert amount == max(found.values())
    assert (none is None) == (amount.value > 0)
    assert not many or sum(amount == each for each in found.values()) >= int(many)
    for each in (who or "").replace(" and ", ", ").split(", ") if who else ():
        assert amount == found[each]


@law(
    WRITTEN,
    rf"At position (?P<place>\d+), (?P<who>.+) writes (?P<amount>[−+\d.]+) for '(?P<target>[^']+)'\. {ALL_PARTS}",
    rare=True,
)
def alone_writes_for(
    world: World, place: str, who: str, amount: Shown, target: str, total: Shown, way: str, embedding: Shown,
    biases: Shown,
) -> None:  # fmt: skip
    ((name, alone),) = judge_writes(world, place, target, total, way, embedding, biases).items()
    assert (name, True) == (who, amount == alone)


ROLLED = "app_pages/whole_model/layers/rollout.Rolled.sentence"


def rolled(world: World, layer: int, *, even: bool = False) -> np.ndarray:
    """Attention multiplied through the layers of a single stack: float [query, key]."""
    _, seen = world.alone
    n = world.alone[0].tokens.shape[1]
    flow = np.eye(n)
    for k in range(layer + 1):
        site = f"{world.stack}.{k}.self_attention"
        visible = seen.masks[site][0, 0]
        mean = seen.patterns[site][0].mean(axis=0)
        if even:
            mean = visible / np.maximum(visible.sum(axis=1, keepdims=True), 1)
        flow = np.array(
            [(flow[q] + sum(mean[q, j] * flow[j] for j in range(n))) / (1 + mean[q].sum()) for q in range(n)]
        )
    return flow


@law(
    ROLLED,
    r"In the rollout through layer (?P<layer>\d+), (?P<share>[\d.]+) of an answer comes from the token it should "
    r"be\. Looking "
    r"evenly would give (?P<even>[\d.]+)\. Layer \d+ alone puts (?P<mean>[\d.]+) of its attention there \(mean of its "
    r"heads\)\.",
)
def comes_from(world: World, layer: str, share: Shown, even: Shown, mean: Shown) -> None:
    _, seen = world.alone
    expected = world.task.expected_keys(world.question)
    if world.task.has_source:
        pattern = seen.patterns[f"decoder.{layer}.cross_attention"][0].mean(axis=0)
        assert mean == (pattern * expected).sum(axis=1)[expected.any(axis=1)].mean()
        return
    found, evenly = rolled(world, int(layer)), rolled(world, int(layer), even=True)
    expected = expected & (evenly > 0)
    rows = expected.any(axis=1)
    alone = seen.patterns[f"{world.stack}.{layer}.self_attention"][0].mean(axis=0)
    for said, values in ((share, found), (even, evenly), (mean, alone)):
        assert said == (values * expected).sum(axis=1)[rows].mean()


@law(ROLLED, r"Through layer (?P<layer>\d+) no path leads from an answer to the place that must output it\.")
def no_path(world: World, layer: str) -> None:
    expected = world.task.expected_keys(world.question)
    assert not (expected & (rolled(world, int(layer), even=True) > 0)).any()


@law(
    ROLLED,
    r"(?:In this task no token|There is only one token|In the rollout through layer \d+, [\d.]+ of a pos).*",
    rare=True,
)
def rolled_of_a_text(world: World) -> None:
    raise AssertionError("no model of the grid has such a task")


# --- follow the information

GREATEST = "app_pages/whole_model/information/matrices.Matrix.greatest"
CELLS = r"(?:Largest value|(?P<cells>[\d,]+) cells have the largest value; the first): "
OUTPUT = r"output '(?P<said>[^']+)' at (?P<row>\d+)"
SLOT = r"'(?P<token>[^']+)' at (?P<place>\d+)(?P<source> of the source)?"
VALUE = r"(?P<value>[\d.e+-]+)"


def slots_of(world: World) -> tuple[np.ndarray, int]:
    """What is read on the page's question, the source first, and how much of it is the source's."""
    batch, _ = world.alone
    source = np.zeros(0, dtype=int) if batch.source is None else batch.source[0]
    return np.concatenate([source, batch.tokens[0]]), len(source)


def laid_out(rows: np.ndarray, sources: int) -> Batch:
    """So many slots as a batch, whose targets nobody asks for."""
    tokens = rows[:, sources:]
    alike = np.ones_like(tokens, dtype=bool)
    return Batch(tokens, tokens, alike, alike, rows[:, :sources] if sources else None)


def moved_by(world: World) -> np.ndarray:
    """How far each output moves, the greatest change of a logit, when each slot is replaced: [output, slot]."""
    slots, sources = slots_of(world)
    named = dict(world.view).get("replacement")
    symbols = range(world.task.symbols) if named is None else [world.task.vocabulary.index(named)]
    rows = []
    for symbol in symbols:
        for slot, token in enumerate(slots):
            rows.append(slots.copy())
            rows[-1][slot] = token if token == world.task.padding else symbol
    logits = world.through(laid_out(np.array(rows), sources)).logits
    moves = np.abs(logits - world.alone[1].logits[0]).max(axis=-1)
    return moves.reshape(len(symbols), len(slots), -1).max(axis=0).T


def slopes_of(world: World, step: float = 1e-5) -> np.ndarray:
    """How steeply the logit of what each output says leans on the vector that enters at each slot, [output, slot]: its
    numbers are moved one by one, a little up and down."""
    slots, sources = slots_of(world)
    _, seen = world.alone
    found = []
    for stack in ["encoder"] * bool(sources) + [world.stack]:
        site = f"{stack}.0.resid_pre"
        (stream,) = seen.stages[site]
        n, d = stream.shape
        moved = np.broadcast_to(stream, (2, n, d, n, d)).copy()
        for place, number in itertools.product(range(n), range(d)):
            moved[:, place, number, place, number] += np.array([step, -step])
        batch = laid_out(np.repeat(slots[None], 2 * n * d, axis=0), sources)
        logits = world.through(batch, patch=(site, slice(None), moved.reshape(-1, n, d))).logits
        own = logits[:, np.arange(logits.shape[1]), seen.said[0]].reshape(2, n, d, -1)
        found.append(np.linalg.norm((own[0] - own[1]) / (2 * step), axis=1).T)
    return np.concatenate(found, axis=1)


def rolled_over_slots(world: World) -> np.ndarray:
    """Attention multiplied through all layers, the encoder's first: float [output, slot]."""
    _, seen = world.alone
    _, sources = slots_of(world)
    if not sources:
        return rolled(world, world.sizes.n_layers - 1)

    def onward(flow: np.ndarray, site: str, read: np.ndarray | None = None) -> np.ndarray:
        mean = seen.patterns[site][0].mean(axis=0)
        read = flow if read is None else read
        return np.array([(own + weights @ read) / (1 + weights.sum()) for own, weights in zip(flow, mean, strict=True)])

    n, memory = world.alone[0].tokens.shape[1], np.eye(sources)
    for layer in range(world.sizes.n_layers):
        memory = onward(memory, f"encoder.{layer}.self_attention")
    memory, flow = np.hstack([memory, np.zeros((sources, n))]), np.hstack([np.zeros((n, sources)), np.eye(n)])
    for layer in range(world.sizes.n_layers):
        flow = onward(flow, f"decoder.{layer}.self_attention")
        flow = onward(flow, f"decoder.{layer}.cross_attention", memory)
    return flow


def patterns_over_slots(world: World) -> list[np.ndarray]:
    """Of each head of which an output asks: its pattern, float [output, slot]."""
    _, sources = slots_of(world)
    n, found = world.alone[0].tokens.shape[1], []
    for head in world.heads:
        pattern = world.alone[1].patterns[head.site][0, head.index]
        across = head.site.endswith("cross_attention")
        if not sources:
            found.append(pattern)
        elif head.site.startswith("decoder"):
            beside = np.zeros((n, n if across else sources))
            found.append(np.hstack([pattern, beside] if across else [beside, pattern]))
    return found


def is_greatest(world: World, values: np.ndarray, cells: str | None, said: str, row: str, token: str, place: str,
                source: str | None, value: str) -> bool:  # fmt: skip
    """Are these cells the greatest as far as three digits tell, and is this the first of them?"""
    slots, sources = slots_of(world)
    names, shown = world.task.vocabulary, float(value)
    at = int(row) - 1, int(place) - 1 + sources * (source is None)
    half = 0.5 * 10.0 ** (math.floor(math.log10(shown)) - 2)
    sure, perhaps = (np.abs(values - shown) < half * room for room in (0.9, 1.1))
    return bool(
        (names[world.alone[1].said[0, at[0]]], names[slots[at[1]]]) == (said, token)
        and perhaps[at]
        and values.max() < shown + 1.1 * half
        and sure.sum() <= number(cells or "1") <= perhaps.sum()
        and not sure.ravel()[: at[0] * values.shape[1] + at[1]].any()
    )


@law(GREATEST, rf"{CELLS}{OUTPUT} moves by {VALUE} when {SLOT} is replaced\.")
def moves_most(world: World, cells: str | None, said: str, row: str, value: str, token: str, place: str,
               source: str | None) -> None:  # fmt: skip
    assert is_greatest(world, moved_by(world), cells, said, row, token, place, source, value)


@law(GREATEST, rf"{CELLS}the gradient of {OUTPUT} with respect to {SLOT} is {VALUE} long\.")
def leans_most(world: World, cells: str | None, said: str, row: str, value: str, token: str, place: str,
               source: str | None) -> None:  # fmt: skip
    assert is_greatest(world, slopes_of(world), cells, said, row, token, place, source, value)


@law(GREATEST, rf"{CELLS}{OUTPUT} gets {VALUE} of its rolled-out attention from {SLOT}\.")
def gets_most(world: World, cells: str | None, said: str, row: str, value: str, token: str, place: str,
              source: str | None) -> None:  # fmt: skip
    assert is_greatest(world, rolled_over_slots(world), cells, said, row, token, place, source, value)


@law(GREATEST, rf"{CELLS}{OUTPUT} looks at {SLOT}: {VALUE}\.")
def looks_most(world: World, cells: str | None, said: str, row: str, value: str, token: str, place: str,
               source: str | None) -> None:  # fmt: skip
    found = patterns_over_slots(world)
    assert any(is_greatest(world, each, cells, said, row, token, place, source, value) for each in found)


@law(GREATEST, r"All values are 0\.")
def all_are_0(world: World) -> None:
    found = [moved_by(world), slopes_of(world), *patterns_over_slots(world)]
    assert any(each.max() < 1e-6 for each in found)


@law(
    GREATEST,
    rf"{CELLS}an output at (?P<rows>[\d–]+) (?:moves by|gets|looks at) .+\.",
    rare=True,
)
def greatest_of_blocks(world: World, cells: str | None, rows: str) -> None:
    raise AssertionError("no model of the grid reads so much that blocks of tokens stand for it")


# --- positions

NEAR = {"similar": (0.8, 1.0), "somewhat similar": (0.3, 0.8), "nearly unrelated": (-0.3, 0.3)}
NEAR |= {"somewhat opposite": (-0.8, -0.3), "opposite": (-1.0, -0.8)}


@law(
    "app_pages/positions/positions/encoding.headline",
    r"(?P<name>\w+) positions: neighbours have (?P<alike>[a-z ]+) vectors, with cosine (?P<cosine>[−\d.]+)\.",
)
def neighbours(world: World, name: str, alike: str, cosine: Shown) -> None:
    low, high = NEAR[alike]
    assert low - 0.006 <= cosine.value <= high + 0.006
    assert name.lower() == world.sizes.positions
    rows = world.model.positions.picture(world.model.n_ctx)[0].double().numpy()
    if name == "Learned":
        rows = world.weights["positions.table"]
    near = [a @ b / math.sqrt((a @ a) * (b @ b)) for a, b in itertools.pairwise(rows)]
    assert cosine == sum(near) / len(near)


@law(
    "app_pages/positions/positions/encoding.headline",
    r"There is only one position, so there is no order to encode\.",
    r"\w+ positions: \d+ rows, some of them all zero\.",
    rare=True,
)
def no_neighbours(world: World) -> None:
    assert world.model.n_ctx == 1


ENCODING, ROTATION = "app_pages/positions/positions/encoding.", "app_pages/positions/positions/rotation."
FAR_AWAY = r"(?P<{}>[\d.,]+(?: [kM])?)"


def table_by_hand(world: World) -> np.ndarray:
    """The table on the page, of the model's own sizes: a learned one, or its pairs turned by their angles."""
    if world.sizes.positions == "learned":
        return world.weights["positions.table"]
    width = world.sizes.d_model if world.sizes.positions == "sinusoidal" else world.sizes.d_head
    rows = []
    for place in range(world.model.n_ctx):
        angles = [place / 10_000 ** (2 * pair / width) for pair in range((width + 1) // 2)]
        pairs = [(math.sin(each), math.cos(each)) for each in angles]
        rows.append(
            [part for pair in pairs for part in (pair if world.sizes.positions == "sinusoidal" else pair[::-1])]
        )
    return np.array(rows)


def in_full(text: str) -> float:
    """ "62.8 k" as a number."""
    number, _, unit = text.replace(",", "").partition(" ")
    return float(number) * {"": 1.0, "k": 1e3, "M": 1e6}[unit]


@law(
    f"{ENCODING}table_sentence",
    r"(?P<name>[A-Z]\w+) encoding: (?P<positions>\d+) positions? by (?P<columns>\d+) columns?, (?:values from "
    r"(?P<low>[−\d.]+) to (?P<high>[−\d.]+)|all values (?P<all>[−\d.]+))\.(?: Wavelengths run from "
    rf"{FAR_AWAY.format('first')} to {FAR_AWAY.format('last')} positions\.| The wavelength is "
    rf"{FAR_AWAY.format('only')} positions\.)?",
)
def is_table(
    world: World, name: str, positions: str, columns: str, low: Shown | None, high: Shown | None, all: Shown | None,
    first: str | None, last: str | None, only: str | None,
) -> None:  # fmt: skip
    table = table_by_hand(world)
    assert (name.lower(), int(positions), int(columns)) == (world.sizes.positions, *table.shape)
    assert (low or all) == table.min()
    assert (high or all) == table.max()
    longest = 2 * math.pi * 10_000 ** (1 - 2 / table.shape[1])
    waves = [each for each in (first, last, only) if each is not None]
    assert len(waves) == (0 if name == "Learned" else 1 if table.shape[1] == 2 else 2)
    for said, wave in zip(waves, (2 * math.pi, longest), strict=False):
        assert abs(in_full(said) - wave) < 0.006 * wave


@law(
    f"{ENCODING}alike_sentence",
    r"A position with itself: (?P<own>[\d.]+) on average; with another: (?P<low>[−\d.]+)(?: to (?P<high>[−\d.]+))?\."
    r"(?P<pairs> This is the score of a query and a key in which every pair of numbers is \(1, 0\)\.)?",
)
def are_alike_by(world: World, own: Shown, low: Shown, high: Shown | None, pairs: str | None) -> None:
    table = table_by_hand(world)
    products = [sum(a * b) for a, b in itertools.permutations(table, 2)]
    assert own == sum((table**2).ravel()) / len(table)
    assert low == min(products)
    assert (high or low) == max(products)
    assert (pairs is not None) == (world.sizes.positions == "rotary")


@law(f"{ENCODING}alike_sentence", r"A single position: (?P<own>[\d.]+)\..*", rare=True)
def is_alone(world: World, own: Shown) -> None:
    """No model of the grid reads a single token, and a link may ask for one position: a test of the page does."""
    assert dict(world.view)["pe_length"] == "1"
    assert own == sum(table_by_hand(world)[0] ** 2)


def apart_by_hand(table: np.ndarray) -> float:
    """By how much the products of pairs that are equally far apart differ at most."""
    n, found = len(table), []
    for distance in range(n):
        products = [float(table[at] @ table[at + distance]) for at in range(n - distance)]
        found.append(max(products) - min(products))
    return max(found)


@law(
    f"{ENCODING}distance_sentence",
    r"All pairs of positions that are equally far apart agree to (?P<apart>[^:]+): only the distance matters\.",
)
def distance_alone(world: World, apart: str) -> None:
    assert apart_by_hand(table_by_hand(world)) < 1e-9 * table_by_hand(world).shape[1]
    assert apart == "0" or int(apart.partition("10⁻")[2].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))) > 9


@law(
    f"{ENCODING}distance_sentence",
    r"Pairs that are equally far apart differ by up to (?P<apart>[\d.e+-]+): the positions matter too, not only the "
    r"distance\.",
)
def distance_and_more(world: World, apart: str) -> None:
    found = apart_by_hand(table_by_hand(world))
    assert found > 1e-9
    assert abs(float(apart) - found) < 0.006 * found


OVER = r"(?:Over all (?P<places>\d+) positions p|At the only position p there is), "
ROUNDING = r"(?:0|[\d.]+ × 10⁻(?P<{}>[⁰¹²³⁴⁵⁶⁷⁸⁹]+))"


def is_rounding(power: str | None) -> bool:
    """Is it no more than arithmetic in double precision leaves?"""
    return power is None or int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))) > 11


@law(
    f"{ROTATION}turned_sentence",
    rf"{OVER}the greatest \|PE\(p\+1\) − M · PE\(p\)\| is {ROUNDING.format('power')}\. M turns each pair by its own "
    r"angle\.",
)
def turns_each_pair(world: World, places: str | None, power: str | None) -> None:
    """A step turns the pair of wave number i by 1 / 10000^(2i / d): the same from every position."""
    table = table_by_hand(world)
    assert int(places or 1) == len(table) - 1
    assert is_rounding(power)
    for pair in range(table.shape[1] // 2):
        sine, cosine = table[:, 2 * pair], table[:, 2 * pair + 1]
        turns = np.angle((cosine + 1j * sine)[1:] / (cosine + 1j * sine)[:-1])
        np.testing.assert_allclose(turns, 10_000 ** (-2 * pair / table.shape[1]), atol=1e-9)


@law(
    f"{ROTATION}rotated_sentence",
    rf"{OVER}R takes the pair \(1, 0\) turned for p to the pair turned for p \+ 1; the largest error is "
    rf"{ROUNDING.format('power')}\. So the score of a query and a key depends on their distance only: for a random "
    rf"pair at every two positions, scores at the same distance differ by at most {ROUNDING.format('apart')}\.",
)
def rotates(world: World, places: str | None, power: str | None, apart: str | None) -> None:
    """The model's own rotation, of another query and key: they fit alike wherever they stand equally far apart."""
    n, width = world.model.n_ctx, world.sizes.d_head
    assert int(places or 1) == n - 1
    assert is_rounding(power)
    assert is_rounding(apart)
    query, key = np.random.default_rng(3).normal(size=(2, 1, 1, 1, width))
    at = [
        world.model.positions.rotate(torch.from_numpy(np.repeat(x, n, axis=2))).double().numpy()[0, 0]
        for x in (query, key)
    ]
    scores = at[0] @ at[1].T
    for distance in range(1 - n, n):
        np.testing.assert_allclose(np.diagonal(scores, distance), np.diagonal(scores, distance)[0], atol=1e-4)


def missed_by_hand(world: World) -> tuple[float, float, int, int]:
    """What the nearest map of one step misses, of the steps that it was fitted to and of others; how many steps there
    are, and dimensions. By the pseudo-inverse."""
    table = table_by_hand(world)
    before, after = table[:-1], table[1:]

    def missed(fitted: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return after[asked] - before[asked] @ (np.linalg.pinv(before[fitted]) @ after[fitted])

    every, half = np.arange(len(before)), np.random.default_rng(0).permutation(len(before)) % 2 == 0
    unseen = [missed(every[~half], every[half]), missed(every[half], every[~half])]
    size = np.linalg.norm(after)
    return (
        float(np.linalg.norm(missed(every, every)) / size),
        float(np.linalg.norm(np.concatenate(unseen)) / size),
        len(before),
        table.shape[1],
    )


@law(
    f"{ROTATION}fitted_sentence",
    r"The linear map nearest to PE\(p\+1\), fitted to (?P<steps>\d+) steps?, misses (?P<missed>[\d.]+) of it\.",
)
def misses(world: World, steps: str, missed: Shown) -> None:
    fitted, _, many, _ = missed_by_hand(world)
    assert int(steps) == many
    assert missed == fitted


@law(
    f"{ROTATION}_judged",
    r"(?:It was fitted to (?P<steps>\d+) steps? in (?P<width>\d+) dimensions\. A linear map can always fit so few "
    r"independent vectors exactly, so the first number proves nothing\. )?(?P<end>The map also works for steps that it "
    r"was not fitted to: a step is nearly the same linear map for every p|The map works in part for steps that it was "
    r"not fitted to|The map does not work for steps that it was not fitted to|There is only one step, so none is left "
    r"for a test)\.",
)
def carries_over(world: World, steps: str | None, width: str | None, end: str) -> None:
    fitted, unseen, many, d = missed_by_hand(world)
    assert (steps is not None) == (many <= d)
    assert steps is None or (int(steps), int(width or 0)) == (many, d)
    if many <= d:
        assert fitted < 1e-6
    if end.startswith("There is only one"):
        assert many == 1
    else:
        borders = {"also": (-1.0, 0.1), "in part": (0.1, 0.9), "not work": (0.9, 1e9)}
        low, high = next(each for words, each in borders.items() if words in end)
        assert low - 1e-6 <= unseen <= high + 1e-6


@law(
    "app_pages/positions/positions/alibi_and_none.penalised",
    r"Head 0 halves a key's weight every (?P<first>[\d.]+) positions, head (?P<n>\d+) every (?P<last>[\d.]+)\.",
)
def halves(world: World, first: Shown, n: str, last: Shown) -> None:
    bias = world.model.positions.bias(2, 2).double().numpy()[:, 0, 1]
    assert int(n) == len(bias) - 1
    assert abs(first.value - math.log(2) / -bias[0]) < 0.01
    assert abs(last.value / (math.log(2) / -bias[-1]) - 1) < 0.01


@law("app_pages/positions/positions/alibi_and_none.penalised", r"ALiBi tells distances: .*", rare=True)
def one_head(world: World) -> None:
    assert world.sizes.n_heads == 1


@law(
    "app_pages/positions/positions/bias.headline",
    r"(?P<encoding>.+) positions: head (?P<head>\d+) adds (?P<low>[−\d.]+) to (?P<high>[−\d.]+) to its scores\.",
    rare=True,
)
def adds_to_scores(world: World, encoding: str, head: str, low: Shown, high: Shown) -> None:
    kind, n = world.sizes.encoding, world.model.n_ctx
    assert encoding.casefold() == kind.title.casefold()
    bias = world.model.positions.bias(n, n).double().detach().numpy()[int(head)]
    assert low == bias.min()
    assert high == bias.max()


@law(
    "app_pages/positions/positions/alibi_and_none.unordered",
    r"Without positions and without a mask, this model sees no order: reading backwards changes no logit by more "
    r"than .*\.",
)
def no_order(world: World) -> None:
    from dataclasses import replace

    batch = world.task.encode(world.question[None])
    back = replace(batch, tokens=batch.tokens[:, ::-1].copy())
    everything = np.ones((batch.tokens.shape[1],) * 2, dtype=bool)
    there, again = (world.through(each, placed=False, sees=everything).logits[0] for each in (batch, back))
    np.testing.assert_allclose(there, again[::-1], rtol=0, atol=1e-9)


MAP = "parts/claims.map_of", "app_pages/positions/order/order.headline"
TERMS = ("content–content", "content–position", "position–content", "position–position")


def term_shares(world: World, head: str) -> np.ndarray:
    named = world.head(head)
    if "_terms" not in world.__dict__:
        world.__dict__["_terms"] = {}
    if named.site not in world.__dict__["_terms"]:
        batch = world.others(48)
        model = world.model.float()
        world.__dict__["_terms"][named.site] = terms_by_hand.shares_by_hand(model, world.config, batch, named.site)[0]
        world.model.double()
    return world.__dict__["_terms"][named.site][named.index]


def is_most(world: World, head: str, term: str, share: Shown) -> None:
    found = term_shares(world, head)
    at = TERMS.index(term)
    assert abs(found[at] - share.value) < 3 * NOISE, found
    assert found[at] >= found.max() - 3 * NOISE


WHO = r"(?P<head>(?:encoder |decoder |Encoder |Decoder )?[Hh]ead [\d.]+)"
for name in MAP:

    @law(
        name,
        rf"{WHO} is nearly a (?P<asks>\w+)-to-(?P<asked>\w+) map: (?P<share>[\d.]+) of its scores’ variance\.",
    )
    def is_map(world: World, head: str, asks: str, asked: str, share: Shown) -> None:
        assert share.value >= 0.8
        is_most(world, head.lower(), f"{asks}–{asked}", share)

    @law(name, rf"The term (?P<term>\w+–\w+) makes up (?P<share>[\d.]+) of the variance of {WHO}’s scores\.")
    def makes_up(world: World, head: str, term: str, share: Shown) -> None:
        assert 0.5 <= share.value <= 0.8
        is_most(world, head.lower(), term, share)

    @law(name, rf"No term makes up most of {WHO}’s score variance: (?P<term>\w+–\w+) has (?P<share>[\d.]+)\.")
    def no_term(world: World, head: str, term: str, share: Shown) -> None:
        assert share.value <= 0.5
        is_most(world, head.lower(), term, share)


@law(MAP[1], rf"{WHO} gives every key that it may see the same score\.", rare=True)
def same_score(world: World, head: str) -> None:
    named = world.head(head.lower())
    _, seen = world.looked
    pattern, mask = seen.patterns[named.site][:, named.index], seen.masks[named.site][:, named.index]
    even = mask / np.maximum(mask.sum(axis=-1, keepdims=True), 1)
    np.testing.assert_allclose(pattern, even, atol=1e-6)


@law(
    "app_pages/positions/order/order.nothing_to_move",
    r"This model has no positional encoding, so there is nothing to take apart or to move\.",
)
def tells_no_positions(world: World) -> None:
    assert world.model.positions.vectors(2) is None
    assert world.model.positions.bias(2, 2) is None
    assert not [*world.model.positions.parameters()]


@law(
    "app_pages/positions/order/displaced.without",
    r"Without positions, accuracy on the answer (?:stays at (?P<same>[\d.]+)|(?P<way>falls|rises) from "
    r"(?P<was>[\d.]+) to "
    r"(?P<now>[\d.]+))\.",
)
def without_positions(world: World, same: Shown | None, way: str | None, was: Shown | None, now: Shown | None) -> None:
    known, batch = world.known(), world.drawn(1024)
    right = [(world.through(batch, placed=placed).said == batch.targets)[:, known].mean() for placed in (True, False)]
    if same is not None:
        assert abs(right[0] - right[1]) < 0.011
        assert same == right[1]
        return
    assert was == right[0]
    assert now == right[1]
    assert (way == "falls") == (right[1] < right[0])


FURTHEST = "parts/yardstick.ByAccuracy.furthest"
KINDS = r"Positions (?P<how>shifted|cyclically shifted) by −3 to \+3, shuffled, removed: "


def displacements(world: World, how: str) -> dict[str, float]:
    """Accuracy on what can be known under each change of the positions that this model allows."""
    known, batch = world.known(), world.drawn(1024)
    tokens, source = (None if each is None else torch.from_numpy(each) for each in (batch.tokens, batch.source))
    found: dict[str, float] = {}
    kind = "places-turn" if how.startswith("c") else "places-shift"
    for text in (*(f"{kind}:{by}" for by in (-3, -2, -1, 1, 2, 3)), "places-shuffle:0", "unplaced"):
        edit = parse_edit(text)
        try:
            seen = observe(world.model, tokens, [edit], source=source, remember=lambda *_: None)
        except EditError:
            continue
        found[edit.words] = float((seen.logits.argmax(dim=-1).numpy() == batch.targets)[:, known].mean())
    return found


@law(FURTHEST, rf"{KINDS}accuracy falls with none of them\.")
def falls_with_none(world: World, how: str) -> None:
    before = world.right(1024)[:, world.known()].mean()
    assert min(displacements(world, how).values()) > before - 0.005 - 2e-3


@law(FURTHEST, rf"{KINDS}accuracy falls lowest with (?P<what>.+), to (?P<mean>[\d.]+)\.")
def falls_lowest(world: World, how: str, what: str, mean: Shown) -> None:
    found = displacements(world, how)
    assert mean == found[what]
    assert all(found[what] < each for name, each in found.items() if name != what)
    assert found[what] < world.right(1024)[:, world.known()].mean()


@law(
    FURTHEST,
    rf"{KINDS}accuracy falls lowest with (?:(?P<many>\d+) of these (?P<of>\d+) changes|(?P<two>.+)), to about "
    r"(?P<mean>[\d.]+)\.",
)
@law(FURTHEST, rf"{KINDS}accuracy is about the same with all of them, (?P<mean>[\d.]+) at the lowest\.")
def fall_about_as_low(
    world: World, how: str, mean: Shown, many: str | None = None, of: str | None = None, two: str | None = None
) -> None:
    """As many as are said are no more above the lowest than two intervals of 1,024 sequences are wide."""
    found = displacements(world, how)
    level = {name for name, each in found.items() if each < mean.value + 2 * 0.032}
    assert mean == min(found.values())
    assert of is None or int(of) == len(found)
    if two is not None:
        assert {*two.split(" and ")} <= level
    else:
        assert len(level) >= (int(many) if many else len(found)) > 1

"""Laws of what the pages below *Attention* say."""

from __future__ import annotations

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import NOISE, costs_of, named
from tests.kit.claims.world import World
from transformer import masks

PAGE = "app_pages/attention/"


# --- attention heads

HEADS = f"{PAGE}heads/words."


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
        name = next((name for words, name in does.items() if __import__("re").search(words, part)), None)
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


@law(f"{HEADS}likeness_sentence", r"Heads (?P<one>.+) and (?P<other>.+) are most alike: (?P<cosine>[\d.]+)\.")
def are_alike(world: World, one: str, other: str, cosine: Shown) -> None:
    _, seen = world.looked

    def alike(a, b) -> float:
        p, q, m = seen.patterns[a.site][:, a.index], seen.patterns[b.site][:, b.index], seen.masks[a.site][:, 0]
        asked = m.sum(axis=-1) > 1
        dots = (p * q).sum(axis=-1) / np.maximum(np.linalg.norm(p, axis=-1) * np.linalg.norm(q, axis=-1), 1e-300)
        return float(dots[asked].mean())

    kind = {head: head.site.split(".")[0] + head.site.split(".")[2] for head in world.heads}
    pairs = {(a, b): alike(a, b) for i, a in enumerate(world.heads) for b in world.heads[i + 1 :] if kind[a] == kind[b]}
    named = pairs[world.head(one), world.head(other)]
    assert named >= max(pairs.values()) - NOISE
    assert abs(named - cosine.value) < NOISE


@law(f"{HEADS}likeness_sentence", r"There are no two heads to compare\.")
def no_two(world: World) -> None:
    assert len(world.heads) < 2


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


# --- inside a head


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


@law(f"{PAGE}inside/steps.headline", rf"{ASKS}(?: of the source)? reads {ASKED} with (?P<share>[\d.]+): here is why\.")
def reads(world: World, token: str, place: str, key: str, at: str, share: Shown) -> None:
    assert any(share == each for each in readings(world, int(place) - 1, int(at) - 1))


@law(f"{PAGE}inside/steps.headline", rf"{ASKS}(?: of the source)? can only read {ASKED}: it may see nothing else\.")
def reads_one(world: World, token: str, place: str, key: str, at: str) -> None:
    _, seen = world.alone
    assert any(
        mask[0, 0, int(place) - 1].sum() == 1 and mask[0, 0, int(place) - 1, int(at) - 1]
        for mask in seen.masks.values()
        if int(place) <= mask.shape[2]
    )


@law(
    f"{PAGE}inside/steps.headline",
    rf"{ASKS} may see nothing: it attends to nothing, and its head writes nothing\.",
    rare=True,
)
def reads_none(world: World, token: str, place: str) -> None:
    _, seen = world.alone
    assert any(not mask[0, 0, int(place) - 1].any() for mask in seen.masks.values() if int(place) <= mask.shape[2])


def part_of(right: np.ndarray, world: World, part: str) -> float:
    chosen = np.array(world.task.groups(world.task.length)) == part
    return float(right[:, chosen].mean())


# --- edits, and masks


@law(
    f"{PAGE}edits/edits.headline",
    r"Nothing is edited: the (?P<part>.+) stands at (?P<share>[\d.]+)\. Remove a head, and see what breaks\.",
)
@law(
    f"{PAGE}masks/masks.headline",
    r"Under its (?P<mask>[a-z-]+) mask the (?P<part>.+) stands at (?P<share>[\d.]+)\. And under another\?",
)
def stands_at(world: World, part: str, share: Shown, mask: str = "") -> None:
    sequences = 1024 if world.page == "edits" else world.sequences
    assert part in world.task.groups(world.task.length)
    assert share == part_of(world.right(sequences), world, part)
    assert not mask or masks.parse(world.sizes.mask).name == mask


@law(
    f"{PAGE}masks/masks.headline",
    r"Without a mask the (?P<part>.+) stands at (?P<share>[\d.]+)\. And under another\?",
)
def stands_at_without(world: World, part: str, share: Shown) -> None:
    assert masks.parse(world.sizes.mask).name == "full"
    stands_at(world, part, share)


@law(
    f"{PAGE}edits/edits.headline",
    r"With (?P<head>.*head \d+\.\d+.*) removed the (?P<part>.+) (?P<way>falls|rises) from (?P<was>[\d.]+) to "
    r"(?P<now>[\d.]+)\.",
    r"With (?P<head>.*head \d+\.\d+.*) removed nothing is lost: the (?P<part>.+) keeps its (?P<now>[\d.]+)\.",
)
def with_edit(world: World, head: str, part: str, now: Shown, way: str = "", was: Shown | None = None) -> None:
    before, after = (
        part_of(world.right(1024, without=each), world, part) for each in ((), (world.head(head.replace("head ", "")),))
    )
    assert now == after
    if was is None:
        assert abs(after - before) < 0.011
        return
    assert was == before
    assert (way == "falls") == (after < before)


@law(
    f"{PAGE}masks/answers.change_sentence",
    r"0 of (?P<of>\d+) predictions flip\. No right token's probability moves by 0\.005 or more\.",
)
def changes_nothing(world: World, of: str) -> None:
    """Under the model's own mask."""
    assert int(of) == world.task.answers(len(world.question)).sum()


# --- which tokens can reach an output

NAME = r"Output (?P<name>[xy]\d+|SEP), said at position (?P<place>\d+),"
UNTOLD = r"(?: The model is not told the length, so the best guess is right (?P<best>[\d.]+) of the time\.)?"
WAYS = f"{PAGE}masks/ways.sentence"


def slots_of(world: World) -> list[str]:
    """What the slots are called, in the order of what reaches a target."""
    names, n = world.task.target_names(world.task.length), world.task.length
    question = [f"x{i + 1}" for i in range(n)]
    if world.task.has_source:
        return [*question, "SEP", *names[:-1]]
    return question if len(names) == n else ["x1", *names[:-1]]


def is_named(world: World, name: str, place: str, best: str | None) -> int:
    target = int(place) - 1
    assert world.task.target_names(world.task.length)[target] == name
    if best is not None:
        assert abs(world.most()[target] - float(best)) < 0.02
        assert world.greatest()[target] > world.most()[target]
    return target


@law(
    WAYS,
    rf"{NAME} needs the (?P<kind>source token|token) (?P<slot>\w+)\. It can arrive in (?P<layers>\d+) "
    rf"layers?(?P<how>[^.]*)\."
    rf"{UNTOLD}",
)
def arrives(world: World, name: str, place: str, kind: str, slot: str, layers: str, how: str, best: str | None) -> None:
    target, at = is_named(world, name, place, best), slots_of(world).index(slot)
    assert world.reach(world.task.length, int(layers))[target, at]
    assert not world.reach(world.task.length, int(layers) - 1)[target, at]
    assert int(layers) <= world.sizes.n_layers
    if how == ", directly":
        assert int(layers) == 1
    carried = [*world.task.symbols_of_slots(world.task.length)]
    assert carried[at] == world.task.symbols_of_targets(world.task.length)[target]


@law(
    WAYS,
    rf"{NAME} needs the (?:source token|token) (?P<slot>\w+)\. It can never arrive, so at most (?P<most>[\d.]+) "
    rf"can be right\."
    rf"{UNTOLD}",
)
def never_arrives(world: World, name: str, place: str, slot: str, most: Shown, best: str | None) -> None:
    target = is_named(world, name, place, best)
    assert not world.reach(world.task.length, 20)[target, slots_of(world).index(slot)]
    assert abs(most.value - world.greatest()[target]) < 0.02


@law(
    WAYS,
    rf"{NAME} needs the (?:source token|token) (?P<slot>\w+)\. That takes (?P<layers>\d+) layers, and this model has "
    rf"(?P<own>\d+): at most (?P<most>[\d.]+) can be right\.{UNTOLD}",
)
def takes_more(
    world: World, name: str, place: str, slot: str, layers: str, own: str, most: Shown, best: str | None
) -> None:
    target, at = is_named(world, name, place, best), slots_of(world).index(slot)
    assert world.reach(world.task.length, int(layers))[target, at]
    assert not world.reach(world.task.length, int(layers) - 1)[target, at]
    assert int(layers) > int(own) == world.sizes.n_layers
    assert abs(most.value - world.greatest()[target]) < 0.02


@law(WAYS, rf"{NAME} needs the token (?P<slot>\w+), which stands at its own position\.{UNTOLD}", rare=True)
def is_there(world: World, name: str, place: str, slot: str, best: str | None) -> None:
    target = is_named(world, name, place, best)
    assert slots_of(world).index(slot) - world.task.has_source * world.task.length == target


@law(
    WAYS,
    rf"{NAME} can copy its own answer from the token (?P<slot>\w+), in (?P<layers>\d+) layers?: this mask leaks\.",
)
def copies(world: World, name: str, place: str, slot: str, layers: str) -> None:
    target = is_named(world, name, place, None)
    assert world.reach(world.task.length, int(layers))[target, slots_of(world).index(slot)]
    assert slot == name
    assert slots_of(world).index(slot) - world.task.has_source * world.task.length > target


@law(
    WAYS,
    rf"{NAME} may depend on all (?P<n>\d+) tokens of the question\. They can arrive in (?P<layers>\d+) "
    rf"layers?\.{UNTOLD}",
)
def all_arrive(world: World, name: str, place: str, n: str, layers: str, best: str | None) -> None:
    target, length = is_named(world, name, place, best), world.task.length
    assert int(n) == length
    assert world.reach(length, int(layers))[target, :length].all()
    assert not world.reach(length, int(layers) - 1)[target, :length].all()


@law(
    WAYS,
    rf"{NAME} may depend on all (?P<n>\d+) tokens of the question\. What decides it can arrive in this model’s "
    rf"(?P<layers>\d+) "
    rf"layers?\.{UNTOLD}",
    rare=True,
)
def enough_arrives(world: World, name: str, place: str, n: str, layers: str, best: str | None) -> None:
    target = is_named(world, name, place, best)
    assert world.greatest()[target] > 1 - 1e-9
    assert int(layers) == world.sizes.n_layers


@law(
    WAYS,
    rf"{NAME} may depend on all (?P<n>\d+) tokens of the question\. (?P<some>\d+) of them can arrive, so at most "
    rf"(?:about )?"
    rf"(?P<most>[\d.]+) can be right\.{UNTOLD}",
)
def some_arrive(world: World, name: str, place: str, n: str, some: str, most: Shown, best: str | None) -> None:
    target = is_named(world, name, place, best)
    assert world.reach(world.task.length)[target, : world.task.length].sum() == int(some) < int(n)
    assert abs(most.value - world.greatest()[target]) < 0.02

"""Laws of what the pages say that change the chosen model: masks and edits."""

from __future__ import annotations

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.world import World
from transformer import masks


def part_of(right: np.ndarray, world: World, part: str) -> float:
    chosen = np.array(world.task.groups(world.task.length)) == part
    return float(right[:, chosen].mean())


# --- edits, and masks


@law(
    "app_pages/attention/edits/edits.headline",
    r"Nothing is edited: the (?P<part>.+) stands at (?P<share>[\d.]+)\. Remove a head, and see what breaks\.",
)
@law(
    "app_pages/attention/masks/masks.headline",
    r"Under its (?P<mask>[a-z-]+) mask the (?P<part>.+) stands at (?P<share>[\d.]+)\. And under another\?",
)
def stands_at(world: World, part: str, share: Shown, mask: str = "") -> None:
    sequences = 1024 if world.page == "edits" else world.sequences
    assert part in world.task.groups(world.task.length)
    assert share == part_of(world.right(sequences), world, part)
    assert not mask or masks.parse(world.sizes.mask).name == mask


@law(
    "app_pages/attention/masks/masks.headline",
    r"Without a mask the (?P<part>.+) stands at (?P<share>[\d.]+)\. And under another\?",
)
def stands_at_without(world: World, part: str, share: Shown) -> None:
    assert masks.parse(world.sizes.mask).name == "full"
    stands_at(world, part, share)


@law(
    "app_pages/attention/edits/edits.headline",
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
    "app_pages/attention/masks/answers.change_sentence",
    r"0 of (?P<of>\d+) predictions flip\. No right token's probability moves by 0\.005 or more\.",
)
def changes_nothing(world: World, of: str) -> None:
    """Under the model's own mask."""
    assert int(of) == world.task.answers(len(world.question)).sum()


PATCHING = "app_pages/attention/edits/second_input.patching_sentence"


def brought_back(world: World) -> dict[tuple[str, int], float]:
    """What of the logit difference comes back when one site at one position, from 0, is taken from the run on the
    page's input, in the run on the same but for its first symbol."""
    question, task = world.question, world.task
    other = np.array([(question[0] + 1) % task.symbols, *question[1:]])
    edit = dict(world.view).get("edits", "").removeprefix("zero:")
    gone = tuple(head for head in world.heads if f"{head.site}.{head.index}" == edit)
    one, second = (task.encode(each[None]) for each in (question, other))
    whole, bare = (world.through(batch, gone) for batch in (one, second))
    asked = np.flatnonzero(task.answers(len(question)) & (one.targets[0] != second.targets[0]))

    def difference(logits: np.ndarray) -> float:
        return float((logits[0, asked, one.targets[0, asked]] - logits[0, asked, second.targets[0, asked]]).mean())

    high, low = difference(whole.logits), difference(bare.logits)
    sites = {name: stream for name, stream in whole.stages.items() if not name.endswith("resid_pre")}
    sites |= {f"{name}.z": z for name, z in whole.z.items()}
    return {
        (site, place): (
            difference(world.through(second, gone, patch=(site, slice(place, place + 1), values)).logits) - low
        )
        / (high - low)
        for site, values in sites.items()
        for place in range(values.shape[-2])
    }


@law(
    PATCHING,
    r"After the embedding, patching (?P<sites>.+) at position (?P<place>\d+) brings back most: (?P<share>[−\d.]+) of "
    r"the logit difference(?P<each> each)?\.",
)
def brings_back_most(world: World, sites: str, place: str, share: Shown, each: str | None) -> None:
    found, named = brought_back(world), sites.replace(" or ", ", ").split(", ")
    assert all(share == found[site, int(place) - 1] for site in named)
    assert share == max(found.values())
    assert (each is not None) == (len(named) > 1)


@law(
    PATCHING,
    r"After the embedding, (?P<many>\d+) of these patches bring back most: (?P<share>[−\d.]+) of the logit difference "
    r"each\.",
)
def bring_back_most(world: World, many: str, share: Shown) -> None:
    found = brought_back(world)
    assert share == max(found.values())
    assert sum(share == each for each in found.values()) >= int(many) > 1


@law(PATCHING, r"After the embedding, no patch brings back anything of the logit difference\.", rare=True)
def brings_nothing_back(world: World) -> None:
    assert max(brought_back(world).values()) < 0.005 + 1e-4


# --- which tokens can reach an output

NAME = r"Output (?P<name>[xy]\d+|SEP), said at position (?P<place>\d+),"
UNTOLD = r"(?: The model is not told the length, so the best guess is right (?P<best>[\d.]+) of the time\.)?"
WAYS = "app_pages/attention/masks/ways.sentence"


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

"""Laws of the page "Through the layers": what each stage would say, who writes it, and attention rolled out."""

from __future__ import annotations

import itertools

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.world import World
from tests.kit.claims.written import are_likeliest, is_small, shares_of
from tests.kit.heads_by_hand import divided_by, mapped

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


def rollout_of(world: World, layer: int, *, even: bool = False) -> np.ndarray:
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
    found, evenly = rollout_of(world, int(layer)), rollout_of(world, int(layer), even=True)
    expected = expected & (evenly > 0)
    rows = expected.any(axis=1)
    alone = seen.patterns[f"{world.stack}.{layer}.self_attention"][0].mean(axis=0)
    for said, values in ((share, found), (even, evenly), (mean, alone)):
        assert said == (values * expected).sum(axis=1)[rows].mean()


@law(ROLLED, r"Through layer (?P<layer>\d+) no path leads from an answer to the place that must output it\.")
def no_path(world: World, layer: str) -> None:
    expected = world.task.expected_keys(world.question)
    assert not (expected & (rollout_of(world, int(layer), even=True) > 0)).any()


@law(
    ROLLED,
    r"(?:In this task no token|There is only one token|In the rollout through layer \d+, [\d.]+ of a pos).*",
    rare=True,
)
def rolled_of_a_text(world: World) -> None:
    raise AssertionError("no model of the grid has such a task")

"""Laws of what the pages below *Whole model* say."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import NOISE
from tests.kit.claims.world import World
from tests.kit.heads_by_hand import divided_by
from tests.kit.pages import shown
from transformer.model import build
from transformer.norms import NORMS

PAGE = "app_pages/whole_model/"
INFLUENCE = f"{PAGE}information/influence.Flow."
TOKEN = r"'(?P<token>[^']+)' at (?P<place>\d+)(?P<source> of the source)?"


# --- inside a block


def stands(world: World, token: str, place: str, source: str | None) -> bool:
    """Does the token stand there, in what one of the stacks reads?"""
    batch, _ = world.alone
    read = batch.tokens[0] if not source else batch.source[0]  # type: ignore[index]
    return world.task.vocabulary[read[int(place) - 1]] == token


@law(
    f"{PAGE}block/heads._headline",
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
    f"{PAGE}block/heads._headline",
    rf"(?P<width>\d+) = (?P<heads>\d+) × (?P<each>\d+): no head writes anything at {TOKEN}, which may see nothing\.",
)
def writes_nothing(world: World, width: str, heads: str, each: str, token: str, place: str, source: str | None) -> None:
    _, seen = world.alone
    assert any(not each[0, 0, int(place) - 1].any() for each in seen.masks.values() if int(place) <= each.shape[2])
    assert (int(heads), int(width)) == (world.sizes.n_heads, world.sizes.d_model)


@law(
    f"{PAGE}block/heads._headline",
    rf"There is one head: all (?P<width>\d+) numbers stay together, and it writes nothing at {TOKEN}, which may see "
    r"nothing\.",
)
def one_writes_nothing(world: World, width: str, token: str, place: str, source: str | None) -> None:
    writes_nothing(world, width, "1", width, token, place, source)


@law(f"{PAGE}block/heads._headline", r"There is one head: all (?P<d>\d+) numbers stay together, and it alone writes\.")
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
    f"{PAGE}block/norm.headline",
    rf"(?P<norm>.+?) subtracts the mean (?P<mean>[−\d.]+) from {TOKEN} and divides by (?P<size>[\d.]+)\.",
)
def subtracts(world: World, norm: str, mean: Shown, token: str, place: str, source: str | None, size: Shown) -> None:
    kind = NORMS[world.sizes.norm_kind]
    assert (norm, True) == (kind.title, kind.centres)
    assert any(mean == one and size == other for one, other in divisors(world, place))


@law(
    f"{PAGE}block/norm.headline",
    rf"(?P<norm>.+?) divides the numbers of {TOKEN} by (?P<size>[\d.]+), their (?P<name>[^.]+)\.",
)
def divides(world: World, norm: str, token: str, place: str, source: str | None, size: Shown, name: str) -> None:
    kind = NORMS[world.sizes.norm_kind]
    assert (norm, name, False) == (kind.title, kind.size_name, kind.centres)
    assert any(size == each for _, each in divisors(world, place))


@law(f"{PAGE}block/norm.without", r"mine has no norm: each sub-layer reads the stream as it is\.")
def has_no_norm(world: World) -> None:
    assert not any(".before" in name or ".after" in name for name, _ in world.model.named_parameters())


@law(
    f"{PAGE}block/feed_forward.headline",
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
    f"{PAGE}block/feed_forward.strongest_sentence",
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
    f"{PAGE}block/parameters.moved_sentence",
    r"mine at step (?P<step>\d+): nothing has moved yet\. These are the weights that its seed draws\.",
)
def nothing_has_moved(world: World, step: str) -> None:
    assert int(step) == world.step
    drawn = build(world.config).state_dict()
    assert all(np.array_equal(drawn[name].double().numpy(), each) for name, each in world.weights.items())


@law(
    f"{PAGE}block/parameters.moved_sentence",
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


@law(f"{PAGE}block/heads.looking_sentence", rf"This token may see nothing\.{GREY}")
def sees_no_key(world: World, hidden: str | None, of: str | None) -> None:
    assert any(not visible.any() for _, visible in rows_of(world, hidden, of))


@law(
    f"{PAGE}block/heads.looking_sentence",
    rf"(?:The head looks|(?:Both|All (?P<heads>\d+)) heads look) most at (?:the same token, )?'(?P<token>[^']+)' at "
    rf"(?P<place>\d+)(?:: (?P<share>[\d.]+))?\.{GREY}",
)
def look_at_one(
    world: World, heads: str | None, token: str, place: str, share: Shown | None, hidden: str | None, of: str | None
) -> None:
    rows = [
        row
        for row, _ in rows_of(world, hidden, of)
        if int(place) <= row.shape[1] and (row.argmax(axis=1) == int(place) - 1).all()
    ]
    assert rows
    assert heads is None or int(heads) == world.sizes.n_heads
    assert (share is not None) == (world.sizes.n_heads == 1)
    assert share is None or any(
        abs(share.value - row[0, int(place) - 1]) < 0.006 for row in rows
    )  # nearly all, cut off


@law(
    f"{PAGE}block/heads.looking_sentence",
    rf"The (?P<heads>\d+) heads look most at (?P<different>\d+) different tokens\.{GREY}",
)
def look_at_several(world: World, heads: str, different: str, hidden: str | None, of: str | None) -> None:
    assert int(heads) == world.sizes.n_heads
    assert any(len({*row.argmax(axis=1)}) == int(different) for row, _ in rows_of(world, hidden, of))


@law(f"{PAGE}block/feed_forward.without", r"mine has no feed-forward layers, so there are no hidden units\.")
def has_no_units(world: World) -> None:
    assert not any("feed_forward" in name for name, _ in world.model.named_parameters())


@law(
    f"{PAGE}block/dropout._headline",
    r"With dropout (?P<rate>[\d.]+), (?P<n>\d+) passes of one input in training mode give probabilities up to "
    r"(?P<up>.+) "
    r"apart; in evaluation mode (?:all \d+|both) passes agree to the last bit\.",
)
def drops(world: World, rate: Shown, n: str, up: str) -> None:
    import torch

    batch, _ = world.alone
    read = [torch.tensor(each) for each in (batch.tokens, batch.source) if each is not None]
    with torch.no_grad():
        one, other = (world.model(*read) for _ in range(2))
    assert torch.equal(one, other)
    assert rate.value > 0


@law(
    f"{PAGE}block/logits._headline",
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
    f"{PAGE}block/parameters.headline",
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
    f"{PAGE}machine/words.headline",
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
    f"{PAGE}machine/words.headline",
    r"(?P<stack>Encoder|Decoder) block (?P<n>\d+) has (?P<own>[\d,]+) of the model’s (?P<total>[\d,]+) parameters\.",
)
def block_has(world: World, stack: str, n: str, own: Shown, total: Shown) -> None:
    sizes = {name: weight.numel() for name, weight in world.model.named_parameters()}
    assert total.value == sum(sizes.values())
    assert own.value == sum(size for name, size in sizes.items() if name.startswith(f"{stack.lower()}.{n}."))


@law(
    f"{PAGE}machine/words.headline",
    r"Head (?P<head>[\d.]+) is one of (?P<heads>\d+) in its layer: (?P<width>\d+) of the (?P<d>\d+) numbers are "
    r"its own\.",
)
def head_is(world: World, head: str, heads: str, width: str, d: str) -> None:
    assert (int(heads), int(d)) == (world.sizes.n_heads, world.model.embedding.weight.shape[1])
    assert int(heads) * int(width) == int(d)


@law(
    f"{PAGE}machine/words.headline",
    r"Head (?P<head>[\d.]+) is the only one in its layer: all (?P<width>\d+) numbers are its own\.",
)
def head_is_alone(world: World, head: str, width: str) -> None:
    assert (world.sizes.n_heads, int(width)) == (1, world.model.embedding.weight.shape[1])


# --- through the layers

PART = {"attention": "resid_mid", "cross-attention": "resid_cross", "feed-forward": "resid_post"}
LAYERS = f"{PAGE}layers/lens.Reading.headline"


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
    f"{PAGE}layers/lens.settling",
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


ROLLED = f"{PAGE}layers/rollout.Rolled.sentence"


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


# --- what a token moves


def moved(world: World, slot: int) -> tuple[np.ndarray, np.ndarray]:
    """How far the logits of each output move at most when a token is replaced by each symbol, and whether another token
    is said then: float and bool [symbol, output]."""
    batch, seen = world.alone
    said, before = seen.said[0], seen.logits[0]
    sources = 0 if batch.source is None else batch.source.shape[1]
    found, others = [], []
    for symbol in range(world.task.symbols):
        tokens, source = batch.tokens.copy(), None if batch.source is None else batch.source.copy()
        if source is not None and slot < sources:
            source[0, slot] = symbol
        else:
            tokens[0, slot - sources] = symbol
        after = world.through(replace(batch, tokens=tokens, source=source))
        found.append(np.abs(after.logits[0] - before).max(axis=-1))
        others.append(after.said[0] != said)
    return np.array(found), np.array(others)


BY = r"(?: by '(?P<by>[^']+)')?"


def symbols(world: World, by: str | None) -> list[int]:
    """What is put in the place of a token: this symbol, or each in turn."""
    return [*range(world.task.symbols)] if by is None else [world.task.vocabulary.index(by)]


def slot_of(world: World, token: str, place: str, source: str | None) -> int:
    batch, _ = world.alone
    sources = 0 if batch.source is None else batch.source.shape[1]
    read = batch.source if source else batch.tokens
    assert world.task.vocabulary[read[0, int(place) - 1]] == token  # type: ignore[index]
    return int(place) - 1 + (0 if source else sources)


@law(
    f"{INFLUENCE}headline",
    rf"Replacing {TOKEN}{BY} moves (?P<count>\d+) of (?P<of>\d+) outputs?: (?P<mostly>most )?the one at (?P<output>\d+)"
    r"(?:, whose right token is '(?P<right>[^']+)')?\.",
)
def moves(
    world: World, token: str, place: str, source: str | None, by: str | None, count: str, of: str,
    mostly: str | None, output: str, right: str | None,
) -> None:  # fmt: skip
    batch, _ = world.alone
    most = moved(world, slot_of(world, token, place, source))[0][symbols(world, by)].max(axis=0)
    assert int(of) == len(most)
    assert int(count) == (most > 1e-12).sum()
    assert most[int(output) - 1] >= most.max() * (1 - 1e-4)
    if right is not None:
        assert world.task.vocabulary[batch.targets[0, int(output) - 1]] == right
    honest = world.reach(len(world.question), honest=True)
    assert not ((most > 1e-12) & ~honest[:, slot_of(world, token, place, source)]).any()


@law(f"{INFLUENCE}headline", rf"Replacing {TOKEN}{BY} moves no output\.", rare=True)
def moves_none(world: World, token: str, place: str, source: str | None, by: str | None) -> None:
    assert moved(world, slot_of(world, token, place, source))[0][symbols(world, by)].max() < 1e-9


@law(
    f"{INFLUENCE}headline",
    rf"The mask leaks: the output at (?P<output>\d+) moves by (?P<far>[\d.e−-]+) when {TOKEN} is replaced{BY}, "
    r"which it must not know\.",
)
def must_not(world: World, output: str, far: str, token: str, place: str, source: str | None, by: str | None) -> None:
    slot = slot_of(world, token, place, source)
    most = moved(world, slot)[0][symbols(world, by)].max(axis=0)
    assert abs(most[int(output) - 1] - float(far.replace("−", "-"))) < 1e-5 + 0.01 * most[int(output) - 1]
    task, n = world.task, len(most)
    sources = n_source if (n_source := 0 if world.alone[0].source is None else world.alone[0].source.shape[1]) else 0
    limit = task.limit.matrix(n)
    assert slot >= sources
    assert not limit[int(output) - 1, slot - sources]


@law(
    f"{INFLUENCE}verdict",
    r"(?P<bad>[\d,]+) of (?P<of>[\d,]+) cells must be 0 and are not; they are outlined\. The model's own mask is "
    r"(?P<mask>[^ ]+)\.",
)
def leak(world: World, bad: Shown, of: Shown, mask: str) -> None:
    assert mask == world.sizes.mask
    honest, own = (world.reach(len(world.question), honest=each) for each in (True, False))
    assert of.value == (~honest).sum()
    assert 0 < bad.value <= (own & ~honest).sum()


@law(f"{INFLUENCE}verdict", r"No cell is forbidden: under the mask (?P<mask>[^ ]+) every output may know every token\.")
def all_allowed(world: World, mask: str) -> None:
    assert mask == world.sizes.mask
    assert world.reach(len(world.question), honest=True).all()


@law(
    f"{INFLUENCE}verdict",
    r"(?:(?P<every>Every output may know this token)|Nothing before position (?P<place>\d+) moved: the mask "
    r"holds|No path leads "
    r"from it to (?P<blind>\d+) of the outputs\. They did not move: the mask holds)\. (?:All (?P<hatched>[\d,]+) "
    r"hatched cells are exactly 0, and so are their gradients|The one hatched cell is exactly 0, and so is its "
    r"gradient)\.",
)
def mask_holds(world: World, every: str | None, place: str | None, blind: str | None, hatched: Shown | None) -> None:
    honest = world.reach(len(world.question), honest=True)
    assert (1 if hatched is None else hatched.value) == (~honest).sum() > 0
    if place is not None:
        sources = 0 if world.alone[0].source is None else world.alone[0].source.shape[1]
        column = honest[:, sources + int(place) - 1]
        assert not column[: int(place) - 1].any()
        assert column[int(place) - 1 :].all()
    if blind is not None:
        assert int(blind) in (~honest).sum(axis=0)
    if every is not None:
        assert honest.all(axis=0).any()


@law(
    f"{INFLUENCE}flips",
    r"(?P<count>No output says|One output says|\d+ outputs say) another token with '(?P<symbol>[^']+)' in its "
    r"place(?P<most>, the symbol that moves them most)?\.",
)
def flip(world: World, count: str, symbol: str, most: str | None) -> None:
    """Of some token that the page may have poked."""
    assert (most is None) == ("replacement" in dict(world.view))
    batch, _ = world.alone
    slots = batch.tokens.shape[1] + (0 if batch.source is None else batch.source.shape[1])
    number = {"No": 0, "One": 1}.get(count.split()[0]) if not count[0].isdigit() else int(count.split()[0])
    at = world.task.vocabulary.index(symbol)
    assert any(moved(world, slot)[1][at].sum() == number for slot in range(slots))


@law(f"{INFLUENCE}flips", r"(?P<place>'.+) is '(?P<symbol>[^']+)' already, so nothing can move\.", rare=True)
def is_there_already(world: World, place: str, symbol: str) -> None:
    assert place.startswith(f"'{symbol}' at ")
    assert dict(world.view)["replacement"] == symbol


@law(f"{INFLUENCE}flips", r"No output moves with '(?P<symbol>[^']+)' in its place\.", rare=True)
def none_moves(world: World, symbol: str) -> None:
    assert dict(world.view)["replacement"] == symbol


@law(f"{INFLUENCE}flips", r"No output depends on that token\.", rare=True)
def none_depends(world: World) -> None:
    batch, _ = world.alone
    slots = batch.tokens.shape[1] + (0 if batch.source is None else batch.source.shape[1])
    assert any(moved(world, slot)[0].max() < 1e-9 for slot in range(slots))

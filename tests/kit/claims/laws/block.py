"""Laws of the page "Inside a block": its heads side by side, norms, hidden units, dropout, logits, parameters."""

from __future__ import annotations

import copy
import math
import re

import numpy as np
import torch

from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import NOISE
from tests.kit.claims.world import World
from tests.kit.claims.written import TOKEN, is_share, power_of_ten, reads
from tests.kit.heads_by_hand import divided_by
from tests.kit.pages import shown
from transformer.model import build
from transformer.norms import NORMS


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
    rf"(?P<one>The head) looks most at (?P<many>\d+) of \d+ tokens: (?P<share>[\d.]+) each\.{GREY}",
    rf"(?:Both|All (?P<heads>\d+)) heads look most at the same (?P<many>\d+) tokens, at each of them alike\.{GREY}",
    rare=True,
)
@law(
    LOOKING,
    rf"(?:(?P<one>The head) looks|(?:Both|All (?P<heads>\d+)) heads look) most at (?:the same token, )?(?P<tokens>'.+?)"
    rf"(?:: (?P<share>[\d.]+)(?: each)?)?\.{GREY}",
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
    assert reads(world, token, place)
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


# --- what all heads write, added up


@law(
    "app_pages/whole_model/block/heads._sum_words",
    r"The (?:vectors of the (?P<heads>\d+) heads|vector of the head) and the bias add up to the output: the largest "
    r"difference is (?P<off>[\d.]+(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)\.",
)
def add_up(world: World, heads: str | None, off: str) -> None:
    """To rounding, whose size is not the same on every machine: a dozen times that of single precision at most."""
    assert int(heads or 1) == world.sizes.n_heads
    largest = max(np.abs(each).max() for name, each in world.alone[1].vectors.items() if name.endswith(".out"))
    digits, exponent = power_of_ten(off)
    assert 0 <= digits * 10.0**exponent <= 12 * np.finfo(np.float32).eps * max(1.0, largest)


CANCEL = "app_pages/whole_model/block/heads._cancel_words"


def lengths_at_each(world: World) -> list[tuple[float, float]]:
    """What the lengths of all that is added up come to, and the length of the sum: at each place of each attention."""
    found = []
    for site, written in world.alone[1].written.items():
        bias = world.weights[f"{site}.out.bias"]
        parts = np.linalg.norm(written[0], axis=-1).sum(axis=0) + np.linalg.norm(bias)
        whole = np.linalg.norm(written[0].sum(axis=0) + bias, axis=-1)
        found += zip(parts.tolist(), whole.tolist(), strict=True)
    return found


@law(
    CANCEL,
    r"Their lengths add up to (?P<added>[\d.]+), but the output has length (?P<length>[\d.]+): vectors can cancel each "
    r"other\.",
)
def cancel(world: World, added: Shown, length: Shown) -> None:
    assert world.sizes.n_heads > 1
    assert length.value < added.value
    assert any(added == parts and length == whole for parts, whole in lengths_at_each(world))


@law(CANCEL, None)
def cancel_nothing(world: World) -> None:
    assert world.sizes.n_heads == 1 or any(abs(parts - whole) < 0.011 for parts, whole in lengths_at_each(world))

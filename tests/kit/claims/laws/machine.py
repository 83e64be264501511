"""Laws of the page "The machine": what is drawn, what stands in a box, and what training moved."""

from __future__ import annotations

import math
import re

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import SIZE
from tests.kit.claims.world import World
from tests.kit.claims.written import LARGEST, are_largest, level_of, stands


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
    r"A GRU reads (?P<source>\d+) tokens?, and a second one (?:(?P<looks>looks back at its states)|begins at its last "
    r"state): (?P<total>[\d,]+) parameters\.",
)
def a_gru_reads(world: World, source: str, looks: str | None, total: Shown) -> None:
    assert world.sizes.recurrent
    assert int(source) == len(world.question)
    assert (looks is not None) == bool(world.heads)
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
    begins |= {"encoder: ": "core.encoder.", "decoder: ": "core.decoder.", world.sizes.attention: "core.attention."}
    prefix = next((prefix for begin, prefix in begins.items() if title.startswith(begin)), "positions.")
    found = [weights for name, weights in world.weights.items() if name.startswith(prefix)]
    assert found, title
    return found


def boxes_of(world: World, block: str) -> list[str]:
    """What the boxes with weights are called, of the whole model or of one block."""
    names, sizes = {name for name, _ in world.model.named_parameters()}, world.sizes
    norm = sizes.kind_of_norm.title
    if sizes.recurrent:
        cells = "GRU" if sizes.n_layers == 1 else f"{sizes.n_layers} layers of GRU"
        attention = (
            [f"{sizes.attention} attention"] if any(name.startswith("core.attention.") for name in names) else []
        )
        return ["embedding", f"encoder: {cells}", f"decoder: {cells}", *attention, "unembedding"]
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

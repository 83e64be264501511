"""Laws of the pages about a model that is not ours. No model of the grid meets them: a test of these pages does."""

from __future__ import annotations

import re
import unicodedata

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.foreign import Foreign

STREAM, ABLATION, IMPORTED = (f"app_pages/your_model/{page}/words." for page in ("stream", "ablation", "imported"))
AMOUNT = r"[\d.e-]+"


def as_shown(shown: str, value: float) -> None:
    """Is this how an amount is written? With three digits behind the point, or with two that say something."""
    assert abs(float(shown) - value) <= (0.0006 if value >= 0.01 else 0.06 * value)


# --- its layers


@law(
    f"{STREAM}headline",
    r"From which tokens each position comes, through its (?:(?P<layers>\d+) layers|one layer)\.",
    rare=True,
)
def has_no_lens(world: Foreign, layers: str | None) -> None:
    assert world.model.get_output_embeddings() is None
    assert world.model.config.num_hidden_layers == int(layers or 1)


@law(
    f"{STREAM}headline",
    r"After (?P<place>the embedding|layer \d+) it would already say (?P<how>its word|all of its \d+ words|\d+ of its "
    r"\d+ words)\.",
    rare=True,
)
def would_already_say(world: Foreign, place: str, how: str) -> None:
    """It is the first place of which that is true of half of the words."""
    same = (world.stages == world.stages[-1]).sum(axis=1)
    at, total = 0 if "embedding" in place else int(place.split()[1]) + 1, world.stages.shape[1]
    numbers = [int(word) for word in how.split() if word.isdigit()] or [1]
    assert (numbers[0], numbers[-1]) == (same[at], total)
    assert at < len(same) - 1
    assert 2 * same[at] >= total > 2 * max([*same[:at], -1])


@law(
    f"{STREAM}headline",
    r"(?:Half of its (?P<total>\d+) words come|Its word comes) only in its last layer\.",
    rare=True,
)
def only_the_last_layer(world: Foreign, total: str | None) -> None:
    assert world.stages.shape[1] == int(total or 1)
    assert (2 * (world.stages[:-1] == world.stages[-1]).sum(axis=1) < world.stages.shape[1]).all()


@law(
    f"{STREAM}lens", r"Logit lens\. So many of (?P<total>\d+) words? are those of the last stage: (?P<counts>.+)\.",
    rare=True,
)  # fmt: skip
def agree_with_the_end(world: Foreign, total: str, counts: str) -> None:
    same = (world.stages == world.stages[-1]).sum(axis=1)
    places = ["embedding", *(f"layer {n}" for n in range(len(same) - 1))]
    assert counts == ", ".join(f"{count} {place}" for count, place in zip(same, places, strict=True))
    assert int(total) == world.stages.shape[1]


@law(
    f"{STREAM}rolled",
    r"In the rollout through layer (?P<layer>\d+), (?P<own>[\d.]+) of a position comes from its own token and "
    r"(?P<before>[\d.]+) from the one before\. Layer \d+ alone puts (?P<alone>[\d.]+) and (?P<alone_before>[\d.]+) of "
    r"its attention there \(mean of its heads\)\.",
    rare=True,
)
def comes_from(
    world: Foreign, layer: str, own: Shown, before: Shown, alone: Shown, alone_before: Shown
) -> None:  # fmt: skip
    found, mean = world.rollout(int(layer)), world.patterns[int(layer)].mean(axis=0)
    for at, (one, other) in ((found, (own, before)), (mean, (alone, alone_before))):
        assert one == np.diag(at)[1:].mean()
        assert other == np.diag(at, -1).mean()


@law(f"{STREAM}rolled", r"The rollout through layer (?P<layer>\d+), beside layer \d+ alone\.", rare=True)
def has_one_position(world: Foreign, layer: str) -> None:
    assert world.tokens.shape[1] == 1
    assert int(layer) < world.model.config.num_hidden_layers


# --- its attention changed


def names_the_change(world: Foreign, what: str) -> None:
    heads = [f"{layer}.{head}" for layer, head in world.removed]
    named = " and ".join([", ".join(heads[:-1]), heads[-1]] if len(heads) > 1 else heads)
    named = f"{len(heads)} heads" if len(heads) > 3 else f"head{'s' * (len(heads) > 1)} {named}"
    parts = [*([f"without {named}"] * bool(heads)), *(["under the causal mask"] * world.causal)]
    said = " and ".join(parts)
    assert what == said[0].upper() + said[1:]


@law(
    f"{ABLATION}headline",
    r"(?P<what>.+), (?P<others>\d+) of its (?P<all>\d+) (?P<word>word|answer)s change\.",
    rare=True,
)
def says_others(world: Foreign, what: str, word: str, others: str, all: str) -> None:
    names_the_change(world, what)
    before, after = world.answers
    assert world.says_logits
    assert (int(others), int(all)) == (int((before.argmax(-1) != after.argmax(-1)).sum()), len(before))
    assert (word == "word") == (len(before) == world.tokens.shape[1])


@law(
    f"{ABLATION}headline", r"(?P<what>.+), its (?P<word>word|answer) (?P<which>changes|stays the same)\.",
    rare=True,
)  # fmt: skip
def gives_one(world: Foreign, what: str, which: str, word: str) -> None:
    names_the_change(world, what)
    before, after = world.answers
    assert (len(before), word == "word") == (1, world.tokens.shape[1] == 1)
    assert (which == "changes") == bool(before.argmax() != after.argmax())


@law(
    f"{ABLATION}headline",
    rf"(?P<what>.+), its (?:vectors change by (?P<mean>{AMOUNT}) of their|vector changes by (?P<one>{AMOUNT}) of its) "
    r"length\.",
    rare=True,
)
def vectors_change(world: Foreign, what: str, mean: str | None, one: str | None) -> None:
    names_the_change(world, what)
    assert not world.says_logits
    assert (one is not None) == (len(world.answers[0]) == 1)
    as_shown(mean or one or "", float(world.shift(*world.answers).mean()))


@law(
    f"{ABLATION}headline",
    r"(?P<what>.+) the model was asked again\. Its output is neither logits nor vectors, so it is not compared\.",
    rare=True,
)
@law(f"{ABLATION}amount_sentence", None, rare=True)
def is_not_compared(world: None, what: str = "") -> None:
    assert world is None


@law(
    f"{ABLATION}amount_sentence",
    rf"The output changes by (?P<mean>{AMOUNT}) (?P<unit>nats|of its length)(?: on average over (?P<count>\d+) "
    r"positions)?(?:, most at positions? (?P<most>[\d, and]+))?: how far the .+\.",
    rare=True,
)
def changes_by(world: Foreign, mean: str, unit: str, count: str | None, most: str | None) -> None:
    moved = world.shift(*world.answers)
    as_shown(mean, float(moved.mean()))
    assert (unit == "nats", int(count or 1)) == (world.says_logits, len(moved))
    if most is not None:
        named = [int(each) - 1 for each in most.replace(" and ", ", ").split(", ")]
        assert min(moved[named]) >= max(np.delete(moved, named), default=0) * (1 - 1e-4)
        assert max(moved[named]) <= min(moved[named]) + max(0.001, 0.1 * min(moved[named]))


@law(f"{ABLATION}flips_sentence", r"(?P<others>\d+) of (?P<all>\d+) likeliest words? change\.", rare=True)
def words_change(world: Foreign, others: str, all: str) -> None:
    before, after = world.answers
    assert (int(others), int(all)) == (int((before.argmax(-1) != after.argmax(-1)).sum()), len(before))


def costs_of_all(world: Foreign) -> dict[str, float]:
    layers, heads = world.patterns.shape[:2]
    return {f"{layer}.{head}": world.cost(layer, head) for layer in range(layers) for head in range(heads)}


ON_AVERAGE = "(?:nats|of its length) on average over the positions of this input"


@law(
    f"{ABLATION}removal_sentence",
    rf"Removing head (?P<heads>.+) alone changes the model’s own output most, by (?P<most>{AMOUNT}) {ON_AVERAGE}\.",
    rare=True,
)
def changes_most(world: Foreign, heads: str, most: str) -> None:
    costs, named = costs_of_all(world), heads.replace(" or ", ", ").split(", ")
    for each in named:
        as_shown(most, costs[each])
    assert min(costs[each] for each in named) >= max(costs[each] for each in costs.keys() - {*named}) * (1 - 1e-4)


@law(
    f"{ABLATION}removal_sentence",
    rf"Removing any of (?P<named>\d+) of the (?P<all>\d+) heads alone changes the model’s own output most, by "
    rf"(?P<most>{AMOUNT}) {ON_AVERAGE}\.",
    rare=True,
)
def many_change_as_much(world: Foreign, named: str, all: str, most: str) -> None:
    costs = sorted(costs_of_all(world).values(), reverse=True)
    assert len(costs) == int(all)
    for each in costs[: int(named)]:
        as_shown(most, each)


@law(
    f"{ABLATION}removal_sentence",
    rf"Removing the one head changes the model’s own output by (?P<by>{AMOUNT}) {ON_AVERAGE}\.",
    rare=True,
)
def the_one_changes(world: Foreign, by: str) -> None:
    ((_, cost),) = costs_of_all(world).items()
    as_shown(by, cost)


@law(
    f"{ABLATION}removal_sentence",
    r"Removing any one head leaves the model’s own output on this input as it is\.",
    rare=True,
)
def none_changes_anything(world: Foreign) -> None:
    assert max(costs_of_all(world).values()) < 1e-9


# --- brought in


def attention_share(world: Foreign, layer: int, head: int, kind: str) -> float:
    """A head's mean attention to keys of a kind, over the queries that have such a key and another."""
    pattern, tokens = world.patterns[layer, head], world.tokens[0].tolist()
    if kind.startswith("behind"):
        own = [token for token in tokens if token not in world.tokenizer.all_special_ids]
        start = next((at for at, special in enumerate(world.special) if not special), len(tokens))
        read = world.tokens.new_tensor([[*tokens[:start], *own, *own]])
        out = world.model(read, output_attentions=True).attentions[layer][0, head].detach().numpy()
        n = len(own)
        return float(np.mean([out[start + n + i, start + i + 1] for i in range(n)])) if n > 1 else 0.0
    names = [world.tokenizer.decode([token]).strip().removeprefix("##") for token in tokens]
    sees_ahead = "Bert" in type(world.model).__name__
    shares = []
    for query in range(len(tokens)):
        keys = range(len(tokens)) if sees_ahead else range(query + 1)
        counted = [key for key in keys if is_of(kind, query, key, tokens, names, world.special)]
        if counted and len(keys) > 1:
            shares.append(pattern[query, counted].sum())
    return float(np.mean(shares)) if shares else 0.0


def is_of(kind: str, query: int, key: int, tokens: list[int], names: list[str], special: list[bool]) -> bool:
    if "token before" in kind:
        return key == query - 1
    if "own token" in kind:
        return key == query
    if "first token" in kind:
        return key == 0 and query > 1
    if "special" in kind:
        return special[key]
    if "punctuation" in kind:
        return bool(names[key]) and all(unicodedata.category(sign)[0] == "P" for sign in names[key])
    return tokens[key] == tokens[query] and key != query


KINDS = (
    "at the token before",
    "at its own token",
    "at the first token",
    "at special tokens where there are any",
    "at punctuation where there is any",
    "at other places of the same token where there are any",
    "behind an earlier place of the same token",
)


def shares_of(world: Foreign, head: str) -> dict[str, float]:
    layer, index = map(int, head.split("."))
    return {kind: attention_share(world, layer, index, kind) for kind in KINDS}


@law(
    f"{IMPORTED}headline",
    rf"(?:Head|(?P<twice>Of the input read twice, head)) (?P<head>[\d.]+) looks (?P<kind>{'|'.join(KINDS)}): "
    r"(?P<share>[\d.]+) of its attention\.",
    rare=True,
)
def looks_there(world: Foreign, twice: str | None, head: str, kind: str, share: Shown) -> None:
    found = shares_of(world, head)
    assert share == found[kind] >= 0.5
    assert found[kind] >= max(found.values()) - 1e-5
    assert (twice is not None) == (kind == KINDS[-1])


@law(
    f"{IMPORTED}headline",
    r"Head (?P<head>[\d.]+) gives no one thing half of its attention\.",
    rare=True,
)
def no_one_thing(world: Foreign, head: str) -> None:
    assert max(shares_of(world, head).values()) < 0.5


def all_shares(world: Foreign) -> list[dict[str, float]]:
    layers, heads = world.patterns.shape[:2]
    return [shares_of(world, f"{layer}.{head}") for layer in range(layers) for head in range(heads)]


def bits(world: Foreign, layer: int, head: int) -> float:
    """The mean entropy of a head's attention, over the queries that see more than one key."""
    pattern = world.patterns[layer, head].astype(np.float64)
    rows = pattern if "Bert" in type(world.model).__name__ else pattern[1:]
    return float(np.mean([-sum(p * np.log2(p) for p in row if p > 0) for row in rows]))


SCATTER = "app_pages/your_model/imported/table.scatter_sentence"
WHO = r"(?:Heads? [\d., and]+|\d+ heads) (?:has|have) (?:the largest )?"


@law(
    SCATTER,
    rf"(?P<across>{WHO}previous,? [\d.]+(?: each)?)\. (?P<up>{WHO}(?:induction|entropy),? [\d.]+(?: each)?)\.",
    rare=True,
)
def have_the_largest(world: Foreign, across: str, up: str) -> None:
    layers, heads = world.patterns.shape[:2]
    for said in (across, up):
        words, title = said.removesuffix(" each").split(), re.search(r"previous|induction|entropy", said)[0]  # type: ignore[index]
        kind = KINDS[0] if title == "previous" else KINDS[-1]
        found = {
            f"{layer}.{head}": bits(world, layer, head)
            if title == "entropy"
            else attention_share(world, layer, head, kind)
            for layer in range(layers)
            for head in range(heads)
        }
        share = Shown(words[-1])
        level = {head for head, each in found.items() if share == each}
        assert share == max(found.values())
        named = re.findall(r"\d+\.\d+", said.partition(" ha")[0])
        assert {*named} <= level if named else int(words[0]) <= len(level)
        assert ("the largest" in said) == ((len(named) or int(words[0])) < len(found))
        assert said.endswith(" each") == (words[1] == "heads" or len(named) > 1)


@law(
    f"{IMPORTED}table_sentence",
    r"Of (?P<all>\d+) heads?, (?P<parts>.+), with at least half of the attention\.",
    rare=True,
)
def so_many_look(world: Foreign, all: str, parts: str) -> None:
    """Each head counts for that at which it looks most."""
    found = all_shares(world)
    assert len(found) == int(all)
    most = [max(each, key=each.__getitem__) if max(each.values()) >= 0.5 else "at no single thing" for each in found]
    named = {words.split(" ", 1)[1].removeprefix("looks ").removeprefix("look "): int(words.split(" ", 1)[0])
             for words in parts.split(", ")}  # fmt: skip
    assert named == {kind: most.count(kind) for kind in most}


@law(
    f"{IMPORTED}table_sentence",
    r"(?:None of the (?P<all>\d+) heads gives|The one head does not give) half of its attention to one thing on this "
    r"input\.",
    rare=True,
)
def none_looks(world: Foreign, all: str | None) -> None:
    found = all_shares(world)
    assert (len(found), max(max(each.values()) for each in found) < 0.5) == (int(all or 1), True)

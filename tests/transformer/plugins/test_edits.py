"""Edits against what they are by hand, their texts, and what they cost, counted anew."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.gpu.devices import ON_EVERY_DEVICE, present
from tests.kit.numbers.rounding import near
from tests.kit.pages import laid_out, network
from transformer import compiled_reverser, observe
from transformer.analysis.batches import questions
from transformer.analysis.interventions.effects import one_token_changed, redundancy
from transformer.analysis.interventions.patching import patching
from transformer.compiled import compiled_config
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.edits import EDITS, Edit, EditError, Occasion, Patch, PatchHead, kinds, parse_edit, resolve
from transformer.edits.heads.mean import MeanAblateHead
from transformer.edits.heads.only import KeepOnlyHead
from transformer.edits.heads.patch_step import PatchStep
from transformer.edits.heads.shuffled import ResampleHead
from transformer.edits.heads.zero import AblateHead
from transformer.edits.patterns.diagonal import DiagonalPattern
from transformer.edits.patterns.expected import ExpectPattern
from transformer.edits.patterns.painted import ForcePattern
from transformer.edits.patterns.scale import ScaleScores
from transformer.edits.patterns.shift import ShiftScores
from transformer.edits.patterns.uniform import EvenPattern
from transformer.edits.places.swap import SwapPositions
from transformer.edits.places.unplaced import RemovePositions
from transformer.model import Transformer, build

SITE = "decoder.0.self_attention"
ABLATIONS = {"zero": AblateHead, "mean": MeanAblateHead, "shuffled": ResampleHead}
TOKENS = torch.tensor([[3, 1, 4, 1, 10, 1, 4, 1], [9, 2, 6, 5, 10, 5, 6, 2], [0, 0, 7, 8, 10, 8, 7, 0]])


def small(**model):
    config = RunConfig(task=TaskConfig(length=4), model=ModelConfig(d_model=16, **model))
    return build(config).eval()


# --- the contract: every file in the folders is held to it, by the text that it gives as its example

ALL = pytest.mark.parametrize("kind", EDITS.names())
CONFIG = RunConfig(task=TaskConfig(length=3), model=ModelConfig(d_model=16, positions="sinusoidal"))
TASK = CONFIG.build_task()
READ = torch.from_numpy(TASK.encode([np.array(x) for x in ([3, 1, 4], [1, 5, 9], [2, 6, 5])]).tokens)


def example(kind: str) -> Edit:
    return parse_edit(EDITS[kind].example())


def resolved(edit: Edit, model: Transformer) -> Edit:
    """The edit itself, where it is a wish: other inputs are read by this model, another step has other weights."""

    def look(question: np.ndarray, site: str) -> torch.Tensor:
        return observe(model, torch.from_numpy(TASK.encode([question]).tokens))[site]

    other = build(dataclasses.replace(CONFIG, training=TrainingConfig(seed=1))).eval()
    (made,) = resolve((edit,), Occasion(TASK, TASK.length, look=look, at_step=lambda _: other))
    return made


@ALL
def test_it_is_called_what_a_menu_can_show(kind):
    edit = example(kind)
    assert type(edit) is EDITS[kind]
    assert edit.kind == kind
    assert edit.title.isprintable()
    assert not edit.title.endswith(".")
    assert [EDITS[other].title for other in kinds()].count(edit.title) == 1
    assert edit.words.isprintable()
    assert edit.words != repr(edit)


BEYOND_THE_EXAMPLES = (
    f"scale:{SITE}.0:-2",
    "shift:decoder.1.cross_attention.2:-3",
    f"painted:{SITE}.1:4x4x8421",
    "places-shift:-3",
)


@pytest.mark.parametrize("text", [*(EDITS[kind].example() for kind in EDITS.names()), *BEYOND_THE_EXAMPLES])
def test_a_text_is_its_edit(text):
    edit = parse_edit(text)
    assert edit.write() == text
    assert edit.kind == text.partition(":")[0]
    assert edit == parse_edit(text)
    assert hash(edit) == hash(parse_edit(text))
    assert edit.words.isprintable()


@ALL
def test_nonsense_behind_it_is_refused_in_a_sentence(kind):
    for behind in ("", ":x", ":decoder", ":decoder.0.self_attention.1:", ":~", ":1:2:3"):
        text = f"{kind}{behind}"
        if text != EDITS[kind].example():
            with pytest.raises(EditError) as error:
                parse_edit(text)
            assert str(error.value).isprintable()


@ALL
def test_it_changes_what_the_model_says_and_no_tensor_in_place(kind):
    model = build(CONFIG).eval()
    before = observe(model, READ)
    edit = resolved(example(kind), model).begun(lambda network, site: observe(network, READ)[site])
    after = observe(model, READ, (edit,))
    assert after.logits.shape == before.logits.shape
    assert not torch.equal(after.logits, before.logits)
    met = {site: value for site, value in before.sites.items() if edit.meets(site)}
    assert met
    for value in met.values():
        kept = value.clone()
        assert edit.apply(value).shape == value.shape
        assert torch.equal(value, kept)


@ALL
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
@ON_EVERY_DEVICE
def test_it_is_made_where_the_model_is(kind, positions, where):
    config = dataclasses.replace(CONFIG, model=ModelConfig(d_model=16, positions=positions))
    model = build(config).eval()
    edit = resolved(example(kind), model)
    expected = observe(model, READ, (edit,)).logits
    with present(where) as device:
        model.to(device)
        found = observe(model, READ.to(device), (resolved(example(kind), model),)).logits.cpu()
    assert found == near(expected)


@ALL
def test_where_it_meets_nothing_that_is_said(kind):
    model = build(CONFIG).eval()
    elsewhere = dataclasses.replace(resolved(example(kind), model), site="decoder.7.nothing")
    with pytest.raises(EditError, match="met no site"):
        observe(model, READ, (elsewhere,))


def test_numbers_are_offered_within_their_limits():
    """A menu draws them from what their field says."""
    for kind in kinds():
        for field in dataclasses.fields(EDITS[kind]):
            if offer := field.metadata:
                assert offer["label"]
                assert offer["min_value"] <= offer["value"] <= offer["max_value"]
                assert type(offer["value"]) is type(offer["min_value"]) is type(offer["max_value"])


# --- heads


@pytest.mark.parametrize("mode", ["zero", "mean"])
def test_a_removed_head_says_what_it_should(mode):
    model = small()
    plain = observe(model, TOKENS)[f"{SITE}.z"].numpy()
    seen = observe(model, TOKENS, (ABLATIONS[mode](f"{SITE}.z", 2),))[f"{SITE}.z"].numpy()
    expected = plain.copy()
    expected[:, 2] = 0 if mode == "zero" else (plain[0, 2] + plain[1, 2] + plain[2, 2]) / 3
    np.testing.assert_allclose(seen, expected, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 17, 64])
def test_shuffling_hands_each_output_to_another_sequence_always_the_same(n):
    value = torch.arange(n, dtype=torch.float32)[:, None, None, None].expand(n, 4, 8, 2)
    first, again = (ResampleHead("z", 1).apply(value)[:, 1, 0, 0].tolist() for _ in range(2))
    assert first == again
    assert sorted(first) == list(range(n))
    assert all(own != given for own, given in enumerate(first))
    assert n < 17 or first != [(i - 1) % n for i in range(n)]  # no mere shift by one


def test_a_shuffled_head_hands_on_what_it_found_in_another_sequence_whole():
    model = small()
    plain = observe(model, TOKENS)[f"{SITE}.z"]
    seen = observe(model, TOKENS, (ResampleHead(f"{SITE}.z", 2),))[f"{SITE}.z"]
    owners = [[i for i in range(3) if torch.equal(seen[own, 2], plain[i, 2])] for own in range(3)]
    assert sorted(owners) == [[0], [1], [2]]
    assert all(own not in given for own, given in enumerate(owners))
    assert torch.equal(seen[:, [0, 1, 3]], plain[:, [0, 1, 3]])


def test_keeping_one_head_is_removing_the_others():
    model = small()
    keep, others = KeepOnlyHead(f"{SITE}.z", 1), [AblateHead(f"{SITE}.z", head) for head in (0, 2, 3)]
    kept = observe(model, TOKENS, (keep,)).logits
    for edits in (others, others[::-1], [keep, keep]):
        assert torch.equal(kept, observe(model, TOKENS, edits).logits)


@pytest.mark.parametrize("mode", ["mean", "shuffled"])
def test_one_sequence_has_no_other_to_take_from(mode):
    with pytest.raises(EditError, match="needs several sequences"):
        observe(small(), TOKENS[:1], (ABLATIONS[mode](f"{SITE}.z", 0),))


# --- patterns


@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "none"])
def test_looking_evenly_gives_the_mean_of_the_values(positions):
    seen = observe(small(positions=positions), TOKENS, (EvenPattern(f"{SITE}.scores", 1),))
    value, z = seen[f"{SITE}.value"][:, 1].numpy(), seen[f"{SITE}.z"][:, 1].numpy()
    for query in range(8):
        np.testing.assert_allclose(z[:, query], value[:, : query + 1].mean(axis=1), atol=1e-6)


def test_looking_at_itself_hands_on_its_own_value():
    seen = observe(small(), TOKENS, (DiagonalPattern(f"{SITE}.scores", 1),))
    assert seen[f"{SITE}.z"][:, 1] == near(seen[f"{SITE}.value"][:, 1])


def test_a_painted_pattern_is_shared_among_the_keys_that_may_be_seen():
    painted = np.zeros((8, 8), dtype=bool)
    painted[4, [1, 3, 6]] = painted[2, 7] = True  # the causal mask forbids key 6 to query 4, and key 7 to query 2
    model = small()
    plain = observe(model, TOKENS)[f"{SITE}.pattern"][:, 1].numpy()
    edit = parse_edit(ForcePattern.of(painted, f"{SITE}.scores", 1).write())
    seen = observe(model, TOKENS, (edit,))[f"{SITE}.pattern"][:, 1].numpy()
    expected = plain.copy()
    expected[:, 4] = [0, 0.5, 0, 0.5, 0, 0, 0, 0]
    expected[:, 2] = 0
    np.testing.assert_allclose(seen, expected, atol=1e-7)


def test_the_hand_written_reverser_already_looks_where_it_is_expected_to():
    model, task = compiled_reverser(), compiled_config().build_task()
    tokens = torch.from_numpy(task.encode([task.example]).tokens)
    edit = ExpectPattern(f"{SITE}.scores", 0).resolved(Occasion(task, 8))
    assert torch.equal(observe(model, tokens, (edit,)).logits, observe(model, tokens).logits)
    sort = RunConfig(task=TaskConfig(task="sort", length=4)).build_task()
    with pytest.raises(EditError, match="differs from question to question"):
        ExpectPattern(f"{SITE}.scores", 0).resolved(Occasion(sort, 4))


def test_scores_are_scaled_and_moved_before_the_mask():
    model = small()
    scores = observe(model, TOKENS)[f"{SITE}.scores"][:, 1].double().numpy()
    scaled = observe(model, TOKENS, (ScaleScores(f"{SITE}.scores", 1, -2.0),))[f"{SITE}.pattern"][:, 1].numpy()
    moved = observe(model, TOKENS, (ShiftScores(f"{SITE}.scores", 1, 2),))[f"{SITE}.pattern"][:, 1].numpy()
    for query in range(8):
        powers = np.exp(-2 * scores[:, query, : query + 1])
        np.testing.assert_allclose(scaled[:, query, : query + 1], powers / powers.sum(1, keepdims=True), atol=1e-5)
        powers = np.exp(scores[:, query, : max(0, query - 1)])
        share = powers / powers.sum(1, keepdims=True) if query > 1 else powers
        np.testing.assert_allclose(moved[:, query, 2 : query + 1], share, atol=1e-5)
        assert (moved[:, query, :2] == 0).all()


# --- positions


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "alibi", "rotary"])
def test_without_positions_order_is_told_by_the_mask_alone(positions):
    """Under no mask, a model that is told no positions gives permuted answers to permuted tokens."""
    config = RunConfig(
        task=TaskConfig(task="reverse-aligned", length=8), model=ModelConfig(d_model=16, positions=positions)
    )
    model, order = build(config).eval(), torch.tensor([3, 1, 0, 2, 7, 6, 5, 4])
    plain = observe(model, TOKENS, (RemovePositions(),)).logits
    turned = observe(model, TOKENS[:, order], (RemovePositions(),)).logits
    torch.testing.assert_close(turned, plain[:, order], atol=1e-5, rtol=1e-5)
    swapped = torch.arange(8)
    swapped[[2, 5]] = swapped[[5, 2]]
    told = observe(model, TOKENS[:, swapped], (SwapPositions(first=2, second=5),)).logits
    torch.testing.assert_close(told, observe(model, TOKENS).logits[:, swapped], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("edit", [RemovePositions(), SwapPositions()])
def test_where_no_positions_are_told_that_is_said(edit):
    with pytest.raises(EditError, match="met no site"):
        observe(small(positions="none"), TOKENS, (edit,))


# --- nothing


def test_an_edit_that_changes_nothing_is_an_error():
    for make in (
        lambda: ScaleScores(f"{SITE}.scores", 0, 1.0),
        lambda: ShiftScores(f"{SITE}.scores", 0, 0),
        lambda: SwapPositions(first=1, second=1),
    ):
        with pytest.raises(EditError, match="choose"):
            make()
    even = EvenPattern(f"{SITE}.scores", 0)
    with pytest.raises(EditError, match="changed no number"):
        observe(small(), TOKENS, (even, ScaleScores(f"{SITE}.scores", 0, 2.0)))


# --- patches


def test_patching_every_place_of_the_stream_is_the_other_run():
    model = small()
    clean = observe(model, TOKENS[:1])
    patch = Patch.of("decoder.1.resid_pre", clean["decoder.1.resid_pre"])
    torch.testing.assert_close(observe(model, TOKENS[1:2], (patch,)).logits, clean.logits)
    one = Patch.of(f"{SITE}.z", clean[f"{SITE}.z"], head=2, position=5)
    seen, plain = observe(model, TOKENS[1:2], (one,))[f"{SITE}.z"], observe(model, TOKENS[1:2])[f"{SITE}.z"].clone()
    plain[:, 2, 5] = clean[f"{SITE}.z"][:, 2, 5]
    assert torch.equal(seen, plain)
    assert one == Patch.of(f"{SITE}.z", clean[f"{SITE}.z"].clone(), head=2, position=5)


def read(config, questions):
    tokens, source, targets = laid_out(config, np.array(questions))
    return {"tokens": tokens, "source": source}, targets


@pytest.mark.parametrize(
    ("run", "site", "step"),
    [
        ("reverse", "decoder.0.self_attention", 20),
        ("reverse-aligned", "encoder.0.self_attention", 0),
        ("reverse-translate", "decoder.0.cross_attention", 0),
    ],
)
def test_a_head_is_patched_from_another_step_sequence_by_sequence(run, site, step):
    """What the other weights find in the same tokens, put in by hand through a patch for each sequence alone."""
    (model, config), (before, _) = network(run), network(run, step)
    x = np.random.default_rng(0).integers(0, 10, (5, 8))
    together, _ = read(config, x)
    edit = PatchStep(f"{site}.z", 2, step).resolved(Occasion(config.build_task(), 8, at_step=lambda _: before))
    seen = observe(model, together["tokens"], (edit,), source=together["source"])
    for i in range(5):
        alone, _ = read(config, x[i : i + 1])
        donor = observe(before, alone["tokens"], source=alone["source"])[f"{site}.z"]
        by_hand = Patch.of(f"{site}.z", donor, head=2)
        expected = observe(model, alone["tokens"], (by_hand,), source=alone["source"]).logits
        torch.testing.assert_close(seen.logits[i : i + 1], expected, atol=1e-4, rtol=1e-4)


def test_a_patch_from_the_same_weights_or_another_shape_is_an_error():
    model = small()
    with pytest.raises(EditError, match="changed no number"):
        observe(model, TOKENS, (PatchHead(f"{SITE}.z", 0, small()),))
    with pytest.raises(EditError, match="no such head"):
        observe(model, TOKENS, (PatchHead(f"{SITE}.z", 0, small(n_heads=2)),))
    with pytest.raises(EditError, match="must be resolved first"):
        observe(model, TOKENS, (PatchStep(f"{SITE}.z", 0, 7),))
    with pytest.raises(EditError, match="nothing is painted"):
        observe(model, TOKENS, (ForcePattern.of(np.zeros((8, 8), dtype=bool), f"{SITE}.scores", 0),))


@pytest.mark.parametrize("run", ["reverse", "reverse-aligned", "reverse-translate"])
def test_a_patching_map_is_one_run_a_cell(run):
    model, config = network(run)
    task = config.build_task()
    clean = task.example
    seen = patching(model, task, clean, one_token_changed(model, task, clean))
    other = clean.copy()
    other[0] = (other[0] + 1) % 10
    (a, a_source, right), (b, b_source, wrong) = laid_out(config, clean[None]), laid_out(config, other[None])
    base = observe(model, a, source=a_source)

    def measure(logits):
        place = right.shape[1] - 1  # the first symbol is said last
        return float(logits[0, place, right[0, place]] - logits[0, place, wrong[0, place]])

    assert seen.compared == 1
    high, low = measure(base.logits), measure(observe(model, b, source=b_source).logits)
    assert (seen.clean, seen.corrupted) == (pytest.approx(high, abs=1e-4), pytest.approx(low, abs=1e-4))
    for row, place in ((0, 0), (1, 7), (3, 2), (len(seen.sites) - 1, right.shape[1] - 1)):
        edit = Patch.of(seen.sites[row], base[seen.sites[row]], position=place)
        expected = (measure(observe(model, b, (edit,), source=b_source).logits) - low) / (high - low)
        assert seen.recovered[row, place] == pytest.approx(expected, abs=1e-4)
    assert seen.recovered[0, 0] == pytest.approx(1, abs=0.02) or run == "reverse-translate"
    with pytest.raises(EditError, match="nothing to bring back"):
        patching(model, task, clean, clean)


def test_redundancy_is_what_two_cost_beyond_each():
    model, config = network("reverse")
    task = config.build_task()
    found = redundancy(model, task, sequences=32)
    batch, _ = questions(task, 32, 8, 0)

    def drop(*heads):
        edits = tuple(AblateHead(f"decoder.{h // 4}.self_attention.z", h % 4) for h in heads)
        said = observe(model, torch.from_numpy(batch.tokens), edits).logits.argmax(-1).numpy()
        return 1 - (said == batch.targets)[:, 8:].mean()

    whole = drop()
    for one, other in ((0, 2), (3, 2), (5, 6)):
        expected = drop(one, other) - drop(one) - drop(other) + whole
        assert found[one, other] == found[other, one] == pytest.approx(expected, abs=1e-9)
    assert found[2, 2] == pytest.approx(drop(2) - whole, abs=1e-9)
    assert found[0, 2] > 0.3  # each of the two makes up for the other


# --- texts


def test_a_pattern_painted_on_many_tokens_is_a_short_text():
    chosen = np.eye(300, dtype=bool)
    chosen[90:96, 12:30] = True
    edit = ForcePattern.of(chosen, f"{SITE}.scores", 1)
    text = edit.write()
    assert re.fullmatch(rf"painted:{re.escape(SITE)}\.1:300x300z[\w-]{{10,400}}", text)
    assert parse_edit(text) == edit
    np.testing.assert_array_equal(parse_edit(text).chosen, chosen)
    wide = ForcePattern.of(chosen[:, :40], f"{SITE}.scores", 1)
    assert parse_edit(wide.write()) == wide
    with pytest.raises(EditError, match="the cells of this painted pattern of 300 × 299 cannot be read"):
        parse_edit(text.replace("300x300", "300x299"))


@given(st.text() | st.from_regex(rf"({'|'.join(kinds())}):[a-z0-9.:x,_-]*", fullmatch=True))
def test_a_hostile_text_is_refused_in_a_sentence(text):
    try:
        edit = parse_edit(text)
    except EditError as error:
        sentence = str(error)
    else:
        sentence = edit.write()
        assert parse_edit(sentence) == edit
    assert "\n" not in sentence
    assert "<" not in sentence

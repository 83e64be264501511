"""What heads do: mean patterns, the worker, and one question seen whole."""

import math

import numpy as np
import pytest
import torch

from transformer import checkpoints
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.batches import working_attention
from transformer.analysis.heads.survey import Head, survey
from transformer.analysis.sample import sample, say
from transformer.compiled import compiled_config, compiled_reverser
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.edits import OverrideMask
from transformer.edits.heads.zero import AblateHead
from transformer.model import build
from transformer.observation import observe
from transformer.training.runs import DEFAULT_ROOT, Run

SELF, CROSS = "decoder.0.self_attention", "decoder.0.cross_attention"
QUESTION = np.array([3, 1, 4, 1])


def blind(task: str = "reverse", length: int = 4, **model):
    """A model whose queries are zero: every score is zero, so each query looks at all it may see alike."""
    config = RunConfig(task=TaskConfig(task=task, length=length), model=ModelConfig(**model))
    network = build(config).eval()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if ".query." in name:
                weight.zero_()
    return network, config.build_task()


# --- the survey


@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_the_compiled_head_puts_all_of_its_attention_where_the_answer_stands(length):
    found = survey(compiled_reverser(length), compiled_config(length).build_task(), sequences=20)
    assert found.expected_share == {Head(SELF, 0): 1.0}
    assert found.foremost == Head(SELF, 0)
    assert np.array_equal(found.patterns[SELF][0, length:, :length], np.eye(length)[::-1])
    assert found.sequences == 20


def test_looking_everywhere_alike_has_a_share_that_is_known():
    """Under the causal mask the query of y_i, at place n + i, sees n + i keys, and one of them holds its answer."""
    model, task = blind(length=4)
    found = survey(model, task, sequences=8)
    expected = np.mean([1 / (4 + i) for i in range(1, 5)])
    assert len(found.expected_share) == 8
    assert list(found.expected_share.values()) == [pytest.approx(expected, abs=1e-6)] * 8
    for pattern in found.patterns.values():
        causal = np.tril(np.ones((8, 8)))
        assert np.allclose(pattern, causal / causal.sum(axis=1, keepdims=True), atol=1e-6)


def test_the_share_counts_only_those_who_may_see_their_answer():
    """Aligned and causal: y1 and y2 of four cannot; y3 sees it among three keys, y4 among four."""
    model, task = blind("reverse-aligned", architecture="decoder")
    found = survey(model, task, sequences=8)
    assert list(found.expected_share.values()) == [pytest.approx((1 / 3 + 1 / 4) / 2, abs=1e-6)] * 8


def test_where_nobody_may_see_the_answer_there_is_no_share():
    """A window of nothing but oneself: in an even sequence nobody stands where their answer does."""
    model, task = blind("reverse-aligned", mask="sliding-window:0")
    assert all(math.isnan(share) for share in survey(model, task, sequences=4).expected_share.values())


def test_an_encoder_decoder_works_by_looking_across():
    """Each of four source tokens gets a quarter; what the decoder and the encoder see of themselves is no work."""
    model, task = blind("reverse-translate")
    found = survey(model, task, sequences=8)
    assert set(found.expected_share) == {Head(f"decoder.{n}.cross_attention", h) for n in (0, 1) for h in range(4)}
    assert list(found.expected_share.values()) == [pytest.approx(0.25, abs=1e-6)] * 8
    assert list(found.patterns) == [
        "encoder.0.self_attention",
        "encoder.1.self_attention",
        "decoder.0.self_attention",
        "decoder.0.cross_attention",
        "decoder.1.self_attention",
        "decoder.1.cross_attention",
    ]
    assert [site for site in found.patterns if working_attention(task, site)] == [
        "decoder.0.cross_attention",
        "decoder.1.cross_attention",
    ]


def test_a_symbol_that_stands_there_twice_counts_twice_when_sorting():
    """Sorting may read its symbol at any place that holds it; here one symbol fills them all, or another does."""
    config = RunConfig(task=TaskConfig(task="sort", length=2, symbols=2))
    model, task = build(config).eval(), config.build_task()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".query." in name:
                weight.zero_()
    rng = np.random.default_rng([0, 2])
    questions = rng.integers(0, 2, (50, 2))
    shares = [1 / (2 + i) * (2 if x == y else 1) for x, y in questions for i in (1, 2)]
    found = survey(model, task, sequences=50)
    assert list(found.expected_share.values()) == [pytest.approx(np.mean(shares), abs=1e-6)] * 8


def test_the_survey_is_a_mean_over_single_passes():
    config = RunConfig(task=TaskConfig(length=3), model=ModelConfig(n_layers=1, n_heads=2, d_model=8))
    model, task = build(config).eval(), config.build_task()
    found = survey(model, task, sequences=6, seed=4)
    patterns, shares = np.zeros((2, 6, 6)), np.zeros(2)
    for question in np.random.default_rng([4, 2]).integers(0, 10, (6, 3)):
        seen = observe(model, torch.from_numpy(task.encode([question]).tokens))
        pattern = seen[f"{SELF}.pattern"][0].numpy()
        patterns += pattern / 6
        for query, key in ((3, 2), (4, 1), (5, 0)):
            shares += pattern[:, query, key] / 18
    assert np.allclose(found.patterns[SELF], patterns, atol=1e-6)
    assert list(found.expected_share.values()) == pytest.approx(shares.tolist(), abs=1e-6)


def test_a_survey_has_its_own_sequences_and_the_seed_decides_them():
    config = RunConfig(task=TaskConfig(length=3))
    model, task = build(config).eval(), config.build_task()
    first, again, other = (survey(model, task, sequences=5, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.patterns[SELF], again.patterns[SELF])
    assert not np.array_equal(first.patterns[SELF], other.patterns[SELF])
    shorter = survey(model, task, sequences=5, length=2)
    assert shorter.patterns[SELF].shape == (4, 4, 4)


# --- the worker


def test_the_worker_of_the_shipped_reverser_is_the_head_that_is_missed_most():
    """Its share is nearly all there is; others help, but silencing none of them costs as many answers."""
    model, config = checkpoints.load(Run(DEFAULT_ROOT / "reverse").snapshot())
    task = config.build_task()
    found = survey(model, task)
    assert found.expected_share[found.foremost] == max(found.expected_share.values())
    assert found.expected_share[found.foremost] > 0.95

    def without(head):
        edits = (AblateHead(f"{head.site}.z", head.index),)
        return accuracy_by_position(model, task, sequences=300, edits=edits).of("second half")

    left = {head: without(head) for head in found.expected_share}
    assert min(left, key=left.__getitem__) == found.foremost
    assert left[found.foremost] < 0.99


def test_a_head_has_a_name_a_short_one_and_a_kind():
    head = Head("decoder.1.cross_attention", 3)
    assert (str(head), head.short, head.kind) == ("decoder.1.cross_attention.3", "1.3", "cross-attention")
    assert Head("decoder.0.self_attention", 2).kind == "decoder self-attention"
    assert Head("encoder.12.self_attention", 0).kind == "encoder self-attention"
    assert Head("encoder.12.self_attention", 10).short == "12.10"


# --- one question


def test_a_sample_of_the_compiled_reverser():
    seen = sample(compiled_reverser(4), compiled_config(4).build_task(), QUESTION)
    assert seen.question == ("3", "1", "4", "1")
    assert seen.read == ("3", "1", "4", "1", "SEP", "1", "4", "1")
    assert seen.predicted[3:] == ("SEP", "1", "4", "1", "3")
    assert seen.targets == ("1", "4", "1", "SEP", "1", "4", "1", "3")
    assert seen.is_answer.tolist() == [False] * 4 + [True] * 4
    assert seen.right[3:].all()
    assert np.array_equal(seen.right, [said == true for said, true in zip(seen.predicted, seen.targets, strict=True)])
    assert seen.answers_right() == (4, 4)
    attention = seen.attentions[SELF]
    assert list(seen.attentions) == [SELF]
    assert attention.site == SELF
    assert attention.queries == attention.keys == seen.read
    assert np.array_equal(attention.pattern[0, 4:], np.eye(8)[[3, 2, 1, 0]])
    assert np.array_equal(attention.mask, np.tril(np.ones((8, 8), dtype=bool)))


def test_a_sample_is_what_is_observed():
    config = RunConfig(task=TaskConfig(length=4))
    model, task = build(config).eval(), config.build_task()
    seen = sample(model, task, QUESTION)
    pass_ = observe(model, torch.from_numpy(task.encode([QUESTION]).tokens))
    assert list(seen.attentions) == list(pass_.attentions())
    for site, attention in seen.attentions.items():
        assert np.array_equal(attention.pattern, pass_[f"{site}.pattern"][0].numpy())
        assert np.array_equal(attention.scores, pass_[f"{site}.scores"][0].numpy())
    probabilities = pass_.logits[0].softmax(dim=-1)
    assert np.allclose(seen.confidence, probabilities.max(dim=-1).values.numpy())
    assert seen.predicted == tuple(task.vocabulary[token] for token in probabilities.argmax(dim=-1).tolist())


def test_its_own_words_are_read_in_place_of_the_right_ones():
    model, task = compiled_reverser(4), compiled_config(4).build_task()
    assert say(model, task, QUESTION).tolist() == [1, 4, 1, 3]
    wrong = sample(model, task, QUESTION, said=np.array([7, 8, 9, 0]))
    assert wrong.read == ("3", "1", "4", "1", "SEP", "7", "8", "9")
    assert wrong.targets == ("1", "4", "1", "SEP", "1", "4", "1", "3")
    assert wrong.attentions[SELF].keys == wrong.read


@pytest.mark.parametrize("task", ["reverse", "reverse-translate"])
def test_what_it_says_is_what_it_predicts_when_it_reads_what_it_said(task):
    """An untrained model says anything, and its own words make it say them again: the two ways agree."""
    config = RunConfig(task=TaskConfig(task=task, length=4))
    model, law = build(config).eval(), config.build_task()
    said = say(model, law, QUESTION)
    seen = sample(model, law, QUESTION, said=said)
    assert seen.predicted[-4:] == tuple(law.vocabulary[token] for token in said)


def test_where_all_is_read_at_once_there_are_no_words_of_its_own():
    config = RunConfig(task=TaskConfig(task="reverse-aligned", length=4))
    model, law = build(config).eval(), config.build_task()
    said = say(model, law, QUESTION)
    seen = sample(model, law, QUESTION, said=said)
    assert seen.read == ("3", "1", "4", "1")
    assert seen.predicted == tuple(law.vocabulary[token] for token in said)


def test_a_question_of_one_symbol():
    for task in ("reverse", "reverse-aligned", "reverse-translate"):
        config = RunConfig(task=TaskConfig(task=task, length=4))
        model, law = build(config).eval(), config.build_task()
        said = say(model, law, np.array([5]))
        assert said.shape == (1,)
        seen = sample(model, law, np.array([5]), said=said)
        assert seen.predicted[-1] == law.vocabulary[said[0]]
        assert seen.targets[-1] == "5"
        assert seen.answers_right()[1] == 1


def test_padding_is_read_and_not_seen():
    config = RunConfig(task=TaskConfig(length=6, min_length=2))
    model, task = build(config).eval(), config.build_task()
    plain, padded = sample(model, task, QUESTION), sample(model, task, QUESTION, pad_to=6)
    assert plain.read == ("3", "1", "4", "1", "SEP", "1", "4", "1")
    assert padded.read == (*plain.read, *["PAD"] * 4)
    for site, attention in padded.attentions.items():
        assert not attention.mask[:, 8:].any()
        assert (attention.pattern[:, :, 8:] == 0).all()
        assert np.allclose(attention.pattern[:, :8, :8], plain.attentions[site].pattern, atol=1e-5)
    assert padded.predicted[:8] == plain.predicted
    assert padded.targets[:8] == plain.targets
    assert padded.answers_right() == plain.answers_right()


def test_the_two_sides_of_an_encoder_decoder_have_their_own_labels():
    config = RunConfig(task=TaskConfig(task="reverse-translate", length=4))
    model, task = build(config).eval(), config.build_task()
    seen = sample(model, task, QUESTION)
    source, read = ("3", "1", "4", "1"), ("SEP", "1", "4", "1")
    assert seen.read == read
    assert seen.targets == ("1", "4", "1", "3")
    labels = {site: (attention.queries, attention.keys) for site, attention in seen.attentions.items()}
    for layer in (0, 1):
        assert labels[f"encoder.{layer}.self_attention"] == (source, source)
        assert labels[f"decoder.{layer}.self_attention"] == (read, read)
        assert labels[f"decoder.{layer}.cross_attention"] == (read, source)
    assert seen.attentions["encoder.0.self_attention"].mask.all()
    assert seen.attentions[CROSS].mask.all()
    assert np.array_equal(seen.attentions[SELF].mask, np.tril(np.ones((4, 4), dtype=bool)))


def test_padding_on_both_sides_of_an_encoder_decoder():
    config = RunConfig(task=TaskConfig(task="reverse-translate", length=6, min_length=2))
    model, task = build(config).eval(), config.build_task()
    plain, padded = sample(model, task, QUESTION), sample(model, task, QUESTION, pad_to=6)
    assert padded.read == (*plain.read, "PAD", "PAD")
    cross = padded.attentions[CROSS]
    assert cross.keys == ("3", "1", "4", "1", "PAD", "PAD")
    assert (cross.pattern[:, :, 4:] == 0).all()
    assert not cross.mask[:, 4:].any()
    assert padded.predicted[:4] == plain.predicted


def test_edits_are_seen():
    model, task = compiled_reverser(4), compiled_config(4).build_task()
    silenced = sample(model, task, QUESTION, edits=(AblateHead(f"{SELF}.z", 0),))
    assert silenced.answers_right()[0] < 4
    nothing = np.zeros((8, 8), dtype=bool)
    masked = sample(model, task, QUESTION, edits=(OverrideMask.of(nothing),))
    assert not masked.attentions[SELF].mask.any()
    assert (masked.attentions[SELF].pattern == 0).all()


def test_what_a_sample_shows_is_its_callers_own():
    """Painting into one picture must not change another, nor the model."""
    model, task = compiled_reverser(4), compiled_config(4).build_task()
    first = sample(model, task, QUESTION)
    for array in (first.attentions[SELF].pattern, first.attentions[SELF].scores, first.attentions[SELF].mask):
        array[...] = 0
    again = sample(model, task, QUESTION)
    assert np.array_equal(again.attentions[SELF].pattern[0, 4:], np.eye(8)[[3, 2, 1, 0]])
    assert again.attentions[SELF].mask.any()

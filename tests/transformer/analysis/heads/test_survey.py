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


@torch.no_grad()
def blind(task: str = "reverse", length: int = 4, symbols: int = 10, **model):
    """A model whose queries are zero: every score is zero, so each query looks at all it may see alike."""
    config = RunConfig(task=TaskConfig(task=task, length=length, symbols=symbols), model=ModelConfig(**model))
    network = build(config).eval()
    for name, weight in network.named_parameters():
        if ".query." in name:
            weight.zero_()
    return network, config.build_task()


def untrained(task: str = "reverse", **shape):
    config = RunConfig(task=TaskConfig(task=task, **{"length": 4, **shape}))
    return build(config).eval(), config.build_task()


# --- the survey
@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_the_compiled_head_puts_all_of_its_attention_where_the_answer_stands(length):
    found = survey(compiled_reverser(length), compiled_config(length).build_task(), sequences=20)
    assert found.expected_share == {Head(SELF, 0): 1.0}
    assert found.foremost == Head(SELF, 0)
    assert np.array_equal(found.patterns[SELF][0, length:, :length], np.eye(length)[::-1])
    assert found.sequences == 20


DRAWN = np.random.default_rng([0, 2]).integers(0, 2, (50, 2))


@pytest.mark.parametrize(
    ("shape", "share"),
    [
        # Under the causal mask the query of y_i, at place n + i, sees n + i keys, and one of them holds its answer.
        ({}, np.mean([1 / (4 + i) for i in range(1, 5)])),
        # Aligned and causal: y1 and y2 of four cannot see it and do not count; y3 sees it among three keys, y4 of four.
        ({"task": "reverse-aligned", "architecture": "decoder"}, (1 / 3 + 1 / 4) / 2),
        # A window of nothing but oneself: in an even sequence nobody stands where their answer does.
        ({"task": "reverse-aligned", "mask": "sliding-window:0"}, math.nan),
        ({"task": "reverse-translate"}, 1 / 4),
        # Sorting may read its symbol at any place that holds it: one symbol fills both, or another does.
        (
            {"task": "sort", "length": 2, "symbols": 2},
            np.mean([1 / (2 + i) * (2 if x == y else 1) for x, y in DRAWN for i in (1, 2)]),
        ),
    ],
)
def test_looking_everywhere_alike_has_a_share_that_is_known(shape, share):
    found = survey(*blind(**shape), sequences=50)
    assert list(found.expected_share.values()) == pytest.approx([share] * 8, abs=1e-6, nan_ok=True)


def test_an_encoder_decoder_works_by_looking_across():
    """What the decoder and the encoder see of themselves is no work."""
    model, task = blind("reverse-translate")
    found = survey(model, task, sequences=8)
    across = [f"decoder.{layer}.cross_attention" for layer in (0, 1)]
    assert set(found.expected_share) == {Head(site, head) for site in across for head in range(4)}
    encoder = [f"encoder.{layer}.self_attention" for layer in (0, 1)]
    assert list(found.patterns) == [*encoder, SELF, CROSS, "decoder.1.self_attention", across[1]]
    assert [site for site in found.patterns if working_attention(task, site)] == across


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
    model, task = untrained(length=3)
    first, again, other = (survey(model, task, sequences=5, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.patterns[SELF], again.patterns[SELF])
    assert not np.array_equal(first.patterns[SELF], other.patterns[SELF])
    assert survey(model, task, sequences=5, length=2).patterns[SELF].shape == (4, 4, 4)


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
    for head, name, short, kind in (
        (Head("decoder.1.cross_attention", 3), "decoder.1.cross_attention.3", "1.3", "cross-attention"),
        (Head("decoder.0.self_attention", 2), "decoder.0.self_attention.2", "0.2", "decoder self-attention"),
        (Head("encoder.12.self_attention", 10), "encoder.12.self_attention.10", "12.10", "encoder self-attention"),
    ):
        assert (str(head), head.short, head.kind) == (name, short, kind)
        assert Head.parse(name) == head


# --- one question
def test_a_sample_of_the_compiled_reverser():
    seen = sample(compiled_reverser(4), compiled_config(4).build_task(), QUESTION)
    assert seen.question == tuple("3141")
    assert seen.read == (*"3141", "SEP", *"141")
    assert seen.predicted[3:] == ("SEP", *"1413")
    assert seen.targets == (*"141", "SEP", *"1413")
    assert seen.is_answer.tolist() == [False] * 4 + [True] * 4
    assert seen.right[3:].all()
    assert np.array_equal(seen.right, [said == true for said, true in zip(seen.predicted, seen.targets, strict=True)])
    assert seen.answers_right() == (4, 4)
    ((site, attention),) = seen.attentions.items()
    assert site == attention.site == SELF
    assert attention.queries == attention.keys == seen.read
    assert np.array_equal(attention.pattern[0, 4:], np.eye(8)[[3, 2, 1, 0]])
    assert np.array_equal(attention.mask, np.tril(np.ones((8, 8), dtype=bool)))


def test_a_sample_is_what_is_observed():
    model, task = untrained()
    seen, pass_ = sample(model, task, QUESTION), observe(model, torch.from_numpy(task.encode([QUESTION]).tokens))
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
    assert wrong.read == wrong.attentions[SELF].keys == (*"3141", "SEP", *"789")
    assert wrong.targets == (*"141", "SEP", *"1413")


@pytest.mark.parametrize("question", [QUESTION, np.array([5])], ids=["four symbols", "one"])
@pytest.mark.parametrize("task", ["reverse", "reverse-translate", "reverse-aligned"])
def test_what_it_says_is_what_it_predicts_when_it_reads_what_it_said(task, question):
    """An untrained model says anything, and its own words make it say them again: the two ways agree."""
    model, law = untrained(task)
    said = say(model, law, question)
    seen = sample(model, law, question, said=said)
    assert seen.predicted[-len(question) :] == tuple(law.vocabulary[token] for token in said)
    assert seen.targets[-len(question) :] == tuple(map(str, question[::-1]))
    assert seen.answers_right()[1] == len(said) == len(question)
    if task == "reverse-aligned":  # all is read at once: there are no words of its own
        assert seen.read == tuple(map(str, question))


@pytest.mark.parametrize(
    ("task", "read"), [("reverse", (*"3141", "SEP", *"141")), ("reverse-translate", ("SEP", *"141"))]
)
def test_padding_is_read_and_not_seen(task, read):
    model, law = untrained(task, length=6, min_length=2)
    plain, padded = sample(model, law, QUESTION), sample(model, law, QUESTION, pad_to=6)
    n = len(read)
    assert plain.read == read
    assert padded.read == (*read, *["PAD"] * (4 if task == "reverse" else 2))
    assert (padded.predicted[:n], padded.targets[:n]) == (plain.predicted, plain.targets)
    assert padded.answers_right() == plain.answers_right()
    for site, attention in padded.attentions.items():
        expected = plain.attentions[site]
        queries, keys = len(expected.queries), len(expected.keys)
        assert attention.keys == (*expected.keys, *["PAD"] * (attention.pattern.shape[2] - keys))
        assert not attention.mask[:, keys:].any()
        assert (attention.pattern[:, :, keys:] == 0).all()
        assert np.allclose(attention.pattern[:, :queries, :keys], expected.pattern, atol=1e-5)


def test_the_two_sides_of_an_encoder_decoder_have_their_own_labels():
    seen = sample(*untrained("reverse-translate"), QUESTION)
    source, read = tuple("3141"), ("SEP", *"141")
    assert (seen.read, seen.targets) == (read, tuple("1413"))
    labels = {site: (attention.queries, attention.keys) for site, attention in seen.attentions.items()}
    for layer in (0, 1):
        assert labels[f"encoder.{layer}.self_attention"] == (source, source)
        assert labels[f"decoder.{layer}.self_attention"] == (read, read)
        assert labels[f"decoder.{layer}.cross_attention"] == (read, source)
    assert seen.attentions["encoder.0.self_attention"].mask.all()
    assert seen.attentions[CROSS].mask.all()
    assert np.array_equal(seen.attentions[SELF].mask, np.tril(np.ones((4, 4), dtype=bool)))


def test_edits_are_seen():
    model, task = compiled_reverser(4), compiled_config(4).build_task()
    silenced = sample(model, task, QUESTION, edits=(AblateHead(f"{SELF}.z", 0),))
    assert silenced.answers_right()[0] < 4
    masked = sample(model, task, QUESTION, edits=(OverrideMask.of(np.zeros((8, 8), dtype=bool)),))
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

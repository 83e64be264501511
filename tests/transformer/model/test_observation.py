"""Looking inside changes nothing; what is seen is what was used; an edit does what it says and only there."""

import hashlib
import math
import re
import threading

import numpy as np
import pytest
import torch

from tests.kit.models import ARCHITECTURES, inputs, small, tokens_of
from transformer.edits import EditError, OverrideMask
from transformer.edits.heads.zero import AblateHead
from transformer.network import of_few_words
from transformer.observation import observe

SELF = "decoder.0.self_attention"
CLOSE = {"atol": 1e-5, "rtol": 0}


def seen_of(architecture, edits=(), **settings):
    model, arguments = small(architecture, **settings), inputs(architecture)
    return model, observe(model, arguments[0], edits, source=arguments[1] if len(arguments) > 1 else None)


# --- seeing


@ARCHITECTURES
def test_looking_changes_no_number(architecture):
    model, seen = seen_of(architecture)
    with torch.no_grad():
        assert torch.equal(model(*inputs(architecture)), seen.logits)
    assert torch.equal(seen["logits"], seen.logits)
    assert not seen.logits.requires_grad


@ARCHITECTURES
def test_every_site_is_there_with_its_shape(architecture):
    batch, n, width, heads = 3, 6, 32, 4
    _, seen = seen_of(architecture)
    attention = dict.fromkeys(("query", "key", "value", "z"), (batch, heads, n, width // heads))
    attention |= dict.fromkeys(("scores", "pattern"), (batch, heads, n, n)) | {"out": (batch, n, width)}
    expected = {"logits": (batch, n, 12)}
    stacks = ("encoder", "decoder") if architecture == "encoder-decoder" else (architecture,)
    for stack in stacks:
        expected |= {f"{stack}.token_embedding": (batch, n, width), f"{stack}.position_embedding": (n, width)}
        expected |= {f"{stack}.places": (n,)}
        crosses = architecture == "encoder-decoder" and stack == "decoder"
        for layer in ("0", "1"):
            for kind in ("self_attention", "cross_attention") if crosses else ("self_attention",):
                path = f"{stack}.{layer}.{kind}"
                only_padding = stack == "encoder" and architecture == "encoder-decoder"
                mask = (batch, 1, 1 if only_padding or kind == "cross_attention" else n, n)
                expected |= {f"{path}.{name}": shape for name, shape in attention.items()} | {f"{path}.mask": mask}
            names = ("resid_pre", "resid_mid", "resid_post", *(("resid_cross",) if crosses else ()))
            expected |= {f"{stack}.{layer}.{name}": (batch, n, width) for name in names}
            expected |= {f"{stack}.{layer}.feed_forward.hidden": (batch, n, 48)}
            expected |= {f"{stack}.{layer}.feed_forward.out": (batch, n, width)}
    if architecture == "encoder-decoder":
        expected["encoder.memory"] = (batch, n, width)
    assert {site: tuple(value.shape) for site, value in seen.sites.items()} == expected


def test_attentions_are_listed_in_the_order_of_the_data():
    _, seen = seen_of("encoder-decoder")
    of_decoder = [f"decoder.{layer}.{kind}_attention" for layer in (0, 1) for kind in ("self", "cross")]
    assert seen.attentions() == ("encoder.0.self_attention", "encoder.1.self_attention", *of_decoder)


@pytest.mark.parametrize("positions", ["learned", "alibi", "rotary"])
@ARCHITECTURES
def test_the_numbers_follow_from_one_another(architecture, positions):
    """Scores from query and key, pattern from scores and mask, z from pattern and value, out from z: all recomputed."""
    model, seen = seen_of(architecture, positions=positions)
    for site in seen.attentions():
        query, key, value, scores, mask, pattern, z, out = (
            seen[f"{site}.{name}"] for name in ("query", "key", "value", "scores", "mask", "pattern", "z", "out")
        )
        expected = torch.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(8)
        if positions == "alibi" and "self" in site:
            away = (torch.arange(6)[:, None] - torch.arange(6)).abs()
            expected = expected - torch.tensor([1 / 4, 1 / 16, 1 / 64, 1 / 256])[:, None, None] * away
        torch.testing.assert_close(scores, expected, **CLOSE)
        weights = torch.exp(scores - scores.amax(-1, keepdim=True)) * mask
        torch.testing.assert_close(pattern, weights / weights.sum(-1, keepdim=True), **CLOSE)
        torch.testing.assert_close(z, torch.einsum("bhqk,bhkd->bhqd", pattern, value), **CLOSE)
        attention = model.get_submodule(site)
        contributions = attention.contributions(z)
        assert contributions.shape == (3, 4, 6, 32)
        torch.testing.assert_close(contributions.sum(1) + attention.out.bias, out, **CLOSE)


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
@ARCHITECTURES
def test_the_stream_is_normalised_once_more_and_read_out(architecture, norm):
    """After pre-norm blocks the stream is not normalised yet: a last LayerNorm does it, for the memory too."""
    model, seen = seen_of(architecture, norm=norm)

    def normalised(x):
        return torch.nn.functional.layer_norm(x, (32,)) if norm == "pre" else x

    stack = "encoder" if architecture == "encoder" else "decoder"
    last = normalised(seen[f"{stack}.1.resid_post"])
    logits = last @ model.unembedding.weight.T + model.unembedding.bias
    torch.testing.assert_close(seen.logits, logits.detach(), **CLOSE)
    if architecture == "encoder-decoder":
        memory = seen["encoder.memory"]
        torch.testing.assert_close(memory, normalised(seen["encoder.1.resid_post"]), **CLOSE)
        cross = model.decoder[1].cross_attention
        keys = (memory @ cross.key.weight.T + cross.key.bias).detach().unflatten(-1, (4, 8)).transpose(1, 2)
        torch.testing.assert_close(seen["decoder.1.cross_attention.key"], keys, **CLOSE)


def test_a_site_that_is_not_there_is_named_with_those_that_are():
    _, seen = seen_of("decoder")
    sentence = "no site 'decoder.7.self_attention.pattern'; there are decoder.0.self_attention"
    with pytest.raises(KeyError, match=re.escape(sentence)):
        seen["decoder.7.self_attention.pattern"]


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_its_mode_and_read_in_evaluation(training):
    model = small(dropout=0.5).train(training)
    first, second = observe(model, tokens_of(2, 6)), observe(model, tokens_of(2, 6))
    assert torch.equal(first.logits, second.logits)
    assert model.training is training
    assert all(module.training is training for module in model.modules())
    with pytest.raises(ValueError, match="do not fit"):
        observe(model, tokens_of(1, 99))
    assert model.training is training


@ARCHITECTURES
def test_what_was_seen_stays_when_the_weights_change(architecture):
    model, seen = seen_of(architecture)
    kept = {site: value.clone() for site, value in seen.sites.items()}
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(1)
    for site, value in seen.sites.items():
        assert not value.requires_grad, site
        assert torch.equal(value, kept[site]), site


# --- editing


@pytest.mark.parametrize("edit", [AblateHead(f"{SELF}.z", 1), OverrideMask.of(np.eye(6, dtype=bool))])
def test_edits_leave_the_model_and_other_observations_alone(edit):
    model, before = seen_of("decoder")
    kept = {site: value.clone() for site, value in before.sites.items()}
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    edited = observe(model, before.tokens, (edit,))
    assert not torch.equal(edited.logits, before.logits)
    assert all(torch.equal(before.sites[site], value) for site, value in kept.items())
    assert all(torch.equal(model.state_dict()[name], value) for name, value in weights.items())
    assert torch.equal(observe(model, before.tokens).logits, before.logits)


def test_an_overridden_mask_gives_the_pattern_worked_out_by_hand():
    painted = np.zeros((6, 6), dtype=bool)
    painted[0, [0, 5]] = painted[1, 3] = painted[2, :] = painted[4, [0, 1]] = painted[5, 5] = True  # row 3 sees nothing
    _, seen = seen_of("decoder", (OverrideMask.of(painted, f"{SELF}.mask"),))
    scores, pattern = seen[f"{SELF}.scores"], seen[f"{SELF}.pattern"]
    for query in range(6):
        chosen = np.flatnonzero(painted[query])
        expected = torch.zeros(3, 4, 6)
        if len(chosen):
            powers = scores[:, :, query, chosen].double().exp()
            expected[:, :, chosen] = (powers / powers.sum(-1, keepdim=True)).float()
        torch.testing.assert_close(pattern[:, :, query], expected, **CLOSE)
    assert np.array_equal(seen[f"{SELF}.mask"][0, 0].numpy(), painted)
    causal = seen["decoder.1.self_attention.mask"][0, 0].numpy()
    assert np.array_equal(causal, np.tril(np.ones((6, 6), dtype=bool)))


def test_an_override_reaches_every_layer_unless_told_otherwise_and_reads_back_as_it_was_painted():
    painted = np.random.default_rng(0).random((6, 6)) < 0.5
    edit = OverrideMask.of(painted)
    assert np.array_equal(edit.visible, painted)
    assert edit == OverrideMask.of(painted.copy())
    assert hash(edit) == hash(OverrideMask.of(painted.copy()))
    _, seen = seen_of("decoder", (edit,))
    for layer in (0, 1):
        assert np.array_equal(seen[f"decoder.{layer}.self_attention.mask"][2, 0].numpy(), painted)


@ARCHITECTURES
def test_a_silenced_head_writes_nothing_and_the_others_what_they_did(architecture):
    model, plain = seen_of(architecture)
    site = plain.attentions()[-1]
    attention, before = model.get_submodule(site), plain[f"{site}.z"]
    for head in range(4):
        seen = observe(model, plain.tokens, (AblateHead(f"{site}.z", head),), source=plain.source)
        written = attention.contributions(before)
        written[:, head] = 0
        assert torch.equal(attention.contributions(seen[f"{site}.z"]), written)
        torch.testing.assert_close(seen[f"{site}.out"], written.sum(1) + attention.out.bias, **CLOSE)
        assert torch.equal(seen[f"{site}.pattern"], plain[f"{site}.pattern"])


def test_edits_are_applied_together():
    model, _ = seen_of("decoder")
    everything = [AblateHead(f"{SELF}.z", head) for head in range(4)]
    seen = observe(model, tokens_of(3, 6), everything)
    assert (seen[f"{SELF}.z"] == 0).all()
    torch.testing.assert_close(seen[f"{SELF}.out"], model.decoder[0].self_attention.out.bias.expand(3, 6, 32))


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (AblateHead("decoder.9.self_attention.z", 0), "met no site: this model has nothing that matches 'decoder.9"),
        (AblateHead("encoder.0.self_attention.z", 0), "met no site"),
        (AblateHead(f"{SELF}.z", 4), f"there is no head 4 at {SELF}.z: it has heads 0 to 3"),
        (AblateHead(f"{SELF}.z", -1), "there is no head -1"),
        (OverrideMask.of(np.ones((5, 5), dtype=bool)), "the mask is 5 × 5, but .* is 6 × 6"),
        (OverrideMask.of(np.ones((6, 5), dtype=bool)), "the mask is 6 × 5, but .* is 6 × 6"),
    ],
    ids=["no layer", "no stack", "no head", "negative head", "wrong size", "wrong shape"],
)
def test_an_edit_that_cannot_be_made_is_refused_with_a_sentence(edit, sentence):
    model = small()
    with pytest.raises(EditError, match=sentence.replace(".", r"\.").replace(r"\.*", ".*")) as refusal:
        observe(model, tokens_of(3, 6), (edit,))
    assert "\n" not in str(refusal.value)
    assert not re.search(r"b['\"]", str(refusal.value))


def test_one_edit_that_meets_does_not_excuse_another_that_does_not():
    with pytest.raises(EditError, match="met no site"):
        observe(small(), tokens_of(3, 6), (AblateHead(f"{SELF}.z", 0), AblateHead("nowhere.z", 0)))


def test_two_threads_with_their_own_edits_do_not_disturb_each_other():
    model, tokens = small(), tokens_of(2, 8)

    def digest(edits):
        seen = observe(model, tokens, edits)
        whole = hashlib.sha256()
        for value in seen.sites.values():
            whole.update(value.contiguous().numpy().tobytes())
        return whole.hexdigest()

    jobs = [(AblateHead(f"{SELF}.z", 0),), (AblateHead(f"{SELF}.z", 3),)]
    expected = [digest(job) for job in jobs]
    assert expected[0] != expected[1]
    found: list[list[str]] = [[], []]
    together = threading.Barrier(2)

    def work(which):
        together.wait()
        for _ in range(15):
            found[which].append(digest(jobs[which]))

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [set(digests) for digests in found] == [{expected[0]}, {expected[1]}]
    assert [len(digests) for digests in found] == [15, 15]


# --- few words


@ARCHITECTURES
def test_a_network_of_few_words_says_these_alone_and_looks_as_it_did(architecture):
    model, arguments = small(architecture), inputs(architecture)
    before = torch.get_rng_state()
    few = of_few_words(model, [7, 2])
    assert torch.equal(torch.get_rng_state(), before)
    source = arguments[1] if len(arguments) > 1 else None
    whole, seen = (observe(each, arguments[0], source=source) for each in (model, few))
    torch.testing.assert_close(seen.logits, whole.logits[..., [7, 2]], **CLOSE)
    assert list(seen.sites) == list(whole.sites)
    assert all(torch.equal(seen[site], whole[site]) for site in whole.sites if site != "logits")
    assert model.unembedding.weight.shape[0] == model.d_vocab == few.d_vocab

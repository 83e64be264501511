"""Laws that hold for any weights: what a token can change, what padding cannot, and how a model speaks by itself."""

import dataclasses
import itertools
import math

import pytest
import torch

from tests.kit.models import ARCHITECTURES, inputs, small, tokens_of
from tests.kit.numbers.rounding import near
from transformer.config import ModelConfig, RunConfig
from transformer.model import Transformer, build
from transformer.observation import observe
from transformer.positions import ENCODINGS
from transformer.trace import Recorder

PAD, SEP = 11, 10
NORMS = [{"norm": "post"}, {"norm": "none"}]


# --- what a token can change


@pytest.mark.parametrize("settings", [*({"positions": each} for each in ENCODINGS.names()), *NORMS], ids=str)
@ARCHITECTURES
@torch.no_grad()
def test_a_token_changes_every_logit_that_may_see_it_and_no_other(architecture, settings):
    """A later token changes no earlier logit of a decoder; an encoder sees both ways; a source is seen by all."""
    model, arguments = small(architecture, **settings), inputs(architecture)
    before = model(*arguments)
    for which, place in itertools.product(range(len(arguments)), range(6)):
        changed = [each.clone() for each in arguments]
        changed[which][:, place] = (changed[which][:, place] + 1) % 10
        moved = (model(*changed) != before).any(dim=-1)
        first = 0 if which == 1 or architecture == "encoder" else place
        assert not moved[:, :first].any()
        assert moved[:, first:].all()


def test_without_positions_an_encoder_reads_a_bag():
    model = small("encoder", positions="none")
    tokens, order = tokens_of(3, 8), torch.tensor([3, 0, 7, 1, 6, 2, 5, 4])
    torch.testing.assert_close(model(tokens[:, order]), model(tokens)[:, order], atol=1e-5, rtol=0)


@ARCHITECTURES
@torch.no_grad()
def test_sequences_of_a_batch_do_not_meet(architecture):
    model, order = small(architecture), torch.tensor([2, 0, 1])
    arguments = inputs(architecture)
    shuffled = model(*(argument[order] for argument in arguments))
    assert shuffled == near(model(*arguments)[order])
    alone = model(*(argument[:1] for argument in arguments))
    assert alone == near(model(*arguments)[:1])


# --- padding


def padded(tokens, more):
    return torch.nn.functional.pad(tokens, (0, more), value=PAD)


@pytest.mark.parametrize("positions", ENCODINGS.names())
@ARCHITECTURES
def test_padding_after_a_sequence_is_looked_at_by_nobody_and_changes_nothing(architecture, positions):
    model = small(architecture, positions=positions).double()  # where rounding cannot hide anything
    arguments = inputs(architecture, length=4)
    logits = model(*arguments)
    for more in (1, 4):
        tokens, *source = (padded(argument, more) for argument in arguments)
        seen = observe(model, tokens, source=source[0] if source else None)
        torch.testing.assert_close(seen.logits[:, :4], logits, atol=1e-12, rtol=0)
        assert all((seen[f"{site}.pattern"][..., 4:] == 0).all() for site in seen.attentions())


def test_a_sequence_of_padding_alone_is_still_finite():
    model = small("encoder")
    logits = model(torch.full((1, 4), PAD))
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


# --- speaking by itself


@torch.no_grad()
def test_to_speak_greedily_is_to_say_the_likeliest_token_step_by_step():
    model, source = small("encoder-decoder"), tokens_of(3, 6)
    decoder, prompt = small(), tokens_of(2, 5)
    for row in range(3):
        said = [SEP]
        for _ in range(6):
            said.append(int(model(torch.tensor([said]), source[row : row + 1])[0, -1].argmax()))
        assert model.greedy(source, SEP)[row].tolist() == said[1:]
    for row in range(2):
        said = prompt[row].tolist()
        for _ in range(4):
            said.append(int(decoder(torch.tensor([said]))[0, -1].argmax()))
        assert decoder.continue_greedily(prompt, 4)[row].tolist() == said[5:]
    assert decoder.continue_greedily(prompt, 0).shape == (2, 0)


# --- construction


def test_scaled_embeddings_are_longer_by_the_root_of_the_width():
    tokens = tokens_of(2, 5)
    for scaled, factor in ((True, math.sqrt(32)), (False, 1)):
        model = small(scale_embeddings=scaled)
        found = observe(model, tokens)["decoder.token_embedding"]
        torch.testing.assert_close(found, factor * model.embedding.weight[tokens].detach())


@ARCHITECTURES
def test_what_does_not_fit_is_refused_with_a_sentence(architecture):
    model = small(architecture)
    tokens, *source = inputs(architecture, length=model.n_ctx)
    assert model(tokens, *source).shape == (*tokens.shape, model.d_vocab)
    longer, too_long = padded(tokens, 1), f"{model.n_ctx + 1} tokens do not fit into a context of {model.n_ctx}"
    refused = [((longer, *source), too_long)]
    refused += [((tokens, longer), too_long), ((tokens,), "an encoder-decoder needs a source")] if source else []
    refused += [] if source else [((tokens, tokens), "only an encoder-decoder reads a source")]
    for arguments, sentence in refused:
        with pytest.raises(ValueError, match=sentence):
            model(*arguments)


def test_an_unresolved_config_is_refused():
    with pytest.raises(ValueError, match="RunConfig resolves 'auto' from the task"):
        Transformer(ModelConfig(), d_vocab=12, n_ctx=16)


def test_building_leaves_the_global_generator_alone_and_the_seed_decides():
    before = torch.random.get_rng_state()
    first, again, other = small(seed=3).state_dict(), small(seed=3).state_dict(), small(seed=4).state_dict()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["embedding.weight"], other["embedding.weight"])


@torch.no_grad()
def test_dropout_drops_or_doubles_what_each_sub_layer_adds_in_training_and_nothing_else():
    """At 0.5 a feature of a sub-layer's output, or of an embedding, reaches the stream doubled or not at all."""
    model, arguments = small("encoder-decoder", dropout=0.5), inputs("encoder-decoder")
    assert torch.equal(model(*arguments), small("encoder-decoder")(*arguments))
    recorder = Recorder()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model.train()(*arguments, trace=recorder)
    seen = recorder.sites
    embedded = seen["decoder.token_embedding"] + seen["decoder.position_embedding"]
    for added, given in (
        (seen["decoder.0.resid_pre"], embedded),
        (seen["decoder.0.resid_mid"] - seen["decoder.0.resid_pre"], seen["decoder.0.self_attention.out"]),
        (seen["decoder.0.resid_cross"] - seen["decoder.0.resid_mid"], seen["decoder.0.cross_attention.out"]),
        (seen["decoder.0.resid_post"] - seen["decoder.0.resid_cross"], seen["decoder.0.feed_forward.out"]),
    ):
        dropped = added.abs() < 1e-5
        assert 0.4 < dropped.float().mean() < 0.6
        torch.testing.assert_close(added, torch.where(dropped, 0.0, 2 * given), atol=1e-4, rtol=0)


@ARCHITECTURES
def test_the_feed_forward_layer_can_be_left_out(architecture):
    assert not [name for name, _ in small(architecture, d_ff=0).named_parameters() if "feed_forward" in name]


def test_query_and_key_gain_scales_those_weights_only():
    plain, steadied = small().state_dict(), small(query_key_gain=0.3).state_dict()
    for name, weight in plain.items():
        scaled = name.endswith(("attention.query.weight", "attention.key.weight"))
        torch.testing.assert_close(steadied[name], weight * 0.3 if scaled else weight)


def test_initial_weights_have_the_spread_that_is_promised():
    config = RunConfig(model=ModelConfig(d_model=256, d_ff=1024))
    weights = {name: weight.detach() for name, weight in build(config).named_parameters()}
    for name, fan_in in (("decoder.0.self_attention.out.weight", 256), ("decoder.1.feed_forward.down.weight", 1024)):
        assert float(weights[name].std()) == pytest.approx(fan_in**-0.5, rel=0.02)
    assert float(weights["embedding.weight"].std()) == pytest.approx(1 / 16, rel=0.05)
    assert float(weights["positions.table"].std()) == pytest.approx(1, rel=0.05)
    assert all((weight == 0).all() for name, weight in weights.items() if name.endswith("attention.out.bias"))


def test_layers_are_distinct():
    """Blocks share no weights: as many parameters as the formula says."""
    config = dataclasses.replace(RunConfig().model, n_layers=3, d_model=8, n_heads=2, d_ff=16)
    model = Transformer(config, d_vocab=12, n_ctx=16)
    block = 4 * (8 * 8 + 8) + (8 * 16 + 16) + (16 * 8 + 8) + 2 * 16
    rest = 12 * 8 + 16 * 8 + 16 + (8 * 12 + 12)
    assert sum(weight.numel() for weight in model.parameters()) == 3 * block + rest

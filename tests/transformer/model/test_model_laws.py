"""Laws that hold for any weights: what a token can change, what padding cannot, and how a model speaks by itself."""

import dataclasses
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


# --- what a token can change


@pytest.mark.parametrize("positions", ENCODINGS.names())
@pytest.mark.parametrize("architecture", ["decoder", "encoder-decoder"])
def test_a_later_token_changes_no_earlier_logit(architecture, positions):
    model = small(architecture, positions=positions)
    tokens, *source = inputs(architecture)
    before = model(tokens, *source)
    for place in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[:, place] = (changed[:, place] + 1) % 10
        after = model(changed, *source)
        assert torch.equal(after[:, :place], before[:, :place])
        assert not torch.equal(after[:, place], before[:, place])


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
def test_the_gradient_of_an_earlier_logit_is_zero_at_later_embeddings(norm):
    model = small(norm=norm)
    embedded = []
    model.embedding.register_forward_hook(lambda _, __, out: embedded.append(out.requires_grad_()) or out)
    logits = model(tokens_of(2, 6))
    for place in range(6):
        (gradient,) = torch.autograd.grad(logits[:, place].sum(), embedded[0], retain_graph=True)
        assert (gradient[:, place + 1 :] == 0).all()
        assert (gradient[:, : place + 1].abs().amax(dim=(0, 2)) > 0).all()


def test_an_encoder_sees_both_ways():
    model = small("encoder")
    tokens = tokens_of(1, 6)
    changed = tokens.clone()
    changed[0, 5] = (changed[0, 5] + 1) % 10
    assert ((model(tokens) - model(changed)).abs().amax(dim=2) > 1e-4).all()


def test_every_source_token_can_change_every_logit():
    model = small("encoder-decoder")
    tokens, source = inputs("encoder-decoder", batch=1)
    for place in range(source.shape[1]):
        changed = source.clone()
        changed[0, place] = (changed[0, place] + 1) % 10
        assert ((model(tokens, source) - model(tokens, changed)).abs().amax(dim=2) > 1e-5).all()


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
def test_padding_after_a_sequence_changes_nothing(architecture, positions):
    model = small(architecture, positions=positions).double()  # where rounding cannot hide anything
    arguments = inputs(architecture, length=4)
    logits = model(*arguments)
    for more in (1, 4):
        longer = model(*(padded(argument, more) for argument in arguments))
        torch.testing.assert_close(longer[:, :4], logits, atol=1e-12, rtol=0)


@ARCHITECTURES
def test_no_query_looks_at_padding(architecture):
    model = small(architecture)
    tokens, *source = (padded(argument, 2) for argument in inputs(architecture, length=4))
    seen = observe(model, tokens, source=source[0] if source else None)
    for site in seen.attentions():
        pattern = seen[f"{site}.pattern"]
        assert (pattern[..., 4:] == 0).all(), site
        torch.testing.assert_close(pattern.sum(-1), torch.ones(pattern.shape[:-1]))


def test_a_sequence_of_padding_alone_is_still_finite():
    model = small("encoder")
    logits = model(torch.full((1, 4), PAD))
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


# --- speaking by itself


def test_greedy_is_the_likeliest_token_step_by_step():
    model = small("encoder-decoder")
    source = tokens_of(3, 6)
    for row in range(3):
        said = [SEP]
        for _ in range(6):
            said.append(int(model(torch.tensor([said]), source[row : row + 1])[0, -1].argmax()))
        assert model.greedy(source, SEP)[row].tolist() == said[1:]


def test_continuing_greedily_is_the_likeliest_token_step_by_step():
    model = small()
    prompt = tokens_of(2, 5)
    for row in range(2):
        said = prompt[row].tolist()
        for _ in range(4):
            said.append(int(model(torch.tensor([said]))[0, -1].argmax()))
        assert model.continue_greedily(prompt, 4)[row].tolist() == said[5:]
    assert model.continue_greedily(prompt, 0).shape == (2, 0)


# --- construction


@pytest.mark.parametrize("architecture", ["decoder", "encoder"])
def test_scaled_embeddings_are_longer_by_the_root_of_the_width(architecture):
    tokens = tokens_of(2, 5)
    stack = f"{architecture}.token_embedding"
    scaled = observe(small(architecture), tokens)[stack]
    plain = observe(small(architecture, scale_embeddings=False), tokens)[stack]
    torch.testing.assert_close(scaled, plain * math.sqrt(32))
    model = small(architecture, scale_embeddings=False)
    assert torch.equal(plain, model.embedding.weight[tokens])


@ARCHITECTURES
def test_what_does_not_fit_is_refused_with_a_sentence(architecture):
    model = small(architecture)
    tokens, *source = inputs(architecture, length=model.n_ctx)
    assert model(tokens, *source).shape == (*tokens.shape, model.d_vocab)
    longer = padded(tokens, 1)
    with pytest.raises(ValueError, match=f"{model.n_ctx + 1} tokens do not fit into a context of {model.n_ctx}"):
        model(longer, *source)
    if source:
        with pytest.raises(ValueError, match=f"{model.n_ctx + 1} tokens do not fit into a context of {model.n_ctx}"):
            model(tokens, longer)
        with pytest.raises(ValueError, match="an encoder-decoder needs a source"):
            model(tokens)
    else:
        with pytest.raises(ValueError, match="only an encoder-decoder reads a source"):
            model(tokens, tokens)


def test_an_unresolved_config_is_refused():
    with pytest.raises(ValueError, match="RunConfig resolves 'auto' from the task"):
        Transformer(ModelConfig(), d_vocab=12, n_ctx=16)


def test_building_leaves_the_global_generator_alone_and_the_seed_decides():
    before = torch.random.get_rng_state()
    first, again, other = small(seed=3).state_dict(), small(seed=3).state_dict(), small(seed=4).state_dict()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["embedding.weight"], other["embedding.weight"])


def test_dropout_is_on_in_training_and_off_in_evaluation():
    model, tokens = small(dropout=0.5), tokens_of(2, 6)
    assert torch.equal(model(tokens), model(tokens))
    torch.testing.assert_close(model(tokens), small(dropout=0.0)(tokens))
    model.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        assert not torch.equal(model(tokens), model(tokens))


def test_dropout_drops_or_doubles_what_each_sub_layer_adds():
    """At 0.5 a feature of a sub-layer's output, or of an embedding, reaches the stream doubled or not at all."""
    model, (tokens, source) = small("encoder-decoder", dropout=0.5).train(), inputs("encoder-decoder")
    recorder = Recorder()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model(tokens, source, trace=recorder)
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
    model = small(architecture, d_ff=0)
    assert not [name for name, _ in model.named_parameters() if "feed_forward" in name]
    arguments = inputs(architecture)
    assert model(*arguments).isfinite().all()
    seen = observe(model, arguments[0], source=arguments[1] if len(arguments) > 1 else None)
    last = "resid_cross" if architecture == "encoder-decoder" else "resid_mid"
    stack = "encoder" if architecture == "encoder" else "decoder"
    assert torch.equal(seen[f"{stack}.0.resid_post"], seen[f"{stack}.0.{last}"])


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

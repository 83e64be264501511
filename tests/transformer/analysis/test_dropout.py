"""Dropout: what is dropped, what is made larger, and that nothing of it is left in the model."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.kit.pages import PI, laid_out, network
from transformer.analysis.stream.dropout import drop, repeat_passes, sublayer_output, with_dropout

RATE = 0.3
QUESTION = np.array(PI)


@pytest.mark.parametrize("run", ["reverse", "reverse-translate", "reverse-aligned", "compiled"])
def test_evaluation_mode_is_the_model_and_training_mode_scatters_around_it(run):
    model, config = network(run)
    tokens, source, _ = laid_out(config, QUESTION[None])
    shares = torch.softmax(model(tokens, source)[0], dim=-1).detach().numpy()
    found = repeat_passes(model, config.build_task(), QUESTION, rate=RATE, passes=4)
    np.testing.assert_array_equal(found.predicted, shares.argmax(-1))
    for each in found.evaluation:
        np.testing.assert_array_equal(each, shares.max(-1))
    assert found.evaluation_alike
    assert not found.training_alike
    assert np.ptp(found.training, axis=0).max() > 0.01


def test_training_mode_is_what_the_training_loop_computes():
    """By hand: the model that its config with this rate describes, in training mode, drawing from this seed."""
    model, config = network("reverse")
    tokens, source, _ = laid_out(config, QUESTION[None])
    found = repeat_passes(model, config.build_task(), QUESTION, rate=RATE, passes=3, seed=7)
    twin = with_dropout(model, RATE).train()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(7)
        logits = [twin(tokens, source)[0] for _ in range(3)]
    for i, each in enumerate(logits):
        shares = each.softmax(-1).numpy()
        np.testing.assert_array_equal(found.training[i], shares[np.arange(len(shares)), found.predicted])
    others = sum((each.argmax(-1).numpy() != found.predicted).astype(int) for each in logits)
    np.testing.assert_array_equal(found.changed, others)


def test_a_seed_draws_the_same_again_and_another_draws_others_and_without_dropout_both_modes_are_one():
    model, config = network("reverse")
    task = config.build_task()
    one, same, other = (repeat_passes(model, task, QUESTION, rate=RATE, passes=2, seed=i) for i in (1, 1, 2))
    np.testing.assert_array_equal(one.training, same.training)
    assert (one.training != other.training).any()
    without = repeat_passes(model, task, QUESTION, rate=0.0, passes=2)
    assert without.training_alike
    assert without.evaluation_alike
    np.testing.assert_array_equal(without.training, without.evaluation)
    assert not without.changed.any()


def test_nothing_of_it_is_left_in_the_model_nor_in_the_global_generator():
    model, config = network("reverse")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    repeat_passes(model, config.build_task(), QUESTION, rate=RATE, passes=2)
    drop(np.ones(8, dtype=np.float32), RATE, 4)
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module.training for module in model.modules())
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.0}
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_a_kept_number_is_made_larger_so_that_the_mean_stays(rate):
    vector = np.array([3.0, -1.0, 0.5, 2.0], dtype=np.float32)
    copies = drop(vector, rate, 20_000, seed=3)
    kept = copies != 0
    np.testing.assert_allclose(copies[kept], np.broadcast_to(vector / (1 - rate), copies.shape)[kept], rtol=1e-6)
    np.testing.assert_allclose(kept.mean(axis=0), 1 - rate, atol=5 * np.sqrt(rate * (1 - rate) / len(copies)))
    error = np.sqrt(rate / (1 - rate) / len(copies))
    np.testing.assert_allclose(copies.mean(axis=0), vector, atol=float(5 * 3 * error) + 1e-5)


@pytest.mark.parametrize("run", ["reverse", "compiled"])
def test_what_is_dropped_is_what_attention_writes(run):
    model, config = network(run)
    tokens, _, _ = laid_out(config, QUESTION[None])
    block, length = model.decoder[0], tokens.shape[1]
    embedded = model.embedding(tokens) * (config.model.d_model**0.5 if config.model.scale_embeddings else 1)
    x, norm = (embedded + model.positions.table[:length]).detach(), block.around_self.before
    if config.model.norm == "pre":
        x = functional.layer_norm(x, x.shape[-1:], norm.weight, norm.bias)
    written = block.self_attention(x, x, model.visible[None, None, :length, :length])[0, 8].detach().numpy()
    np.testing.assert_allclose(sublayer_output(model, config.build_task(), QUESTION, 8), written, atol=1e-5)

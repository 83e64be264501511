"""From the last vector to the loss of a token: against numpy, PyTorch's cross-entropy and autograd."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch.nn import functional

from tests.kit.pages import PI, laid_out, network
from transformer import observe
from transformer.analysis.stream.unembedding import look_at_output, loss, loss_gradient, softmax
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import build

LOGITS = arrays(np.float32, 6, elements=st.floats(-30, 30, width=32))


@pytest.mark.parametrize("run", ["reverse", "reverse-translate", "reverse-aligned", "compiled"])
def test_an_output_is_the_last_vector_through_norm_and_unembedding(run):
    """By hand in float64: LayerNorm's formula and a product with the raw weights."""
    model, config = network(run)
    tokens, source, targets = laid_out(config, np.array([PI]))
    seen = observe(model, tokens, source=source)
    weights = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
    stack = "encoder" if run == "reverse-aligned" else "decoder"
    last = config.model.n_layers - 1
    task = config.build_task()
    answers = set(range(tokens.shape[1] - 8, tokens.shape[1]))
    for place in range(tokens.shape[1]):
        found = look_at_output(model, task, np.array(PI), place)
        stream = seen[f"{stack}.{last}.resid_post"][0, place].double().numpy()
        np.testing.assert_allclose(found.stream, stream, atol=1e-5)
        normed = stream
        if "final_norm.weight" in weights:
            centred = stream - stream.mean()
            normed = centred / np.sqrt((centred**2).mean() + 1e-5)
            normed = normed * weights["final_norm.weight"] + weights["final_norm.bias"]
        np.testing.assert_allclose(found.normed, normed, atol=1e-4)
        logits = weights["unembedding.weight"] @ normed + weights["unembedding.bias"]
        np.testing.assert_allclose(found.logits, logits, atol=1e-3)
        assert found.read == tokens[0, place]
        assert found.target == (targets[0, place] if place in answers else None)


def test_where_the_norms_stand_after_the_sublayers_there_is_none_at_the_end():
    config = RunConfig(task=TaskConfig(length=3), model=ModelConfig(n_layers=1, n_heads=2, d_model=8, norm="post"))
    found = look_at_output(build(config).eval(), config.build_task(), np.array([1, 2, 3]), 4)
    np.testing.assert_array_equal(found.stream, found.normed)


@given(LOGITS, st.floats(0.1, 5))
def test_the_softmax_is_that_of_pytorch(logits, temperature):
    expected = torch.softmax(torch.from_numpy(logits).double() / temperature, dim=-1).numpy()
    np.testing.assert_allclose(softmax(logits, temperature), expected, atol=1e-12)


@given(LOGITS, st.integers(0, 5))
def test_the_loss_and_its_gradient_are_those_of_autograd(logits, target):
    z = torch.from_numpy(logits).double().requires_grad_()
    expected = functional.cross_entropy(z[None], torch.tensor([target]))
    expected.backward()
    assert loss(logits, target) == pytest.approx(float(expected.detach()), abs=1e-9)
    np.testing.assert_allclose(loss_gradient(logits, target), z.grad.numpy(), atol=1e-12)
    assert loss_gradient(logits, target).sum() == pytest.approx(0, abs=1e-12)


def test_a_temperature_sharpens_or_flattens_and_keeps_the_order():
    logits = np.array([2.0, 1.0, -1.0], dtype=np.float32)
    cold, warm, hot = (softmax(logits, t) for t in (0.1, 1.0, 5.0))
    assert cold[0] > warm[0] > hot[0] > hot[1] > hot[2]
    assert cold[0] == pytest.approx(1, abs=1e-4)

"""The third question: dense layers against their weights, read here, and the title of the page."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from dashboard.app_pages.learn.questions.dense_layers import headline
from dashboard.app_pages.learn.questions.figures.dense_layers import cosine_heatmap, weight_heatmaps
from tests.kit.pages import PI, network, open_page
from transformer.analysis.stream.dense_layers import compare_feeds, permuted
from transformer.config import ConfigError, ModelConfig, RunConfig
from transformer.model import build
from transformer.observation import observe


def weights_of(run: str, block: str) -> tuple[np.ndarray, ...]:
    names = ("up.weight", "up.bias", "down.weight", "down.bias")
    weights = network(run)[0].state_dict()
    return tuple(weights[f"{block}.feed_forward.{name}"].double().numpy() for name in names)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


@pytest.mark.parametrize("run", ["reverse", "reverse-translate"])
def test_cosines_of_layers_are_those_of_their_numbers(run):
    model, config = network(run)
    task = config.build_task()
    found = compare_feeds(model, task, np.array(PI))
    assert len(found.names) == (2 if run == "reverse" else 4)
    batch = task.encode([np.array(PI)])
    source = None if batch.source is None else torch.from_numpy(batch.source)
    seen = observe(model, torch.from_numpy(batch.tokens), source=source)
    first = model.get_submodule(found.names[0])
    read = first.around_feed_forward.before(seen[f"{found.names[0]}.resid_mid"])[0].double().detach().numpy()
    said = []
    for name in found.names:
        w1, b1, w2, b2 = weights_of(run, name)
        said.append(np.array([w2 @ np.maximum(w1 @ x + b1, 0) + b2 for x in read]))
    for (i, one), (j, other) in itertools.product(enumerate(found.names), repeat=2):
        a, b = (np.concatenate([w.ravel() for w in weights_of(run, name)[::2]]) for name in (one, other))
        assert found.cosine[i, j] == pytest.approx(cosine(a, b), abs=1e-5)
        assert found.weights == len(a)
        each = [cosine(x, y) for x, y in zip(said[i], said[j], strict=True)]
        assert found.said[i, j] == pytest.approx(np.mean(each), abs=1e-4)
    drawn = cosine_heatmap(found.cosine, found.names)
    np.testing.assert_allclose(drawn.data[0].z, found.cosine, atol=1e-6)
    np.testing.assert_allclose(weight_heatmaps(found.up, found.names).data[1].z, found.up[1][:48, :48])


def test_one_dense_layer_serves_all_positions_and_one_that_does_not_is_found():
    config = RunConfig(model=ModelConfig(d_model=16, d_ff=24))
    model, task = build(config).eval(), config.build_task()
    assert permuted(model, task, np.array(PI)) < 1e-6

    class Placed(torch.nn.Module):
        def forward(self, x, trace=None):
            return x * torch.arange(x.shape[1])[:, None]

    model.decoder[1].feed_forward = Placed()
    assert permuted(model, task, np.array(PI)) > 0.1


def test_a_model_without_dense_layers_says_so():
    config = RunConfig(model=ModelConfig(d_ff=0))
    with pytest.raises(ConfigError, match="this model has no feed-forward layers"):
        compare_feeds(build(config), config.build_task(), np.array(PI))


def test_the_title_of_the_dense_layers_is_their_cosine():
    one, other = (np.concatenate([w.ravel() for w in weights_of("reverse", f"decoder.{i}")[::2]]) for i in (0, 1))
    app = open_page("questions", run="reverse", asked="3")
    assert app.title[0].value.endswith(f"their cosine is {cosine(one, other):.2f}.".replace("-", "−"))


@pytest.mark.parametrize(
    ("cosine", "said"),
    [
        ([[1.0]], "There is one dense layer, and every position uses the same weights."),
        ([[1.0, 1.0], [1.0, 1.0]], "The 2 dense layers have the same shape and the same weights."),
        (
            [[1.0, -0.31], [-0.31, 1.0]],
            "The 2 dense layers have the same shape and different weights: their cosine is −0.31.",
        ),
        (
            [[1.0, 0.1, 0.0], [0.1, 1.0, -0.4], [0.0, -0.4, 1.0]],
            "The 3 dense layers have the same shape and different weights: every cosine of two is within 0.40 of 0.",
        ),
    ],
)
def test_a_cosine_keeps_its_sign_and_layers_alike_are_said_to_be(cosine, said):
    assert headline("mine", np.array(cosine)) == said

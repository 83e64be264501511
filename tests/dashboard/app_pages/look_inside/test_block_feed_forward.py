"""The page "Inside a block", feed-forward layer: units that fire, counted here from the weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from dashboard.app_pages.look_inside.block.figures.feed_forward import firing_histogram
from tests.kit.heads_by_hand import double, normed, read_by_hand
from tests.kit.pages import PI, answer, array, figures, network, open_page, trace
from transformer import observe
from transformer.analysis.batches import questions

CASES = {
    "reverse": ("reverse", "decoder.1", 11, "resid_mid", 256),
    "decoder of two": ("reverse-translate", "decoder.0", 3, "resid_cross", 256),
    "encoder of two": ("reverse-translate", "encoder.1", 8, "resid_mid", 256),
    "text": ("shakespeare", "decoder.3", 17, "resid_mid", 53),
}


def hidden_of(model, block, reads, tokens, source):
    """max(0, W₁ x + b₁) at every position, float [sequence, position, unit]."""
    x = double(observe(model, tokens, source=source)[f"{block}.{reads}"])
    module = model.get_submodule(block)
    x = normed(x, module.around_feed_forward.before)
    up = module.feed_forward.up
    return np.maximum(x @ double(up.weight).T + double(up.bias), 0)


@pytest.mark.daily(1)
@pytest.mark.parametrize("case", CASES)
def test_units_that_fire_here_and_how_often_are_counts(case):
    run, block, place, reads, sequences = CASES[case]
    model, config = network(run)
    task = config.build_task()
    if config.task.task == "text":
        tokens, source = torch.tensor([[task.separator, *task.example[:-1]]]), None
    else:
        tokens, source = read_by_hand(config.task.task, PI, answer(model, config, PI))
    here = hidden_of(model, block, reads, tokens, source)[0, place - 1]
    batch, _ = questions(task, sequences, task.surveyed, 0)
    many_source = None if batch.source is None else torch.from_numpy(batch.source)
    many = hidden_of(model, block, reads, torch.from_numpy(batch.tokens), many_source)
    shares = (many > 0).mean(axis=(0, 1))

    app = open_page("block", run=run, part="feed_forward", block=block, query=str(place))
    drawn = trace(app, "units", "here")
    order = np.argsort(-here)[:12]
    np.testing.assert_allclose(array(drawn["x"]), here[order], atol=1e-4)
    assert drawn["text"] == [f"unit {unit}" for unit in order]
    np.testing.assert_allclose(array(trace(app, "units", "often")["x"]), shares[order], atol=2e-3)
    counts = array(trace(app, "firing", "units")["y"])
    assert counts.sum() == (shares > 0).sum()
    edges = np.linspace(0, 1, 21)
    mine = [((shares > 0) & (shares >= low) & (shares < high)).sum() for low, high in pairwise(edges)]
    assert np.abs(counts - mine).sum() <= 4  # a share on the edge of a bin, by rounding
    never, title = int((shares == 0).sum()), app.title[0].value
    assert title.startswith(f"{(here > 0).sum()} of {len(here)} hidden units fire at ")
    words = (
        f"{never} never fire{'s' * (never == 1)} in {many[..., 0].size:,} positions."
        if never
        else "every unit fires somewhere."
    )
    assert title.endswith(words)
    texts = " ".join(each.value for each in [*app.markdown, *app.caption])
    assert f"here {(here > 0).sum()} do, and {(here == 0).sum()} are 0" in texts
    assert f"over {many.shape[0] * many.shape[1]:,} positions of {sequences} " in texts
    assert f"Unit {order[0]} is the strongest here, with {here[order[0]]:.2f}." in texts
    lengths = here * np.linalg.norm(double(model.get_submodule(f"{block}.feed_forward").down.weight), axis=0)
    assert f"the longest vector, of length {lengths.max():.2f}" in texts
    assert ("It also writes" in texts) == (lengths.argmax() == order[0])


def test_a_model_without_feed_forward_layers_says_so():
    app = open_page("block", run="compiled", part="feed_forward")
    assert app.title[0].value == "compiled has no feed-forward layers, so there are no hidden units."
    assert not figures(app)


def test_units_that_never_fire_are_a_bar_of_their_own():
    figure = firing_histogram(np.array([0, 0, 0.01, 0.5, 0.52, 1.0]))
    assert figure.data[1].y[0] == 2
    assert sum(figure.data[0].y) == 4
    assert figure.data[0].y[10] == 2
    assert figure.data[0].y[-1] == 1

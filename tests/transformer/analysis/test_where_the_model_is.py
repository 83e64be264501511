"""Analyses of a model that is on a GPU, on a machine without one: see `tests/kit/standin.py`."""

import pytest
import torch

from tests.kit.standin import StandIn
from transformer.config import RunConfig
from transformer.model import build

pytestmark = pytest.mark.nightly


def _library():
    from transformer import observe
    from transformer.analysis import weights
    from transformer.analysis.heads import distances, induction, measure, one_token, score_terms
    from transformer.analysis.health.examine import examine
    from transformer.analysis.interventions import effects, patching
    from transformer.analysis.stream import dense_layers, depth, lens, unembedding

    return {
        "health": lambda m, t: examine(m, t),
        "measure_heads": lambda m, t: measure.measure_heads(m, t, sequences=16),
        "measure_removal": lambda m, t: measure.measure_removal(m, t, sequences=16),
        "distances": lambda m, t: distances.measure_distances(m, t),
        "shares": lambda m, t: score_terms.measure_shares(m, t),
        "induction": lambda m, t: induction.find_induction(m, t),
        "lens": lambda m, t: lens.lens(m, t, t.example),
        "patching": lambda m, t: patching.patching(m, t, t.example, effects.one_token_changed(m, t, t.example)),
        "movements": lambda m, t: weights.movements(m, m),
        "depth": lambda m, t: depth.look_down(m, t),
        "feeds": lambda m, t: dense_layers.compare_feeds(m, t, t.example),
        "output": lambda m, t: unembedding.look_at_output(m, t, t.example, 0),
        "glance": lambda m, t: one_token.glance(m, [1, 2, 3, 4, 5], 3),
        "observe": lambda m, t: observe(m, torch.tensor([[1, 2, 3]], device=m.visible.device)),
    }


WRONG = {
    "cuda": {"movements", "depth", "feeds", "output", "glance"},
    "mps": {
        "movements",
        "depth",
        "feeds",
        "output",
        "glance",
        "health",
        "distances",
        "shares",
        "induction",
        "patching",
    },
}


@pytest.mark.parametrize("kind", ["cuda", "mps"])
@pytest.mark.parametrize("name", _library())
def test_a_model_is_looked_at_where_it_is(name, kind, request):
    if name in WRONG[kind]:
        request.applymarker(pytest.mark.xfail(strict=True, reason="takes the CPU for granted, or float64"))
    config = RunConfig()
    with StandIn(kind).installed():
        _library()[name](build(config).to(kind).eval(), config.build_task())

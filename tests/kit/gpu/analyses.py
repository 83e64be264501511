"""Every public function of the library that looks at a model, with arguments, for what holds of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from transformer import observe
from transformer.analysis import batches, encodings, weights
from transformer.analysis import sample as sampled
from transformer.analysis.accuracy import by_position, reading, surprise, without_heads
from transformer.analysis.film import take
from transformer.analysis.findings import Head
from transformer.analysis.heads import (
    circuits,
    detail,
    distances,
    induction,
    inside,
    measure,
    one_token,
    score_terms,
    side_by_side,
    survey,
)
from transformer.analysis.health import examine
from transformer.analysis.interventions import effects, influence, patching
from transformer.analysis.machine import movement, plan, vectors
from transformer.analysis.stream import (
    attribution,
    dense_layers,
    depth,
    dropout,
    hidden_units,
    lens,
    norms,
    unembedding,
)
from transformer.edits.heads.zero import AblateHead
from transformer.generation import generate
from transformer.sampling import Sampling

SITE = "decoder.0.self_attention"
FEW = 16
REMOVED = AblateHead(f"{SITE}.z", 0)


def _batch(task: Any) -> Any:
    return batches.questions(task, FEW, task.length, 0)[0]


def _seen(model: Any, task: Any) -> Any:
    return sampled.observe_batch(model, sampled.lay_out(task, task.example))


def _tokens(task: Any) -> torch.Tensor:
    return torch.from_numpy(task.encode([task.example]).tokens[0])


def _passage(task: Any) -> np.ndarray:
    return np.array(task.example)


LAWFUL: dict[str, Callable[[Any, Any], Any]] = {
    "accuracy.by_position.logits": lambda m, t: list(by_position.logits(m, _batch(t))),
    "accuracy.by_position.predictions": lambda m, t: by_position.predictions(m, _batch(t), [REMOVED]),
    "accuracy.by_position.accuracy_by_position": lambda m, t: by_position.accuracy_by_position(m, t, sequences=FEW),
    "accuracy.reading.reading": lambda m, t: reading.reading(m, _batch(t)),
    "accuracy.reading.cost_of_each_head": lambda m, t: reading.cost_of_each_head(m, _batch(t)),
    "accuracy.without_heads.ask": lambda m, t: without_heads.ask(m, t, sequences=FEW),
    "accuracy.without_heads.without_each_head": lambda m, t: without_heads.without_each_head(m, t, sequences=FEW),
    "batches.in_parts": lambda m, t: batches.in_parts(m, _batch(t), lambda part, seen: seen.logits.cpu(), keep=()),
    "encodings.table_of": lambda m, t: encodings.table_of(m, "learned"),
    "encodings.lengths_of": lambda m, t: encodings.lengths_of(m, "learned"),
    "encodings.addition_of": lambda m, t: encodings.addition_of(m, "learned", 1, 2),
    "encodings.read_backwards": lambda m, t: encodings.read_backwards(m, _tokens(t), everything_seen=True),
    "encodings.read_in_two_orders": lambda m, t: encodings.read_in_two_orders(m, _tokens(t)),
    "film.take.film": lambda m, t: take.film([(1, m), (2, m)], t, sequences=FEW),
    "heads.circuits.circuits": lambda m, t: circuits.circuits(m, Head(SITE, 1)),
    "heads.detail.detail": lambda m, t: detail.detail(m, t, t.example, SITE),
    "heads.distances.measure_distances": distances.measure_distances,
    "heads.induction.find_induction": induction.find_induction,
    "heads.induction.longest_block": induction.longest_block,
    "heads.induction.measure_repetition": lambda m, t: induction.measure_repetition(
        m, t.separator, np.arange(4)[None], np.arange(4, 8)[None]
    ),
    "heads.inside.look_inside": lambda m, t: inside.look_inside(m, t, t.example, Head(SITE, 1), 5),
    "heads.measure.measure_heads": lambda m, t: measure.measure_heads(m, t, sequences=FEW),
    "heads.measure.measure_removal": lambda m, t: measure.measure_removal(m, t, sequences=FEW),
    "heads.measure.right_answers": lambda m, t: measure.right_answers(m, _batch(t)),
    "heads.one_token.glance": lambda m, t: one_token.glance(m, [1, 2, 3, 4, 5], 3),
    "heads.score_terms.split_scores": lambda m, t: score_terms.split_scores(m, _seen(m, t), SITE),
    "heads.score_terms.split_question": lambda m, t: score_terms.split_question(m, t, t.example, SITE),
    "heads.score_terms.measure_shares": lambda m, t: score_terms.measure_shares(m, t, sequences=FEW),
    "heads.side_by_side.look_at_all_heads": lambda m, t: side_by_side.look_at_all_heads(m, t, t.example, SITE, 3),
    "heads.side_by_side.output_weight": lambda m, t: side_by_side.output_weight(m, SITE),
    "heads.survey.survey": lambda m, t: survey.survey(m, t, sequences=FEW),
    "health.examine.examine": lambda m, t: [found.holds for _, found in examine.examine(m, t).findings],
    "interventions.effects.said_under": lambda m, t: effects.said_under(m, t, t.example, [REMOVED]),
    "interventions.effects.pattern_moved": lambda m, t: effects.pattern_moved(m, t, t.example, [REMOVED]),
    "interventions.effects.redundancy": lambda m, t: effects.redundancy(m, t, sequences=2),
    "interventions.effects.right_without": lambda m, t: effects.right_without(m, t, [], [0], sequences=FEW),
    "interventions.effects.one_token_changed": lambda m, t: effects.one_token_changed(m, t, t.example),
    "interventions.influence.poke": lambda m, t: influence.poke(m, t.encode([t.example]), [1, 2]),
    "interventions.influence.gradients": lambda m, t: influence.gradients(m, t.encode([t.example])),
    "interventions.patching.patching": lambda m, t: patching.patching(
        m, t, t.example, effects.one_token_changed(m, t, t.example)
    ),
    "machine.movement.moved": lambda m, t: movement.moved(
        plan.plan_model(m.config, plan.size_of(t, t.example)),
        m.state_dict(),
        {name: 2 * values for name, values in m.state_dict().items()},
    ),
    "machine.vectors.vectors": lambda m, t: vectors.vectors(
        m, t, t.example, plan.plan_model(m.config, plan.size_of(t, t.example)), 2
    ),
    "sample.say": lambda m, t: sampled.say(m, t, t.example),
    "sample.say_each": lambda m, t: sampled.say_each(m, t, np.stack([t.example] * 2)),
    "sample.sample": lambda m, t: sampled.sample(m, t, t.example),
    "sample.observe_batch": lambda m, t: _seen(m, t).sites,
    "stream.attribution.direct_logits": lambda m, t: attribution.direct_logits(m, _seen(m, t)),
    "stream.attribution.writes": lambda m, t: attribution.writes(m, t, t.example),
    "stream.dense_layers.compare_feeds": lambda m, t: dense_layers.compare_feeds(m, t, t.example),
    "stream.dense_layers.permuted": lambda m, t: dense_layers.permuted(m, t, t.example),
    "stream.depth.look_down": lambda m, t: depth.look_down(m, t, sequences=FEW),
    "stream.dropout.repeat_passes": lambda m, t: dropout.repeat_passes(m, t, t.example, rate=0.2),
    "stream.dropout.sublayer_output": lambda m, t: dropout.sublayer_output(m, t, t.example, 3),
    "stream.hidden_units.fire": lambda m, t: hidden_units.fire(m, t, t.example, "decoder.0", 3),
    "stream.hidden_units.count_firing": lambda m, t: hidden_units.count_firing(m, _batch(t), "decoder.0"),
    "stream.lens.logit_lens": lambda m, t: lens.logit_lens(m, _seen(m, t)),
    "stream.lens.lens": lambda m, t: lens.lens(m, t, t.example),
    "stream.lens.alternatives": lambda m, t: lens.alternatives(m, t, t.example),
    "stream.norms.most_changed": lambda m, t: norms.most_changed(m, t, t.example, [SITE]),
    "stream.norms.normalise": lambda m, t: norms.normalise(m, t, t.example, SITE, 3),
    "stream.unembedding.look_at_output": lambda m, t: unembedding.look_at_output(m, t, t.example, 9),
    "weights.inventory": lambda m, t: weights.inventory(m),
    "weights.movements": lambda m, t: weights.movements(m, m),
    "observe": lambda m, t: observe(m, torch.tensor([[1, 2, 3]])).sites,
    "generate": lambda m, t: list(generate(m, _tokens(t)[:4], 5, Sampling(temperature=1.0, top_k=5, top_p=0.9))),
}
"""What looks at a model of a task with a law, by its place below `transformer.analysis`, and two of the face."""
OF_TEXTS: dict[str, Callable[[Any, Any], Any]] = {
    "accuracy.surprise.surprise": lambda m, t: surprise.surprise(m, t, _passage(t)),
    "accuracy.surprise.growth": surprise.growth,
    "heads.measure.measure_kinds": lambda m, t: measure.measure_kinds(m, t, sequences=FEW),
}
"""What looks at a model of a text."""
NOT_RUN = {
    "heads.measure.heads_of",
    "heads.measure.removal_takes_long",
    "heads.measure.removal_work",
    "heads.score_terms.splittable",
    "heads.score_terms.told_by",
    "interventions.influence.together",
    "stream.dropout.with_dropout",
    "stream.sublayers.sublayer_of",
}
"""What reads a model's shape alone."""

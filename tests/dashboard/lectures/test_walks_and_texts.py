"""What lectures say of recurrent networks and of texts, beside the same numbers worked out independently."""

from __future__ import annotations

import json
import math
from urllib.parse import unquote

import numpy as np
import pytest
import torch

from dashboard.app_pages.learn.corners.settings import CornersSettings
from dashboard.lectures.values import ViewValues
from dashboard.models.walks import by_hand
from dashboard.view.link import View
from tests.kit.pages import ROOT
from transformer import checkpoints
from transformer.corners import every_walk
from transformer.recurrent.corners import build_walker, train_corners

PROMPT = unquote("OCTAVIUS%20CAESAR%20%20You%20praise%20yourself")
SMALL = View(corner_most=3, corner_width=3, corner_attention="dot")


@pytest.fixture(scope="module")
def shakespeare():
    folder = ROOT / "checkpoints/shakespeare"
    (weights,) = sorted((folder / "snapshots").glob("*.safetensors"))[-1:]
    return checkpoints.load(weights)[0]


@pytest.fixture(scope="module")
def reads() -> ViewValues:
    return ViewValues(View(run="shakespeare"))


def logits_of(network, tokens: list[int]) -> np.ndarray:
    with torch.no_grad():
        return network(torch.tensor([tokens]))[0].double().numpy()


# --- three models that reverse


def test_whole_answers_and_places_are_the_shipped_counts(reads: ViewValues) -> None:
    kept = json.loads((ROOT / "checkpoints/bottleneck.json").read_text())
    for kind, each in zip(("gru", "gru-attention", "transformer"), kept["contestants"], strict=True):
        assert reads["said_whole"](kind, 32) == each["exact"][-1] / kept["sequences"]
        assert reads["said_whole"](kind, 4) == each["exact"][0] / kept["sequences"]
        assert reads["said_right"](kind, 32, 5) == each["right"][-1][4] / kept["sequences"]
        enough = [2 * count >= kept["sequences"] for count in each["exact"]]
        assert reads["said_half"](kind) == 3 + (enough.index(False) if False in enough else len(enough))
    assert reads["said_sequences"] == kept["sequences"]
    with pytest.raises(ValueError, match="there is no “lstm” among the three"):
        reads["said_whole"]("lstm", 32)
    with pytest.raises(IndexError, match="there is no length 33"):
        reads["said_whole"]("gru", 33)


# --- corners


@pytest.fixture(scope="module")
def walked():
    """The training of the view, taken here, and its walk: lower left, clockwise, three corners given."""
    config = SMALL.of(CornersSettings).corner_config()
    shown, model = every_walk(config.most, config.noise), build_walker(config)
    *_, last = train_corners(model, every=config.steps, shown=shown)
    return model.eval(), shown, shown.which(0, 1, 3), last


def gru(layer: torch.nn.GRU, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step by its formula (Cho et al., 2014): the update gate and the next state."""
    w, b, u, c = (getattr(layer, name).detach().double().numpy() for name in
                  ("weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0"))  # fmt: skip
    (xr, xz, xn), (hr, hz, hn) = np.split(w @ x + b, 3), np.split(u @ h + c, 3)
    r, z = 1 / (1 + np.exp(-(xr + hr))), 1 / (1 + np.exp(-(xz + hz)))
    return z, (1 - z) * np.tanh(xn + r * hn) + z * h


@pytest.mark.nightly
def test_corners_are_those_of_a_training_taken_here(walked) -> None:
    model, shown, walk, last = walked
    values = ViewValues(SMALL)
    assert values["corner_error"] == pytest.approx(last.error)
    assert values["corner_helped_error"] == pytest.approx(last.helped_error)
    assert values["corner_noise"] == pytest.approx(0.1 * math.sqrt(2))
    said, true = last.said[walk], shown.target[walk]
    for target in (1, 2):
        assert values["corner_said"](target, 1) == pytest.approx(float(said[target - 1, 0]), abs=1e-5)
        missed = math.dist(said[target - 1], true[target - 1])
        assert values["corner_missed"](target) == pytest.approx(missed, abs=1e-5)
        weights = [values["corner_weight"](target, corner) for corner in (1, 2, 3)]
        assert weights == pytest.approx(last.pattern[walk, target - 1, :3].tolist(), abs=1e-5)
        assert sum(weights) == pytest.approx(1, abs=1e-5)
    layer = next(each for each in model.core.modules() if isinstance(each, torch.nn.GRU))
    state = np.zeros(3)
    for step, corner in enumerate(shown.source[walk], 1):
        gate, state = gru(layer, corner.astype(np.float64), state)
        assert values["corner_update"](step, 2) == pytest.approx(gate[1], abs=1e-5)
        assert values["corner_state"](step, 3) == pytest.approx(state[2], abs=1e-5)
    assert values["corner_handed"](3) == pytest.approx(state[2], abs=1e-5)


def test_what_a_walk_does_not_have_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="has no attention"):
        ViewValues(View(corner_most=3, corner_width=3))["corner_weight"](1, 1)
    with pytest.raises(ValueError, match="step 7 of this training was not recorded"):
        _ = ViewValues(View(corner_most=3, corner_width=3, corner_step=7))["corner_error"]


# --- by hand


def test_the_context_vector_is_worked_out_by_hand() -> None:
    values, look = ViewValues(View()), by_hand.looked("scaled-dot", 3, 1, 2, 0)
    scores = look.key.astype(np.float64) @ look.query / math.sqrt(2)
    shares = np.exp(scores) / np.exp(scores).sum()
    context = shares @ look.value
    for corner in (1, 2):
        assert values["hand_score"](corner) == pytest.approx(scores[corner - 1], abs=1e-5)
        assert values["hand_weight"](corner) == pytest.approx(shares[corner - 1], abs=1e-5)
        assert values["hand_context"](corner) == pytest.approx(context[corner - 1], abs=1e-5)
        assert values["hand_value"](corner, 1) == pytest.approx(float(look.value[corner - 1, 0]))
    assert values["hand_looks"] == int(shares.argmax()) + 1
    for scoring, seen in (("", context), ("uniform", look.value.mean(axis=0))):
        weight, bias = look.out
        said = weight @ np.concatenate([seen, look.state]) + bias
        assert values["hand_missed"](scoring) == pytest.approx(math.dist(said, look.true), abs=1e-5)
    with pytest.raises(ValueError, match="there are no scores “additive” here"):
        values["hand_missed"]("additive")


# --- texts


def test_what_is_read_costs_what_the_raw_logits_say(reads: ViewValues, shakespeare) -> None:
    task = reads.model.task
    whole = task.known.held_out[0][:512]
    raw = logits_of(shakespeare, [task.separator, *whole[:-1].tolist()])[352:]
    passage = whole[352:]
    shares = np.exp(raw - raw.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    given = shares[np.arange(160), passage]
    assert (reads["read_tokens"], reads["n_ctx"], reads["known"]) == (160, 512, len(task.known.vocabulary.tokens))
    for place in (1, 27, 153):
        assert reads["read_token"](place) == task.vocabulary[passage[place - 1]]
        assert reads["read_cost"](place) == pytest.approx(-math.log(given[place - 1]), abs=1e-3)
        assert reads["read_rank"](place) == 1 + int((shares[place - 1] > given[place - 1]).sum())
        assert reads["read_guess"](place, 1) == task.vocabulary[int(shares[place - 1].argmax())]
        assert reads["read_share"](place, 1) == pytest.approx(shares[place - 1].max(), abs=1e-4)
    assert reads["read_perplexity"] == pytest.approx(math.exp(-np.log(given).mean()), rel=1e-3)
    assert reads["read_first"] == int((shares.argmax(axis=1) == passage).sum())


def test_the_input_is_read_where_the_view_says_so(shakespeare) -> None:
    values = ViewValues(View(run="shakespeare", read_what="input"))
    task = values.model.task
    raw = logits_of(shakespeare, [task.separator, *task.example[:-1].tolist()])
    cost = np.log(np.exp(raw[7]).sum()) - raw[7][task.example[7]]
    assert values["read_cost"](8) == pytest.approx(cost, abs=1e-3)
    assert values["read_tokens"] == len(task.example)


def test_logits_become_shares_at_every_temperature(reads: ViewValues, shakespeare) -> None:
    task = reads.model.task
    raw = logits_of(shakespeare, [task.separator, *task.example[:-1].tolist()])[6]
    order = np.argsort(-raw, kind="stable")
    for rank in (1, 2, 1000):
        token = order[rank - 1]
        assert reads["said_token"](7, rank) == task.vocabulary[token]
        assert reads["logit"](7, rank) == pytest.approx(raw[token], abs=1e-3)
        for temperature in (0.5, 1, 2):
            share = 1 / np.exp((raw - raw[token]) / temperature).sum()
            assert reads["probability"](7, rank, temperature) == pytest.approx(share, rel=1e-2)


def test_models_that_count_are_those_that_were_measured(reads: ViewValues) -> None:
    kept = json.loads((ROOT / "checkpoints/shakespeare/evaluation.json").read_text())["baselines"]
    assert reads["counted"]("trigram") == kept["trigram"]
    with pytest.raises(ValueError, match="keeps no perplexity of a “bigram”"):
        reads["counted"]("bigram")
    with pytest.raises(ValueError, match="keeps no perplexity of a “tokens”"):
        reads["counted"]("tokens")  # a count, and no perplexity


def test_the_likeliest_text_is_said_token_by_token(shakespeare) -> None:
    values = ViewValues(View(run="shakespeare", prompt=PROMPT, temperature=0.0, written=6))
    task = values.model.task
    text, said, nats = task.begun(PROMPT), [], []
    for _ in range(6):
        raw = logits_of(shakespeare, text)[-1]
        raw[-1] = raw[list(task.unsayable)] = -np.inf  # the last is padding
        text.append(int(raw.argmax()))
        said.append(text[-1])
        everything = logits_of(shakespeare, text[:-1])[-1]
        nats.append(np.log(np.exp(everything).sum()) - everything[text[-1]])
    assert values["written_kinds"] == len(set(said))
    assert values["written_perplexity"] == pytest.approx(math.exp(np.mean(nats)), rel=1e-2)
    with pytest.raises(ValueError, match="the view names no prompt"):
        _ = ViewValues(View(run="shakespeare"))["written_kinds"]


def test_a_law_has_no_text_and_a_view_no_other_fields() -> None:
    values = ViewValues(View(run="reverse", query=9))
    assert values["setting"]("query") == 9
    assert values["setting"]("temperature") == 0.8
    with pytest.raises(ValueError, match="a view has no “nothing”"):
        values["setting"]("nothing")
    for name in ("read_cost", "said_token"):
        with pytest.raises(ValueError, match="reverse reads no text"):
            values[name](1, *([1] if name == "said_token" else []))

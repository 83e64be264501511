"""The fifth question: a model without positions against the ceiling of a bag of tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dashboard.app_pages.learn.questions import bag
from dashboard.models import background, no_positions
from dashboard.models.on_the_spot import quick_training
from tests.kit import claims
from tests.kit.claims.laws.recurrent import Bars, Orders
from tests.kit.pages import PI, SEP, array, figures, network, open_page, trace
from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.analysis.accuracy.by_position import EVALUATION_STREAM

STEPS = no_positions.STEPS
"""As many as readers get; most tests make do with few."""


def test_small_models_that_wait_say_so(busy, monkeypatch):
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", 0.1)
    for positions in no_positions.POSITIONS:
        quick_training._lesson.clear(no_positions.small(positions), background.TRAININGS, "")  # type: ignore[attr-defined]
    app = open_page("questions", run="reverse", asked="5")
    assert any("they wait for another training" in told.value for told in app.markdown)


def first_attention(run: str, tokens: list[int], positions: bool) -> np.ndarray:
    """What the first attention of a decoder writes at the last token, float64, from its weights with numpy."""
    model, config = network(run)
    w = {name: value.double().numpy() for name, value in model.state_dict().items()}
    x = w["embedding.weight"][tokens] * (8.0 if config.model.scale_embeddings else 1.0)  # √64
    x = x + (w["positions.table"][: len(tokens)] if positions else 0)
    x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    x = x * w["decoder.0.around_self.before.weight"] + w["decoder.0.around_self.before.bias"]
    q, k, v = (
        x @ w[f"decoder.0.self_attention.{name}.weight"].T + w[f"decoder.0.self_attention.{name}.bias"]
        for name in ("query", "key", "value")
    )
    heads = []
    for h in range(4):
        part = slice(16 * h, 16 * h + 16)
        scores = k[:, part] @ q[-1, part] / 4  # √16
        weights = np.exp(scores - scores.max())
        heads.append(weights / weights.sum() @ v[:, part])
    return w["decoder.0.self_attention.out.weight"] @ np.concatenate(heads) + w["decoder.0.self_attention.out.bias"]


@pytest.mark.daily(1)
@pytest.mark.parametrize("run", ["reverse", "reverse-aligned-causal"])
def test_two_orders_give_one_output_without_positions_and_two_with_them(run):
    app = open_page("questions", run=run, asked="5")
    tokens = [*PI, SEP] if run == "reverse" else PI
    orders = (tokens, [*tokens[-2::-1], tokens[-1]])
    (untold, other), (told, turned) = (
        [first_attention(run, order, positions) for order in orders] for positions in (False, True)
    )
    change = np.abs(turned - told)
    most = np.sort(np.argsort(-change)[:6])
    left = array(trace(app, "two-orders", "without positions: the same")["z"])
    right = array(trace(app, "two-orders", "with its learned positions: not the same")["z"])
    np.testing.assert_allclose(left, [untold[most], other[most]], atol=1e-5)
    np.testing.assert_allclose(right, [told[most], turned[most]], atol=1e-5)
    np.testing.assert_allclose(left[0], left[1], atol=1e-12)
    axes = figures(app)["two-orders"]["layout"]
    assert axes["xaxis"]["ticktext"] == [str(number + 1) for number in most]
    names = [" ".join("SEP" if token == SEP else str(token) for token in order) for order in orders]
    assert [label.strip() for label in axes["yaxis"]["ticktext"]] == names
    told_words = [each.value for each in app.markdown]
    assert any(f"gives the last token, '{names[0].split()[-1]}'" in words for words in told_words)
    assert any(
        words.startswith("Without positions all 64 numbers are the same, ")
        and words.endswith(f"With positions they differ by up to {change.max():.2f}.")
        for words in told_words
    )


def test_only_numbers_that_change_are_shown():
    """The compiled model writes two symbols of 40: the one that stood last, and the one that stood first."""
    app = open_page("questions", run="compiled", asked="5")
    assert array(trace(app, "two-orders", "with its learned positions: not the same")["z"]).shape == (2, 2)
    assert figures(app)["two-orders"]["layout"]["xaxis"]["title"]["text"] == "the 2 of 40 numbers that change most"
    assert any("all 40 numbers are the same, exactly: a sum has no order." in each.value for each in app.markdown)


def test_an_input_that_reads_the_same_both_ways_shows_nothing():
    app = open_page("questions", run="reverse", asked="5", input="3 1 3")
    assert set(figures(app)) == {"bag"}
    assert any("the same from back to front" in caption.value for caption in app.caption)


def test_a_long_order_is_written_by_its_ends():
    assert bag._written(("3", "1", "SEP")) == "3 1 SEP"
    assert bag._written(tuple("abcdefghijklmnop")) == "a … o p"


def test_what_is_trained_is_said_with_its_steps(monkeypatch):
    class Going:
        def __init__(self, steps, done=False, waiting=False):
            self.steps, self.done, self.waiting = [None] * steps, done, waiting

    said, most = bag._under_way, bag.no_positions.STEPS
    assert said({"learned": Going(7, done=True), "none": Going(30)}).endswith(
        f"now, without positions step 30, of at most {most}: the bars grow with it …"
    )
    assert said({"learned": Going(7), "none": Going(0, waiting=True)}).endswith(
        f"with learned positions step 7 and without positions step 0, of at most {most} each: the bars grow with it …"
    )
    assert said({"learned": Going(7, done=True), "none": Going(9, done=True)}) == ""


@pytest.mark.parametrize(
    ("mean", "low", "said"),
    [
        ([0.2, 0.3, 0.4], [0.1, 0.2, 0.3], ""),
        ([0.32, 0.3, 0.4], [0.29, 0.2, 0.3],
         "a stands 0.020 above its ceiling, by the luck of these sequences: its interval holds the ceiling."),
        ([0.32, 0.41, 0.4], [0.29, 0.39, 0.3],
         "a and b stand up to 0.020 above their ceilings, by the luck of these sequences: their intervals hold the "
         "ceilings."),
        ([0.32, 0.41, 0.4], [0.31, 0.39, 0.3],
         "a and b stand up to 0.020 above their ceilings, farther than their intervals reach."),
    ],
)  # fmt: skip
def test_bars_above_their_ceilings_are_explained_as_far_as_the_intervals_go(mean, low, said, heard):
    made_up = Bars(np.array(mean), np.array(low), np.array([0.3, 0.4, 0.5]))
    assert bag.lucky(["a", "b", "c"], made_up.mean, made_up.low, made_up.most) == said
    claims.judge(made_up, heard[0])


@pytest.mark.parametrize(
    ("numbers", "without", "own", "said"),
    [
        (64, 0.0, 0.5, "Without positions all 64 numbers are the same, exactly: a sum has no order. With positions "
                       "they differ by up to 0.50."),
        (64, 4.4e-16, 0.001, "Without positions all 64 numbers are the same, but for rounding (4.4 × 10⁻¹⁶): a sum "
                             "has no order. With positions they differ by less than 0.005."),
        (1, 0.0, 0.5, "Without positions its one number is the same, exactly: a sum has no order. With positions it "
                      "differs by up to 0.50."),
        (8, 0.25, 0.5, "Without positions they differ by up to 2.5 × 10⁻¹. With positions they differ by up to 0.50."),
    ],
)  # fmt: skip
def test_two_orders_are_said_to_give_the_same_where_they_do(numbers, without, own, said, heard):
    assert bag.order_sentence(numbers, without, own, told=True) == said
    assert said.startswith(bag.order_sentence(numbers, without, own, told=False))
    claims.judge(Orders(numbers, without, own), heard[0])


def test_logits_are_said_to_come_out_backwards_where_they_do(heard):
    assert "all logits come out backwards (exactly)." in bag.backwards("one", "which has no positions", 0.0)
    assert "(largest deviation 4.4 × 10⁻¹⁶)." in bag.backwards("one", "which has no positions", 4.4e-16)
    assert bag.backwards("one", "which has no positions", 0.25).endswith("its logits change by up to 2.5 × 10⁻¹.")
    claims.judge(0.25, heard[-1])


def test_the_last_symbol_is_the_one_that_stands_an_odd_number_of_times():
    """What the caption says of the last place, for every question drawn: so its ceiling is 1."""
    for x in np.random.default_rng(0).integers(0, 10, (200, 8)):
        read = np.concatenate([x, x[::-1][:-1]])
        assert [s for s in range(10) if (read == s).sum() % 2] == [x[0]]
    assert bag_ceiling(8, 10)[-1] == pytest.approx(1)


def test_with_positions_the_small_model_learns_it_within_its_steps(monkeypatch):
    monkeypatch.setattr(no_positions, "STEPS", STEPS)
    assert quick_training.trained(no_positions.small("learned")).solved


def test_the_bars_of_the_bag_are_the_ceiling_and_a_count():
    """The trained layers, asked here: the sequences that their accuracy is measured on, laid out by hand."""
    app = open_page("questions", run="reverse", asked="5")
    rng = np.random.default_rng([no_positions.small("none").training.seed + 1, EVALUATION_STREAM])
    x = torch.from_numpy(rng.integers(0, 10, (no_positions.SEQUENCES, 8)))
    tokens = torch.cat([x, torch.full((len(x), 1), 10), x.flip(1)[:, :-1]], dim=1)
    bars, most, shares = {each["name"]: each for each in figures(app)["bag"]["data"]}, bag_ceiling(8, 10), {}
    for positions, name in (("none", "without positions"), ("learned", "with learned positions")):
        model = quick_training.trained(no_positions.small(positions)).model
        with torch.no_grad():
            shares[positions] = (model(tokens).argmax(dim=-1)[:, 8:] == x.flip(1)).double().mean(dim=0).numpy()
        np.testing.assert_allclose(array(bars[name]["y"]), shares[positions], atol=1e-6)
        assert list(bars[f"numbers, {name}"]["text"]) == [f"{share:.2f}" for share in shares[positions]]
    np.testing.assert_allclose(array(bars["ceiling: best guess without order"]["y"])[::3], most, atol=1e-6)
    captions, right = [caption.value for caption in app.caption], shares["none"]
    assert captions[0] == (
        f"A bag is the tokens without their order. Its ceiling is what the best guess from it gets right: "
        f"{most.mean():.2f} on average; chance is 0.10. Right on average: {right.mean():.2f} without positions, "
        f"{shares['learned'].mean():.2f} with learned positions."
    )
    assert (right < most).all()
    assert not any("above" in caption for caption in captions)
    assert any(f"without positions this layer gets {right[-1]:.2f} right." in caption for caption in captions)
    assert app.title[0].value.endswith(f"at most {most.mean():.2f} of a reversal.")

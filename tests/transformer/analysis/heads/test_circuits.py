"""A head's circuits: against loops over the weights, and against what the model does when it runs."""

import math

import numpy as np
import pytest
import torch

from tests.kit.heads_by_hand import CROSS, SELF, divided_by, double, mapped, random_model
from transformer import compiled_reverser, observe
from transformer.analysis.findings import Head
from transformer.analysis.heads.circuits import circuits
from transformer.analysis.stream.attribution import direct_logits
from transformer.edits.heads.zero import AblateHead
from transformer.model import Transformer
from transformer.norms import NORMS


def on_the_way(x: np.ndarray, model: Transformer, names: list[str]) -> np.ndarray:
    """A vector past these norms, each by its weights alone; of a norm that does not stand there, unchanged."""
    for name in names:
        x = mapped(x, model.get_submodule(name))
    return x


STRAIGHT = {
    "decoder.1.self_attention": (
        [f"decoder.0.{norm}.after" for norm in ("around_self", "around_feed_forward")]
        + ["decoder.1.around_self.before"],
        None,
        ["decoder.1.around_self.after", "decoder.1.around_feed_forward.after", "final_norm"],
    ),
    "encoder.1.self_attention": (
        [f"encoder.0.{norm}.after" for norm in ("around_self", "around_feed_forward")]
        + ["encoder.1.around_self.before"],
        None,
        ["encoder.1.around_self.after", "encoder.1.around_feed_forward.after", "final_norm"],
    ),
    CROSS: (
        [f"decoder.0.around_{part}.after" for part in ("self", "cross", "feed_forward")]
        + ["decoder.1.around_self.after", "decoder.1.around_cross.before"],
        [f"encoder.{i}.around_{part}.after" for i in (0, 1) for part in ("self", "feed_forward")] + ["memory_norm"],
        ["decoder.1.around_cross.after", "decoder.1.around_feed_forward.after", "final_norm"],
    ),
    "encoder.0.self_attention": (["encoder.0.around_self.before"], None, []),
}
"""The norms from the embedding to what asks, to what is asked where that is another, and from there to the logits."""


def slices(model: Transformer, head: Head) -> dict[str, np.ndarray]:
    attention = model.get_submodule(head.site)
    rows = slice(head.index * attention.d_head, (head.index + 1) * attention.d_head)
    weights = {name: double(getattr(attention, name).weight)[rows] for name in ("query", "key", "value")}
    return weights | {"out": double(attention.out.weight)[:, rows]}


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("norm", ["pre", "post", "none"])
@pytest.mark.parametrize(
    ("task", "site"),
    [
        ("reverse", "decoder.1.self_attention"),
        ("reverse-aligned", "encoder.1.self_attention"),
        ("reverse-translate", CROSS),
        ("reverse-translate", "encoder.0.self_attention"),
    ],
)
def test_circuits_are_products_of_weights(task: str, site: str, norm: str, kind: str) -> None:
    model, config = random_model(task, norm=norm, norm_kind=kind)
    head = Head(site, 1)
    found, weight = circuits(model, head), slices(model, head)
    to_query, to_key, to_logits = STRAIGHT[site]
    to_key = to_key or to_query
    tokens = math.sqrt(8) * double(model.embedding.weight)[:-1]
    positions = double(model.positions.table)

    def fit(vectors: np.ndarray) -> list[list[float]]:
        asks = [weight["query"] @ on_the_way(v, model, to_query) for v in vectors]
        answers = [weight["key"] @ on_the_way(v, model, to_key) for v in vectors]
        return [[float(q @ k) / 2 for k in answers] for q in asks]  # √d_head = 2

    np.testing.assert_allclose(found.qk_tokens, fit(tokens), atol=1e-4)
    np.testing.assert_allclose(found.qk_positions, fit(positions), atol=1e-4)
    assert found.positions_from == "vectors"
    assert found.layer == int(site.split(".")[1])
    if task == "reverse-translate" and site != CROSS:
        assert found.ov_tokens is None
        return
    said = [weight["out"] @ weight["value"] @ on_the_way(token, model, to_key) for token in tokens]
    logits = [double(model.unembedding.weight)[:-1] @ on_the_way(each, model, to_logits) for each in said]
    np.testing.assert_allclose(found.ov_tokens, logits, atol=1e-4)
    assert len(found.qk_tokens) == config.task.symbols + 1


def bare(**model: object) -> Transformer:
    """One layer of attention and nothing else, no biases: its circuits are all that it does."""
    network, _ = random_model("reverse", **{"n_layers": 1, "d_ff": 0, "norm": "none", **model})
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.endswith("bias"):
                weight.zero_()
    return network


TOKENS = torch.tensor([[3, 1, 4, 10, 4, 1]])


@pytest.mark.parametrize(("positions", "come"), [("none", "nowhere"), ("alibi", "bias"), ("rotary", "rotation")])
def test_the_scores_of_a_pass_are_the_circuit(positions: str, come: str) -> None:
    """And the bias of ALiBi; rotary's hold where a query looks at its own place."""
    model = bare(positions=positions)
    seen = observe(model, TOKENS)
    for head in (0, 1):
        circuit, scores = circuits(model, Head(SELF, head)), seen[f"{SELF}.scores"][0, head].numpy()
        expected = circuit.qk_tokens[np.ix_(TOKENS[0], TOKENS[0])]
        if positions == "alibi":
            assert circuit.qk_positions[0, 5] == pytest.approx(-5 * 2 ** (-4 * (head + 1)))
            expected = expected + circuit.qk_positions[:6, :6]
        else:
            assert circuit.qk_positions is None
        if positions == "rotary":
            scores, expected = np.diagonal(scores), np.diagonal(expected)
        np.testing.assert_allclose(scores, expected, atol=1e-4)
        assert circuit.positions_from == come


def test_silencing_a_head_takes_away_what_its_ov_circuit_says() -> None:
    model = bare(positions="none")
    whole, without = observe(model, TOKENS), observe(model, TOKENS, (AblateHead(f"{SELF}.z", 1),))
    expected = whole[f"{SELF}.pattern"][0, 1].numpy() @ circuits(model, Head(SELF, 1)).ov_tokens[TOKENS[0]]
    np.testing.assert_allclose((whole.logits - without.logits)[0, :, :-1].numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("kind", NORMS.names())
def test_behind_a_norm_a_head_adds_what_its_circuit_says_over_what_the_norm_divides_by(kind: str) -> None:
    """Post-norm: the sum of a pass, taken by hand, says by how much each place was divided."""
    model = bare(positions="none", norm="post", norm_kind=kind)
    seen = observe(model, TOKENS)
    total = double(seen[f"{SELF.rpartition('.')[0]}.resid_pre"] + seen[f"{SELF}.out"])[0]
    divisor = divided_by(total, model.get_submodule("decoder.0.around_self.after"))
    for head in (0, 1):
        added = double(direct_logits(model, seen)[f"{SELF}.{head}"])[0, :, :-1] * divisor
        says = circuits(model, Head(SELF, head)).ov_tokens[TOKENS[0]]
        np.testing.assert_allclose(added, double(seen[f"{SELF}.pattern"])[0, head] @ says, atol=1e-4)


def test_across_there_is_no_bias_and_no_turning() -> None:
    for positions in ("alibi", "rotary", "none"):
        model, _ = random_model("reverse-translate", positions=positions)
        found = circuits(model, Head(CROSS, 0))
        assert (found.qk_positions, found.positions_from) == (None, "nowhere")


def test_the_compiled_head_looks_at_the_mirror_image_and_copies() -> None:
    found = circuits(compiled_reverser(4), Head(SELF, 0))
    expected = np.zeros((8, 8))
    expected[4:, :4] = 200 * np.eye(4)[::-1]
    np.testing.assert_allclose(found.qk_positions, expected, rtol=1e-5)
    assert not found.qk_tokens.any()
    np.testing.assert_array_equal(found.ov_tokens, np.eye(11))


def test_a_head_that_is_not_there_is_an_error() -> None:
    with pytest.raises(IndexError):
        circuits(compiled_reverser(4), Head(SELF, 1))
    with pytest.raises(AttributeError):
        circuits(compiled_reverser(4), Head("decoder.7.self_attention", 0))

"""What is inside a block: heads side by side, norms and hidden units, against raw weights in double precision."""

import numpy as np
import pytest
import torch

from tests.kit.heads_by_hand import QUESTION, double, normed, random_model
from tests.kit.numbers.rounding import near
from transformer import observe
from transformer.analysis.heads.side_by_side import look_at_all_heads
from transformer.analysis.stream.hidden_units import count_firing, fire
from transformer.analysis.stream.norms import normalise
from transformer.analysis.stream.sublayers import sublayer_of
from transformer.config import ConfigError

MODELS = {
    "pre": ("reverse", {}, "decoder.1"),
    "post, rotary": ("reverse", {"norm": "post", "positions": "rotary", "d_model": 8}, "decoder.1"),
    "no norm": ("reverse", {"norm": "none"}, "decoder.0"),
    "post, no residual": ("reverse", {"norm": "post", "residual": False}, "decoder.0"),
    "encoder": ("reverse-aligned", {}, "encoder.1"),
    "encoder of two": ("reverse-translate", {}, "encoder.0"),
    "decoder of two": ("reverse-translate", {"norm": "post"}, "decoder.1"),
    "decoder of two, pre": ("reverse-translate", {}, "decoder.1"),
    "pre, RMSNorm": ("reverse", {"norm_kind": "rms"}, "decoder.1"),
    "decoder of two, post, RMSNorm": ("reverse-translate", {"norm": "post", "norm_kind": "rms"}, "decoder.1"),
}
EACH = pytest.mark.parametrize("name", MODELS)


def passed(name):
    """Model, task, block, and every site of a pass over the question and its answer."""
    task_name, settings, block = MODELS[name]
    model, config = random_model(task_name, **settings)
    task = config.build_task()
    batch = task.encode([QUESTION])
    source = None if batch.source is None else torch.from_numpy(batch.source)
    return model, task, block, observe(model, torch.from_numpy(batch.tokens), source=source)


def sublayers(model, block):
    """The attentions of a block, each with what stands around it and what the stream is before it."""
    kinds = {"self_attention": ("around_self", "resid_pre"), "cross_attention": ("around_cross", "resid_mid")}
    if not model.get_submodule(block).cross:
        del kinds["cross_attention"]
    return {kind: (getattr(model.get_submodule(block), around), before) for kind, (around, before) in kinds.items()}


@EACH
def test_the_heads_are_those_of_the_weights_and_their_sum_is_the_output(name):
    model, task, block, seen = passed(name)
    for kind, (around, before) in sublayers(model, block).items():
        site, module = f"{block}.{kind}", model.get_submodule(f"{block}.{kind}")
        for place in (0, 3):
            found = look_at_all_heads(model, task, QUESTION, site, place)
            read = normed(double(seen[f"{block}.{before}"])[0, place], around.before)
            np.testing.assert_allclose(found.read, read, atol=1e-5)
            query = double(module.query.weight) @ read + double(module.query.bias)
            np.testing.assert_allclose(found.query.ravel(), query, atol=1e-4)
            pattern, value = double(seen[f"{site}.pattern"])[0, :, place], double(seen[f"{site}.value"])[0]
            for head in range(2):
                z = sum(share * vector for share, vector in zip(pattern[head], value[head], strict=True))
                np.testing.assert_allclose(found.z[head], z, atol=1e-5)
                written = double(module.out.weight)[:, 4 * head : 4 * head + 4] @ z
                np.testing.assert_allclose(found.written[head], written, atol=1e-5)
            np.testing.assert_array_equal(found.pattern, pattern.astype(np.float32))
            np.testing.assert_array_equal(found.out, seen[f"{site}.out"][0, place].numpy())
            assert found.deviation < 1e-5
            lengths = np.linalg.norm(found.written.astype(float), axis=1)
            np.testing.assert_allclose(found.shares, lengths / lengths.sum())
            assert (len(found.queries), len(found.keys)) == seen[f"{site}.pattern"].shape[2:]


def test_a_place_beyond_the_end_and_a_sublayer_that_is_not_there_are_errors():
    model, task, block, _ = passed("pre")
    with pytest.raises(IndexError, match="no token at 99"):
        look_at_all_heads(model, task, QUESTION, f"{block}.self_attention", 99)
    with pytest.raises(KeyError, match=r"no sub-layer 'decoder\.1\.cross_attention'"):
        sublayer_of(model, f"{block}.cross_attention")


def test_heads_that_write_nothing_have_equal_shares():
    model, task, block, _ = passed("pre")
    with torch.no_grad():
        model.get_submodule(f"{block}.self_attention.out").weight.zero_()
    found = look_at_all_heads(model, task, QUESTION, f"{block}.self_attention", 2)
    assert found.shares.tolist() == [0.5, 0.5]
    assert found.out == near(found.bias)


@EACH
def test_a_norm_is_its_formula(name):
    model, task, block, seen = passed(name)
    around = {kind: each for kind, (each, _) in sublayers(model, block).items()}
    around["feed_forward"] = model.get_submodule(block).around_feed_forward
    places = ["pre", "mid", *(["cross"] if "cross_attention" in around else []), "post"]
    for kind, before, behind in zip(around, places, places[1:], strict=False):
        path = f"{block}.{kind}"
        if model.config.norm == "none":
            with pytest.raises(ConfigError, match="this model has no norms"):
                normalise(model, task, QUESTION, path, 1)
            continue
        found = normalise(model, task, QUESTION, path, 1)
        stream, norm = double(seen[f"{block}.resid_{before}"])[0, 1], around[kind].before
        if model.config.norm == "post":
            stream, norm = stream * model.config.residual + double(seen[f"{path}.out"])[0, 1], around[kind].after
            np.testing.assert_array_equal(found.after, seen[f"{block}.resid_{behind}"][0, 1].numpy())
        np.testing.assert_allclose(found.before, stream, atol=1e-5)
        assert found.mean == pytest.approx(sum(stream) / len(stream), abs=1e-5)
        rms = model.config.norm_kind == "rms"
        centred = stream if rms else stream - stream.mean()
        assert found.size == pytest.approx(np.sqrt((centred**2).mean()), abs=1e-5)
        np.testing.assert_allclose(found.centred, centred, atol=1e-5)
        np.testing.assert_allclose(found.standard * found.divisor, centred, atol=1e-5)
        assert (found.shift is None) == rms
        shift = 0 if rms else found.shift
        np.testing.assert_allclose(found.gain * found.standard + shift, found.after, atol=1e-4)
        np.testing.assert_allclose(found.after, normed(stream, norm), atol=1e-4)


@EACH
def test_hidden_units_are_those_of_the_weights(name):
    model, task, block, seen = passed(name)
    module = model.get_submodule(block)
    layer, reads = module.feed_forward, f"{block}.resid_{'cross' if module.cross else 'mid'}"
    x = normed(double(seen[reads])[0, 2], module.around_feed_forward.before)
    hidden = np.maximum(double(layer.up.weight) @ x + double(layer.up.bias), 0)
    found, columns = fire(model, task, QUESTION, block, 2), double(layer.down.weight)
    np.testing.assert_allclose(found.hidden, hidden, atol=1e-4)
    np.testing.assert_allclose(found.lengths, np.linalg.norm(columns * hidden, axis=0), atol=1e-4)
    np.testing.assert_allclose(found.out, columns @ hidden + double(layer.down.bias), atol=1e-4)
    assert found.firing == (hidden > 0).sum()


@pytest.mark.parametrize("name", ["pre", "encoder of two", "decoder of two"])
def test_firing_is_counted_over_all_positions_but_padding(name, monkeypatch):
    monkeypatch.setattr("transformer.analysis.batches.HELD", 20_000)  # in several parts
    model, task, block, _ = passed(name)
    questions = [np.array(each) for each in ([3, 1, 4], [1, 5, 9, 2, 6], [5])]
    found = count_firing(model, task.encode(questions), block)
    places = [(each, i) for each in questions for i in range(len(each) * (2 if name == "pre" else 1))]
    counts = sum((fire(model, task, each, block, i).hidden > 0).astype(int) for each, i in places)
    np.testing.assert_array_equal(found.counts, counts)
    assert (found.positions, found.sequences, found.never) == (len(places), 3, (counts == 0).sum())
    np.testing.assert_allclose(found.shares, counts / len(places))


def test_a_unit_that_cannot_fire_never_does_and_a_model_without_units_says_so():
    model, task, block, _ = passed("pre")
    with torch.no_grad():
        model.get_submodule(f"{block}.feed_forward.up").bias[5] = -1e6
    found = count_firing(model, task.encode([QUESTION]), block)
    assert found.counts[5] == 0
    assert found.never >= 1
    model, _ = random_model("reverse", d_ff=0)
    with pytest.raises(ConfigError, match="this model has no feed-forward layers"):
        fire(model, task, QUESTION, "decoder.0", 0)
    with pytest.raises(ConfigError, match="this model has no feed-forward layers"):
        count_firing(model, task.encode([QUESTION]), "decoder.0")

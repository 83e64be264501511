"""One query of one head, opened up: against attention written anew with numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from dashboard.anatomy import MOST_KEYS, Anatomy
from dashboard.narration import STAGES, headline, sentence
from dashboard.step_tables import step_table
from transformer import observe
from transformer.analysis.findings import Head
from transformer.analysis.inside import Inside, look_inside
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.edits import OverrideMask
from transformer.model import Transformer, build

SEP = 10
SELF, CROSS = "decoder.0.self_attention", "decoder.1.cross_attention"
QUESTION = np.array([3, 1, 4, 1, 5])
MODELS = {
    "decoder, learned": ("reverse", {}, "decoder.1.self_attention"),
    "decoder, rotary, post-norm": ("reverse", {"positions": "rotary", "norm": "post"}, "decoder.1.self_attention"),
    "decoder, alibi, no norm, no feed-forward": ("sort", {"positions": "alibi", "norm": "none", "d_ff": 0}, SELF),
    "decoder, no positions, a window": ("copy", {"positions": "none", "mask": "sliding-window:1"}, SELF),
    "encoder, sinusoidal": ("reverse-aligned", {"positions": "sinusoidal"}, "encoder.0.self_attention"),
    "across, learned": ("reverse-translate", {}, CROSS),
    "across, alibi, post-norm": ("reverse-translate", {"positions": "alibi", "norm": "post"}, CROSS),
    "across, rotary": ("reverse-translate", {"positions": "rotary"}, CROSS),
    "encoder of two, alibi": ("reverse-translate", {"positions": "alibi"}, "encoder.1.self_attention"),
}


def random_model(task: str, length: int = 6, **model: Any) -> tuple[Transformer, RunConfig]:
    """A model whose biases and gains are random too, so that nothing is right because it is zero."""
    sizes = {"n_layers": 2, "n_heads": 2, "d_model": 8, "d_ff": 12, **model}
    config = RunConfig(task=TaskConfig(task=task, length=length), model=ModelConfig(**sizes))
    network = build(config).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.4 * torch.randn_like(weight))
    return network, config


def read_by_hand(task: str, question: list[int], said: list[int]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Tokens and source as the model reads them, `said` in place of the right answer."""
    if task == "reverse-aligned":
        return torch.tensor([question]), None
    if task == "reverse-translate":
        return torch.tensor([[SEP, *said[:-1]]]), torch.tensor([question])
    return torch.tensor([[*question, SEP, *said[:-1]]]), None


def normed(x: np.ndarray, norm: torch.nn.Module) -> np.ndarray:
    """LayerNorm, each vector by itself (Ba et al., 2016)."""
    if not isinstance(norm, torch.nn.LayerNorm):
        return x
    centred = x - x.mean(axis=-1, keepdims=True)
    shrunk = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return shrunk * double(norm.weight) + double(norm.bias)


def double(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def by_hand(model: Transformer, tokens: torch.Tensor, source: torch.Tensor | None, head: Head, place: int) -> dict:
    """Attention of one query in double precision, from the residual streams of a pass: loops and complex numbers."""
    seen = observe(model, tokens, source=source)
    site, layer = head.site, head.site.rpartition(".")[0]
    across = site.endswith("cross_attention")
    block, attention = model.get_submodule(layer), model.get_submodule(site)
    around = block.around_cross if across else block.around_self
    before = double(seen[f"{layer}.{'resid_mid' if across else 'resid_pre'}"])[0]
    asking = normed(before, around.before)
    asked = double(seen["encoder.memory"])[0] if across else asking
    width = attention.d_head
    rows = slice(head.index * width, (head.index + 1) * width)

    def project(layer: torch.nn.Linear, x: np.ndarray) -> np.ndarray:
        return np.array([double(layer.weight)[rows] @ one + double(layer.bias)[rows] for one in x])

    def turn(x: np.ndarray) -> np.ndarray:
        """Rotary: each pair of numbers is a complex one, turned by position × 10000^(-2i/d)."""
        if model.config.positions != "rotary" or across:
            return x
        pairs = x[:, 0::2] + 1j * x[:, 1::2]
        angles = np.outer(np.arange(len(x)), 10_000.0 ** (-2 * np.arange(width // 2) / width))
        turned = pairs * np.exp(1j * angles)
        return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)

    queries, key, value = (
        turn(project(attention.query, asking)),
        turn(project(attention.key, asked)),
        project(attention.value, asked),
    )
    dots = np.array([sum(q * k for q, k in zip(queries[place], each, strict=True)) for each in key])
    bias = np.zeros(len(key))
    if model.config.positions == "alibi" and not across:
        bias = -(2.0 ** (-8 * (head.index + 1) / model.config.n_heads)) * np.abs(np.arange(len(key)) - place)
    may_see = np.ones(len(key), dtype=bool)
    if not across and not site.startswith("encoder"):
        offset = np.arange(len(key)) - place
        may_see = np.abs(offset) <= 1 if model.config.mask == "sliding-window:1" else offset <= 0
    scores = dots / math.sqrt(width) + bias
    exponentials = np.array([math.exp(s - scores[may_see].max()) if m else 0.0 for s, m in zip(scores, may_see)])  # noqa: B905
    pattern = exponentials / exponentials.sum()
    z = sum(p * v for p, v in zip(pattern, value, strict=True))
    written = double(attention.out.weight)[:, rows] @ z
    out = double(seen[f"{site}.out"])[0, place]
    return {
        "every_query": queries,
        "query": queries[place],
        "key": key,
        "dots": dots,
        "scaled": dots / math.sqrt(width),
        "scores": scores,
        "visible": may_see,
        "largest": scores[may_see].max(),
        "exponentials": exponentials,
        "total": exponentials.sum(),
        "pattern": pattern,
        "value": value,
        "weighted": np.outer(pattern, np.ones(width)) * value,
        "z": z,
        "output_weight": double(attention.out.weight)[:, rows].T,
        "written": written,
        "output_bias": double(attention.out.bias),
        "others": out - written - double(attention.out.bias),
        "before": before[place],
        "after": before[place] + out,
    }


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("place", [0, -1])
def test_every_step_is_what_is_computed_by_hand(name: str, place: int) -> None:
    task, changes, site = MODELS[name]
    model, config = random_model(task, **changes)
    said = [2, 7, 1, 8, 2]
    tokens, source = read_by_hand(task, QUESTION.tolist(), said)
    n = (source if source is not None and site.startswith("encoder") else tokens).shape[1]
    for index in (0, 1):
        head = Head(site, index)
        found = look_inside(model, config.build_task(), QUESTION, head, place % n, said=np.array(said))
        for field, expected in by_hand(model, tokens, source, head, place % n).items():
            np.testing.assert_allclose(getattr(found, field), expected, atol=2e-5, err_msg=f"{field}, head {index}")
        assert found.rotated == ("rotary" in name and site != CROSS)
        assert (found.bias is not None) == ("alibi" in name and site != CROSS)
        assert found.normed == ("post-norm" in name)
        assert found.strongest == int(found.pattern.argmax())


@pytest.mark.parametrize("name", MODELS)
def test_what_a_pass_records_is_shown_to_the_last_bit(name: str) -> None:
    task, changes, site = MODELS[name]
    model, config = random_model(task, **changes)
    tokens, source = read_by_hand(task, QUESTION.tolist(), config.build_task().answer(QUESTION).tolist())
    seen = observe(model, tokens, source=source)
    found = look_inside(model, config.build_task(), QUESTION, Head(site, 1), 2)
    for field in ("query", "z", "scores", "pattern"):
        assert np.array_equal(getattr(found, field), seen[f"{site}.{field}"][0, 1, 2].numpy()), field
    for field in ("key", "value"):
        assert np.array_equal(getattr(found, field), seen[f"{site}.{field}"][0, 1].numpy()), field
    assert np.array_equal(found.out, seen[f"{site}.out"][0, 2].numpy())
    added = found.scaled if found.bias is None else found.scaled + found.bias
    assert np.array_equal(added, found.scores)
    layer = site.rpartition(".")[0]
    after = seen[f"{layer}.{'resid_cross' if site == CROSS else 'resid_mid'}"][0, 2].numpy()
    norm = model.get_submodule(layer).get_submodule("around_cross" if site == CROSS else "around_self").after
    np.testing.assert_allclose(normed(found.after.astype(float), norm), after, atol=1e-5)
    np.testing.assert_allclose(found.written + found.others + found.output_bias, found.out, atol=1e-5)
    vocabulary = config.build_task().vocabulary
    assert found.keys == tuple(
        vocabulary[t] for t in (source if source is not None and ("cross" in site or "enc" in site) else tokens)[0]
    )


def test_a_query_that_may_see_nothing_writes_nothing_and_says_so() -> None:
    model, config = random_model("reverse")
    nothing = OverrideMask.of(np.zeros((10, 10), dtype=bool))
    found = look_inside(model, config.build_task(), QUESTION, Head(SELF, 0), 5, edits=(nothing,))
    assert found.strongest is None
    assert math.isnan(found.largest)
    assert found.total == 0
    for field in ("exponentials", "pattern", "weighted", "z", "written"):
        assert not getattr(found, field).any()
    assert headline(found) == "Query 'SEP' at 6 may see nothing: it attends to nothing, and its head writes nothing."
    anatomy = Anatomy(found)
    for stage in anatomy.stages:
        assert "nan" not in sentence(found, stage)
        assert "nan" not in str([block.texts for block in step_table(anatomy, stage).blocks])
    for stage in ("mask", "exp", "sum", "divide", "weigh", "project"):
        assert sentence(found, stage) == STAGES[stage].blind
    assert len(anatomy.thumbs()) == len(anatomy.stages) == 12


def test_a_head_or_query_that_is_not_there_is_an_error() -> None:
    model, config = random_model("reverse")
    task = config.build_task()
    with pytest.raises(KeyError, match="no head 2"):
        look_inside(model, task, QUESTION, Head(SELF, 2), 0)
    with pytest.raises(KeyError, match="no site"):
        look_inside(model, task, QUESTION, Head("decoder.7.self_attention", 0), 0)
    with pytest.raises(IndexError, match="no query at 10"):
        look_inside(model, task, QUESTION, Head(SELF, 0), 10)


# --- what is left out


def inside_of(head: Head, n_keys: int = 3, d_head: int = 2) -> Inside:
    """Some numbers, for what depends on names and sizes only."""
    rng = np.random.default_rng(0)
    row, pattern = rng.normal(size=n_keys), rng.dirichlet(np.ones(n_keys))
    key, value, wide = rng.normal(size=(n_keys, d_head)), rng.normal(size=(n_keys, d_head)), rng.normal(size=8)
    return Inside(
        head, 0, ("<b>",) * n_keys, ("<i>&",) * n_keys, False, False, every_query=key, query=key[0], key=key, dots=row,
        scaled=row, bias=None, scores=row, visible=np.ones(n_keys, bool), largest=row.max(),
        exponentials=np.exp(row - row.max()), total=1.0, pattern=pattern, value=value,
        weighted=pattern[:, None] * value, z=value[0],
        output_weight=rng.normal(size=(d_head, 8)), written=wide, others=wide, output_bias=wide, out=wide, before=wide,
        after=wide,
    )  # fmt: skip


def test_of_many_keys_and_dimensions_the_heaviest_are_shown_and_the_rest_add_up() -> None:
    found = inside_of(Head(SELF, 0), n_keys=512, d_head=40)
    anatomy = Anatomy(found)
    most = sorted(np.argsort(-found.pattern)[: MOST_KEYS - 1].tolist())
    assert anatomy.keys.tolist() == most
    table = step_table(anatomy, "divide")
    assert [label.place for label in table.labels] == [*(key + 1 for key in most), None, None]
    assert table.labels[-2].text == "496 others"
    rest = 1 - found.pattern[most].sum()
    shares = [float(row[0]) for row in table.blocks[-1].texts]
    assert shares[-2] == pytest.approx(rest, abs=5e-5)
    assert sum(shares[:-1]) == pytest.approx(1, abs=1e-3)
    assert f"the others share {rest:.4f}" in table.note
    dot = step_table(anatomy, "dot")
    for row, key in enumerate(most, start=1):
        cells = [
            float(block.texts[row][i].replace("−", "-")) for block in dot.blocks[:2] for i in range(len(block.headings))
        ]
        assert sum(cells) == pytest.approx(float(found.query @ found.key[key]), abs=0.09)
    assert "16 dimensions" in dot.note
    weighed = np.array(
        [[float(t.replace("−", "-")) for t in row] for row in step_table(anatomy, "weigh").blocks[1].texts]
    )
    np.testing.assert_allclose(weighed[:-1].sum(axis=0), (found.pattern @ found.value)[anatomy.giving], atol=0.1)
    projected = np.array(
        [[float(t.replace("−", "-")) for t in row] for row in step_table(anatomy, "project").blocks[1].texts]
    )
    np.testing.assert_allclose(projected[:-1].sum(axis=0), (found.z @ found.output_weight)[anatomy.writing], atol=0.1)

"""Norms: each against its paper's formula and PyTorch's module, and all of them against one contract."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.kit import strangers
from tests.kit.heads_by_hand import mapped, normed, random_model
from transformer.config import ConfigError, ModelConfig, RunConfig
from transformer.foundation.registry import PlugInError
from transformer.model import build
from transformer.normalisation import NoNorm, Normalisation
from transformer.norms import NORMS

D_MODEL = 8
EVERY = (*NORMS.names(), *strangers.NORMS)
ALL = pytest.mark.parametrize("name", EVERY)
THEIRS = {
    "layer": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-5),
    "rms": lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5),
    "one-gain": lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5),
    "no-gain": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-5),
    "shift-only": lambda x: torch.nn.functional.normalize(x, math.inf, dim=-1),
    "mean-absolute": lambda x: torch.nn.functional.normalize(x, 1, dim=-1) * x.shape[-1],
    "euclidean": lambda x: torch.nn.functional.normalize(x, 2, dim=-1),
}
"""PyTorch's own, before gain and shift."""
SHIPPED = {"layer": torch.nn.LayerNorm, "rms": torch.nn.RMSNorm}
"""PyTorch's modules with as many weights."""
RUNS = Path(__file__).parents[3] / "checkpoints"


@pytest.fixture(autouse=True)
def _strangers(monkeypatch):
    """The norms of strangers keep the contract of those that are shipped."""
    strangers.lend(monkeypatch, NORMS, *strangers.NORMS)


def made(name: str) -> Normalisation:
    """A norm of double precision whose gain and shift are random."""
    norm, generator = Normalisation(NORMS[name](), D_MODEL).double(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in norm.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator, dtype=torch.double))
    return norm


def vectors(seed: int) -> torch.Tensor:
    return 3 + 2 * torch.randn(4, 5, D_MODEL, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


# --- the contract


@ALL
def test_says_what_it_is(name):
    kind = NORMS[name]
    for words in (kind.title, kind.sign, kind.description, kind.size_name, kind.size_short, kind.size_sign):
        assert words
        assert not words.endswith(".")
    for formula in (kind.formula, kind.size_formula):
        assert formula.count("{") == formula.count("}")


@ALL
@torch.no_grad()
def test_it_is_its_linear_part_at_what_it_reads_plus_its_shift(name):
    norm, x = made(name), vectors(0)
    torch.testing.assert_close(norm(x), norm.linear(x, x) + norm.shift, rtol=0, atol=1e-12)
    assert (norm.bias is not None) == NORMS[name].shifts
    assert sum(weight.numel() for weight in norm.parameters()) == NORMS[name]().parameters(D_MODEL)
    torch.testing.assert_close(norm.linear(x, x), norm.centre_and_scale(x) / norm.divisor(x), rtol=0, atol=1e-12)


@ALL
@torch.no_grad()
def test_its_linear_part_is_linear_and_each_vector_is_taken_by_itself(name):
    norm, x, y, at = made(name), *(vectors(seed) for seed in range(3))
    both = norm.linear(2 * x - 3 * y, at)
    torch.testing.assert_close(both, 2 * norm.linear(x, at) - 3 * norm.linear(y, at), rtol=0, atol=1e-12)
    torch.testing.assert_close(norm(x)[1, 2], norm(x[1, 2]), rtol=0, atol=1e-12)
    assert norm.divisor(at).shape == (4, 5, 1)


@ALL
@torch.no_grad()
def test_what_comes_in_16_bits_is_normalised_too(name):
    """As autocast has it: weights stay as they are, and what a product has made is smaller. No warning."""
    norm, x = made(name).float(), vectors(0).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        found = norm(x)
    torch.testing.assert_close(found.float(), norm(x.float()), rtol=0.01, atol=0.02)


@ALL
@torch.no_grad()
def test_a_vector_of_zeros_stays_finite(name):
    assert made(name)(torch.zeros(D_MODEL, dtype=torch.double)).isfinite().all()


@ALL
@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "reverse-translate"])
def test_a_model_with_it_runs_learns_and_is_restored(name, place, task):
    model, config = random_model(task, norm=place, norm_kind=name)
    tokens = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
    source = tokens.flip(1) if task == "reverse-translate" else None
    model(tokens, source).square().sum().backward()
    for weight_name, weight in model.named_parameters():
        assert weight.grad is not None, weight_name
        assert weight.grad.isfinite().all(), weight_name
    other = build(config).eval()
    assert not torch.equal(other(tokens, source), model(tokens, source))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(tokens, source), model(tokens, source))


@torch.no_grad()
def test_no_norm_leaves_every_vector_as_it_is_and_adds_nothing():
    norm, x = NoNorm(), vectors(0)
    assert norm(x) is norm.centre_and_scale(x) is norm.linear(x, x) is x
    assert (norm.shift, norm.divisor(x).unique().tolist(), [*norm.parameters()]) == (0.0, [1.0], [])


# --- each


def test_each_is_compared_with_another_s():
    assert set(THEIRS) == set(EVERY)


@ALL
@torch.no_grad()
def test_it_is_pytorch_s_formula_with_its_gain_and_its_shift(name):
    norm, x = made(name), vectors(0)
    gain, shift = 1 if norm.weight is None else norm.weight, 0 if norm.bias is None else norm.bias
    torch.testing.assert_close(norm(x), THEIRS[name](x) * gain + shift, rtol=0, atol=1e-5)
    np.testing.assert_allclose(norm.centre_and_scale(x), mapped(x.numpy(), norm), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SHIPPED)
@torch.no_grad()
def test_a_shipped_one_is_its_formula_and_pytorch_s_module(name):
    norm, x = made(name), vectors(0)
    theirs = SHIPPED[name](D_MODEL, eps=1e-5).double()
    theirs.load_state_dict(norm.state_dict())
    torch.testing.assert_close(norm(x), theirs(x), rtol=0, atol=1e-12)
    np.testing.assert_allclose(norm(x), normed(x.numpy(), norm), rtol=0, atol=1e-12)


# --- what cannot be


class LeavesOutItsGain(NORMS["rms"]):
    def forward(self, x, gain, shift, epsilon):
        return super().forward(x, torch.ones_like(gain), shift, epsilon)


class LeavesOutEpsilon(NORMS["rms"]):
    def forward(self, x, gain, shift, epsilon):
        return super().forward(x, gain, shift, 0)


class OverAllTokens(NORMS["rms"]):
    """Its size is that of all vectors that it is given."""

    def size(self, x):
        return x.square().mean().sqrt().expand(x.shape[:-1])[..., None]

    def forward(self, x, gain, shift, epsilon):
        return gain * self.centred(x) / (self.size(x).square() + epsilon).sqrt()


class OverTheSequence(OverAllTokens):
    def size(self, x):
        return x.square().mean(dim=(-1, -2), keepdim=True).sqrt().expand(*x.shape[:-1], 1)


class OverTheBatch(OverAllTokens):
    def size(self, x):
        return x.square().mean(dim=(0, -1), keepdim=True).sqrt().expand(*x.shape[:-1], 1)


class CentredOnAllTokens(OverAllTokens):
    size = NORMS["rms"].size

    def centred(self, x):
        return x - x.mean(dim=-2, keepdim=True)


class ForwardOverTheSequence(NORMS["rms"]):
    def forward(self, x, gain, shift, epsilon):
        return gain * x / (x.square().mean(dim=(-1, -2), keepdim=True) + epsilon).sqrt()


class OneSize(OverAllTokens):
    def size(self, x):
        return x.square().mean().sqrt()


class WithoutKeepdim(OverAllTokens):
    def size(self, x):
        return x.square().mean(dim=-1).sqrt()


class NoTensor(OverAllTokens):
    def size(self, x):
        return 1.0


class Fails(OverAllTokens):
    def size(self, x):
        return x.no_such_method()


class SaysThatItHasNoGain(WithoutKeepdim):
    gains = "none"
    size = NORMS["rms"].size


class SaysThatItShifts(SaysThatItHasNoGain):
    gains = "one"

    def forward(self, x, gain, shift, epsilon):
        return x @ gain


ALONE = r"of a token alone is not that of the same token among others: .* the last axis \(dim=-1\)"
SHAPE = r"for vectors of the shape \[3, 2, 4\], and must have \[3, 2, 1\].*keepdim=True"
OTHERWISE = {
    LeavesOutItsGain: r"its `forward` is not gain · centred",
    LeavesOutEpsilon: r"its `forward` is not gain · centred",
    OverAllTokens: f"its `size` {ALONE}",
    OverTheSequence: f"its `size` {ALONE}",
    OverTheBatch: f"its `size` {ALONE}",
    CentredOnAllTokens: f"its `centred` {ALONE}",
    ForwardOverTheSequence: f"its `forward` {ALONE}",
    OneSize: rf"its `size` has the shape \[\] {SHAPE}",
    WithoutKeepdim: rf"its `size` has the shape \[3, 2\] {SHAPE}",
    NoTensor: r"its `size` returns 1.0, and must return a tensor",
    Fails: r"its `size` fails \(AttributeError: .*no_such_method",
    SaysThatItHasNoGain: r"its `forward` fails \(TypeError: .*\); `gain` is None, as it says; `shift` is None, as it",
    SaysThatItShifts: r"its `forward` fails \(RuntimeError: .*\); `gain` is 1 number, as it says; `shift` is None",
}
"""Norms that do otherwise than they say, and the sentence."""


@pytest.mark.parametrize("kind", OTHERWISE, ids=lambda kind: kind.__name__)
def test_one_that_does_otherwise_than_it_says_is_refused_in_a_sentence(kind):
    with pytest.raises(PlugInError, match=f"the norm .*test_norms cannot be used: {OTHERWISE[kind]}"):
        Normalisation(kind(), D_MODEL)


def test_one_that_computes_in_32_bits_does_as_it_says():
    class InSingle(NORMS["rms"]):
        def forward(self, x, gain, shift, epsilon):
            return super().forward(x.float(), gain.float(), shift, epsilon).type_as(x)

    Normalisation(InSingle(), D_MODEL)


NEW = {
    "no words": (
        "class New(Norm): centres = shifts = False",
        "does not say its title, sign, description, formula, size",
    ),
    "neither": (
        "from transformer.norms import rms\nclass New(rms.RMSNorm): centres = None",
        "`centres` must be True or False, not None",
    ),
    "a number": (
        "from transformer.norms import rms\nclass New(rms.RMSNorm): centres = 1",
        "`centres` must be True or False, not 1",
    ),
    "no text": (
        "from transformer.norms import rms\nclass New(rms.RMSNorm): size_name = 3",
        "`size_name` must be a text, not 3",
    ),
    "empty": (
        "from transformer.norms import rms\nclass New(rms.RMSNorm): size_name = sign = ''",
        "does not say its sign, size_name",
    ),
    "several gains": (
        "from transformer.norms import rms\nclass New(rms.RMSNorm): gains = ['each']",
        "`gains` must be one of each, one, none, not ['each']",
    ),
    "gains": (
        "from transformer.norms import rms\nclass New(rms.RMSNorm): gains = 'two'",
        "`gains` must be one of each, one, none, not 'two'",
    ),
}


@pytest.mark.parametrize("strange", NEW)
def test_what_does_not_say_what_pages_need_is_refused_in_a_sentence(strange, tmp_path, monkeypatch):
    code, sentence = NEW[strange]
    (tmp_path / "new_norms").mkdir()
    (tmp_path / "new_norms" / f"{strange.replace(' ', '_')}.py").write_text(
        f"from transformer.norms import Norm\n{code}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(NORMS, "_modules", lambda: {strange: f"new_norms.{strange.replace(' ', '_')}"})
    with pytest.raises(PlugInError, match=re.escape(sentence)):
        NORMS[strange]


@torch.no_grad()
def test_where_the_mean_is_zero_and_nothing_is_added_the_two_are_one():
    layer, rms = Normalisation(NORMS["layer"](), D_MODEL).double(), Normalisation(NORMS["rms"](), D_MODEL).double()
    x = vectors(0)
    centred = x - x.mean(dim=-1, keepdim=True)
    torch.testing.assert_close(layer(x), rms(centred), rtol=0, atol=1e-12)
    assert (layer(x) - rms(x)).abs().max() > 0.1


# --- the setting


def test_a_run_that_says_nothing_of_it_has_a_layer_norm_and_its_weights_keep_their_names():
    stored = json.loads((RUNS / "reverse" / "run.json").read_text())["config"]
    without = {name: value for name, value in stored["model"].items() if name != "norm_kind"}
    config = RunConfig.from_dict({**stored, "model": without})
    assert (config.model.norm_kind, config.model.other_norm) == ("layer", "")
    names = set(build(config).state_dict())
    assert {f"decoder.0.around_self.before.{each}" for each in ("weight", "bias")} <= names
    assert {"final_norm.weight", "final_norm.bias"} <= names


def test_an_unknown_one_is_named_with_those_that_there_are():
    with pytest.raises(ConfigError, match=f"norm_kind must be one of {', '.join(sorted(EVERY))}, not 'batch'"):
        ModelConfig(norm_kind="batch")


def test_a_model_without_norms_has_one_config_whichever_kind_was_named():
    one, other = (RunConfig(model=ModelConfig(norm="none", norm_kind=kind)) for kind in ("layer", "rms"))
    assert one == other
    named = [RunConfig(model=ModelConfig(norm_kind=kind)).model.other_norm for kind in ("layer", "rms")]
    assert named == ["", "RMSNorm"]


def test_what_a_norm_is_called_is_known_without_pytorch():
    code = (
        "import sys; from transformer.config import ModelConfig\n"
        "print(ModelConfig(norm_kind='rms').kind_of_norm.title, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["RMSNorm", "False"]

"""A change of one pass is what zeroing a head's part by hand, or handing the model another mask, would give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.kit.foreign.hugging_face import given, made
from tests.kit.foreign.modules import HEADS, WIDTH, ByHand, Causal, Fused, Grouped, Mine, at_once, left_as_it_was
from tests.kit.gpu.devices import ON_EVERY_DEVICE, present
from tests.kit.numbers.rounding import near
from tests.kit.runs import tiny
from transformer import Change, build, capture, capture_changed, observe
from transformer.capturing import hugging_face
from transformer.capturing.changes import ChangeError
from transformer.edits import OverrideMask
from transformer.edits.heads.zero import AblateHead

TOKENS = 5
CAUSAL = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
BLIND = CAUSAL.clone()
BLIND[2] = False
"""Query 2 may see nothing."""


EACH = pytest.mark.parametrize("kind", [Fused, Causal, Grouped, ByHand])


class Model(nn.Module):
    def __init__(self, kind: type[Mine], mask: Tensor | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = kind(mask), kind(mask)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


def read() -> Tensor:
    return torch.randn(3, TOKENS, WIDTH, generator=torch.Generator().manual_seed(1))


@contextmanager
def zeroed(projection: nn.Module, head: int, width: int) -> Iterator[None]:
    """What W_O reads of one head is zero."""

    def without(_: nn.Module, read: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        changed = read[0].clone()
        changed[..., head * width : (head + 1) * width] = 0.0
        return changed, *read[1:]

    hook = projection.register_forward_pre_hook(without)
    try:
        yield
    finally:
        hook.remove()


@torch.no_grad()
def called(model: nn.Module, *inputs: Tensor, **named: Tensor) -> Tensor:
    """The first thing that the model, in evaluation mode, returns."""
    returned = model.eval()(*inputs, **named)
    return returned if isinstance(returned, Tensor) else returned[0]


OUTPUTS = {
    "GPT2LMHeadModel": ("transformer.h.1.attn", "c_proj"),
    "BertModel": ("encoder.layer.0.attention.self", "encoder.layer.0.attention.output.dense"),
    "T5Model": ("decoder.block.1.layer.1.EncDecAttention", "o"),
    "LlamaForCausalLM": ("model.layers.0.self_attn", "o_proj"),
    "Gemma2ForCausalLM": ("model.layers.1.self_attn", "o_proj"),
    "ViTModel": ("layers.0.attention", "o_proj"),
}
"""An attention of each model, and its output projection: within it, or by its whole name."""


# --- a head is removed


@pytest.mark.parametrize("kind", OUTPUTS)
def test_removing_a_head_of_hugging_faces_is_zeroing_what_its_projection_reads(kind: str) -> None:
    model, head = made(kind), 2
    name, projection = OUTPUTS[kind]
    seen = capture(model, **given(kind))
    (name,) = [each for each in seen.attentions() if each.endswith(name)]
    inner = dict(model.named_modules()).get(f"{name}.{projection}")
    model.set_attn_implementation("eager")
    with zeroed(inner or model.get_submodule(projection), head, 8):
        expected = called(model, **given(kind))
    changed = capture_changed(model, Change(frozenset({(name, head)})), **given(kind))
    assert changed.output[0] == near(expected)
    assert not torch.equal(changed.output[0], seen.output[0])
    assert torch.equal(changed[f"{name}.pattern"], seen[f"{name}.pattern"])  # where it would have looked
    z, before = changed[f"{name}.z"], seen[f"{name}.z"]
    assert torch.equal(z[:, head], torch.zeros_like(z[:, head]))
    assert torch.equal(z[:, [0, 1, 3]], before[:, [0, 1, 3]])


@EACH
def test_removing_a_head_of_somebodys_own_is_zeroing_what_its_projection_reads(kind: type[Mine]) -> None:
    model, x = Model(kind), read()
    for head in range(HEADS):
        with zeroed(model.first.out, head, WIDTH // HEADS):
            expected = called(model, x)
        changed = capture_changed(model, Change(frozenset({("first", head)})), x)
        assert changed.output == near(expected)
    with zeroed(model.first.out, 0, 4), zeroed(model.second.out, 1, 4):
        expected = called(model, x)
    assert capture_changed(model, Change(frozenset({("first", 0), ("second", 1)})), x).output == near(expected)
    everything = frozenset((name, head) for name in ("first", "second") for head in range(HEADS))
    expected = x + model.first.out.bias + model.second.out.bias
    torch.testing.assert_close(capture_changed(model, Change(everything), x).output, expected)


@pytest.mark.parametrize("settings", [{}, {"kdim": 6, "vdim": 4}, {"add_bias_kv": True, "add_zero_attn": True}])
@pytest.mark.parametrize("weights", [True, False])
def test_removing_a_head_of_pytorchs_own_takes_its_columns_of_w_o(settings: dict, weights: bool) -> None:
    """The result is a sum of one term a head, and the bias: each term is the difference that its removal makes."""
    torch.manual_seed(0)
    model = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, **settings).eval()
    nn.init.normal_(model.out_proj.bias)
    query = torch.randn(3, 4, WIDTH)
    key, value = torch.randn(3, 6, model.kdim), torch.randn(3, 6, model.vdim)

    def without(*heads: int) -> Tensor:
        removed = frozenset(("MultiheadAttention", head) for head in heads)
        return capture_changed(model, Change(removed), query, key, value, need_weights=weights).output[0]

    seen = capture(model, query, key, value, need_weights=weights)
    whole = seen.output[0]
    bias = model.out_proj.bias.detach().expand_as(whole)
    torch.testing.assert_close(without(0, 1), bias)
    torch.testing.assert_close(without(0) + without(1) - bias, whole)
    if not settings:
        d = WIDTH // HEADS
        w_v, b_v = (each[2 * WIDTH + d : 3 * WIDTH] for each in (model.in_proj_weight, model.in_proj_bias))
        z = seen["MultiheadAttention.pattern"][:, 1] @ functional.linear(value, w_v, b_v)
        torch.testing.assert_close(without(0), (functional.linear(z, model.out_proj.weight[:, d:]) + bias).detach())


@EACH
@ON_EVERY_DEVICE
def test_a_model_is_changed_where_it_is(kind: type[Mine], where: str) -> None:
    change = Change(frozenset({("first", 0)}), mask=BLIND)
    model, x = Model(kind), read()
    expected = capture_changed(model, change, x)
    with present(where) as device:
        found = capture_changed(model.to(device), change, x.to(device))
        seen = {site: value.cpu() for site, value in found.sites.items()}
        output = found.output.cpu()
    assert output == near(expected.output)
    assert seen.keys() == expected.sites.keys()
    for site, value in seen.items():
        assert value.float() == near(expected[site].float()), site


def test_the_second_call_of_a_module_is_changed_by_its_name() -> None:
    one = Fused()
    model, x = nn.Sequential(one, one), read()
    between = called(one, x)
    with zeroed(one.out, 1, 4):
        expected = called(one, between)
    assert capture_changed(model, Change(frozenset({("0#2", 1)})), x).output == near(expected)


def test_one_head_of_three_axes_is_removed() -> None:
    class Head(nn.Module):
        def __init__(self, fused: bool) -> None:
            super().__init__()
            self.fused = fused

        def forward(self, x: Tensor) -> Tensor:
            if self.fused:
                return functional.scaled_dot_product_attention(x, x, x) + 1
            return torch.softmax(x @ x.transpose(-2, -1), dim=-1) @ x + 1

    for fused in (True, False):
        changed = capture_changed(Head(fused), Change(frozenset({("Head", 0)})), read())
        assert torch.equal(changed.output, torch.ones_like(read()))


# --- another mask


@pytest.mark.parametrize("mask", [CAUSAL, BLIND], ids=["causal", "blind"])
@EACH
def test_a_mask_is_what_the_model_with_this_mask_computes(kind: type[Mine], mask: Tensor) -> None:
    """A query that may see nothing gets zeros, whatever PyTorch makes of a softmax over nothing."""
    changed = capture_changed(Model(kind), Change(mask=mask), read())
    model = Model(kind).eval()
    x = read()
    with torch.no_grad():
        for each in (model.first, model.second):
            query, key, value = each.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            if kind is Grouped:
                key, value = key[:, :1], value[:, :1]
            exponentials = (query @ key.transpose(-2, -1) / 2).exp() * mask
            pattern = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-30)
            x = x + each.out((pattern @ value).transpose(1, 2).flatten(2))
    torch.testing.assert_close(changed.output, x)
    torch.testing.assert_close(changed["second.pattern"], pattern)
    assert torch.equal(changed["second.pattern"][..., ~mask], torch.zeros(3, HEADS, int((~mask).sum())))
    if kind is not ByHand:
        torch.testing.assert_close(changed["second.z"], pattern @ value)
    assert torch.equal(changed["second.mask"].any(dim=(0, 1)), mask)


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("mask", [CAUSAL, BLIND], ids=["causal", "blind"])
def test_a_mask_takes_the_place_of_pytorchs_own_and_of_its_padding(mask: Tensor, weights: bool) -> None:
    torch.manual_seed(0)
    model = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
    nn.init.normal_(model.out_proj.bias)
    x = read()
    own = {
        "attn_mask": CAUSAL.T.logical_not(),
        "key_padding_mask": torch.rand(3, TOKENS) < 0.3,
        "need_weights": weights,
    }
    changed = capture_changed(model, Change(mask=mask), x, x, x, **own)
    sighted = mask.any(dim=-1)
    with torch.no_grad():
        expected, pattern = model(x, x, x, attn_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(changed.output[0][:, sighted], expected[:, sighted])
    bias = model.out_proj.bias.detach().expand(3, int((~sighted).sum()), WIDTH)
    torch.testing.assert_close(changed.output[0][:, ~sighted], bias)
    torch.testing.assert_close(changed["MultiheadAttention.pattern"], pattern.nan_to_num())
    assert torch.equal(changed["MultiheadAttention.mask"], mask.expand(3, HEADS, TOKENS, TOKENS))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
def test_a_mask_meets_self_attention_and_not_cross_attention_of_the_same_size() -> None:
    torch.manual_seed(0)
    model = nn.Transformer(WIDTH, HEADS, 1, 1, 16, batch_first=True).eval()
    source, target = read(), read().flip(0)
    changed = capture_changed(model, Change(mask=CAUSAL), source, target)
    with torch.no_grad():
        expected = model(source, target, src_mask=~CAUSAL, tgt_mask=~CAUSAL)
    torch.testing.assert_close(changed.output, expected)
    crossing = changed["decoder.layers.0.multihead_attn.pattern"]
    assert (crossing > 0).all()


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "BertModel", "LlamaForCausalLM", "Gemma2ForCausalLM"])
def test_a_mask_is_what_hugging_faces_model_makes_of_one_in_four_axes(kind: str) -> None:
    model, tokens = made(kind), given(kind)["input_ids"]
    mask = torch.rand(12, 12, generator=torch.Generator().manual_seed(2)) < 0.5
    mask |= torch.eye(12, dtype=torch.bool)
    changed = capture_changed(model, Change(mask=mask), **given(kind))
    model.set_attn_implementation("eager")
    four = torch.zeros(2, 1, 12, 12).masked_fill(~mask, torch.finfo(torch.float32).min)
    expected = called(model, input_ids=tokens, attention_mask=four)
    torch.testing.assert_close(changed.output[0], expected)
    assert all(torch.equal(changed[f"{name}.mask"], mask.expand(2, 4, 12, 12)) for name in changed.attentions())


def test_t5_keeps_its_position_bias_under_a_mask_and_other_lengths_their_own() -> None:
    model, question = made("T5Model"), given("T5Model")
    mask = torch.ones(12, 12, dtype=torch.bool).tril()
    changed = capture_changed(model, Change(mask=mask), **question)
    before = capture(model, **question)
    model.set_attn_implementation("eager")
    four = torch.zeros(2, 1, 12, 12).masked_fill(~mask, torch.finfo(torch.float32).min)
    expected = called(model.encoder, input_ids=question["input_ids"], attention_mask=four)
    torch.testing.assert_close(changed.output.encoder_last_hidden_state, expected)
    for name in changed.attentions():
        if not name.startswith("encoder"):
            assert torch.equal(changed[f"{name}.mask"], before[f"{name}.mask"])


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "LlamaForCausalLM"])
def test_a_mask_that_is_the_models_own_changes_nothing(kind: str) -> None:
    model, tokens = made(kind), given(kind)["input_ids"]
    same = capture_changed(model, Change(mask=torch.ones(12, 12, dtype=torch.bool).tril()), input_ids=tokens)
    assert torch.equal(same.output.logits, capture(model, input_ids=tokens).output.logits)


@pytest.mark.parametrize("kind", [Fused, Grouped, ByHand])
def test_ones_own_mask_handed_in_changes_nothing(kind: type[Mine]) -> None:
    model, x = Model(kind, CAUSAL), read()
    torch.testing.assert_close(capture_changed(model, Change(mask=CAUSAL), x).output, called(model, x))


def test_a_query_of_hugging_faces_that_may_see_nothing_gets_zeros() -> None:
    mask = torch.eye(12, dtype=torch.bool)
    mask[4] = False
    for kind in ("BertModel", "LlamaForCausalLM", "T5Model"):
        changed = capture_changed(made(kind), Change(mask=mask), **given(kind))
        for name in changed.attentions():
            if changed[f"{name}.pattern"].shape[-2:] == (12, 12):
                assert not changed[f"{name}.z"][:, :, 4].any()
                assert not changed[f"{name}.pattern"][:, :, 4].any()
        assert changed.output[0].isfinite().all()


def test_a_bias_beside_the_mask_stays() -> None:
    bias = torch.randn(HEADS, TOKENS, TOKENS, generator=torch.Generator().manual_seed(3))
    model, x = Model(Fused, bias), read()
    changed = capture_changed(model, Change(mask=CAUSAL), x)
    expected = called(Model(Fused, bias.masked_fill(~CAUSAL, -torch.inf)), x)
    torch.testing.assert_close(changed.output, expected)


# --- what cannot be changed


@pytest.mark.parametrize(
    ("model", "change", "sentence"),
    [
        (Model(Fused), Change(frozenset({("third", 0)})), "Head 0 of third was not removed"),
        (Model(Fused), Change(frozenset({("first", 2)})), "first has no head 2: its heads are 0 to 1."),
        (Model(ByHand), Change(frozenset({("first", -1)})), "first has no head -1"),
        (Model(Fused), Change(mask=CAUSAL[1:, 1:]), "with 4 queries and 4 keys: the mask met nothing"),
        (Model(ByHand, CAUSAL), Change(mask=~CAUSAL), "first adds its mask to other numbers"),
        (
            Model(Fused, torch.ones(TOKENS, TOKENS).masked_fill(~CAUSAL, -1e9)),
            Change(mask=~CAUSAL),
            "first adds its mask to other numbers",
        ),
    ],
)
def test_a_change_that_meets_nothing_or_cannot_be_made_is_an_error(model, change, sentence) -> None:
    with pytest.raises(ChangeError, match=sentence):
        capture_changed(model, change, read())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_are_named_as_what_cannot_be_changed() -> None:
    ragged = torch.nested.nested_tensor([torch.randn(3, 2, 4), torch.randn(5, 2, 4)], layout=torch.jagged)
    three, change = [ragged.transpose(1, 2)] * 3, Change(frozenset({("attention", 0)}))
    with pytest.raises(ChangeError, match="attention cannot be changed: its sequences are nested tensors"):
        capture_changed(functional.scaled_dot_product_attention, change, *three)


def test_a_long_name_is_shortened() -> None:
    with pytest.raises(ChangeError) as raised:
        capture_changed(Model(Fused), Change(frozenset({("<b>" * 500, 0)})), read())
    assert len(str(raised.value)) < 200


# --- nothing is left, and nobody else is met


def test_nothing_stays_changed_also_after_an_exception() -> None:
    unmet = Change(frozenset({("transformer.h.0.attn", 0), ("nowhere", 0)}))
    in_the_middle = Change(frozenset({("transformer.h.0.attn", 0), ("transformer.h.1.attn", 9)}))
    model, question = made("GPT2LMHeadModel").train(), given("GPT2LMHeadModel")
    before, kernel = capture(model, **question), model.config._attn_implementation
    with left_as_it_was(model):
        for raises in (unmet, in_the_middle):
            with pytest.raises(ChangeError):
                capture_changed(model, raises, **question)
    assert torch.equal(capture(model, **question).output.logits, before.output.logits)
    assert model.config._attn_implementation == kernel
    assert hugging_face.LOOKING.get() is None


def test_without_a_change_everything_is_as_it_was() -> None:
    for kind in ("GPT2LMHeadModel", "T5Model"):
        model = made(kind)
        one, other = capture(model, **given(kind)), capture_changed(model, Change(), **given(kind))
        assert list(one.sites) == list(other.sites)
        assert all(torch.equal(one[site], other[site]) for site in one.sites)
        assert torch.equal(one.output[0], other.output[0])


@pytest.mark.parametrize("foreign", [True, False])
def test_two_threads_change_one_model_at_once_and_do_not_meet(foreign: bool) -> None:
    if foreign:
        model, named = made("LlamaForCausalLM"), given("LlamaForCausalLM")
        changes = [Change(frozenset({(f"model.layers.{i}.self_attn", i)})) for i in (0, 1)]
    else:
        model, named = Model(Fused).eval(), {"x": read()}
        changes = [Change(frozenset({("first", 0)})), Change(mask=CAUSAL)]
    jobs: list[Callable[[], object]] = [
        lambda change=change: capture_changed(model, change, **named) for change in changes
    ]
    jobs.append(lambda: capture(model, **named))

    def out(seen) -> Tensor:
        return seen.output if isinstance(seen.output, Tensor) else seen.output[0]

    expected = [job() for job in jobs]
    assert out(expected[0]) != near(out(expected[1]))
    assert out(expected[0]) != near(out(expected[2]))
    for all_of_it, one in zip(at_once(jobs, 5), expected, strict=True):
        for each in all_of_it:
            assert out(each) == near(out(one))  # several threads may add up in another order
            assert all(each[f"{name}.pattern"] == near(one[f"{name}.pattern"]) for name in one.attentions())


# --- our own models, by their edits


def test_our_own_models_are_changed_by_edits() -> None:
    model, tokens = build(tiny()), torch.tensor([[1, 2, 3]])
    (site,) = capture(model, tokens).attentions()
    mask = torch.eye(3, dtype=torch.bool)
    changed = capture_changed(model, Change(frozenset({(site, 1)}), mask), tokens)
    edits = [AblateHead(f"{site}.z", 1), OverrideMask.of(mask.numpy())]
    assert torch.equal(changed.output, observe(model, tokens, edits).logits)
    for change, words in (
        (Change(frozenset({("nowhere", 0)})), "met no site"),
        (Change(frozenset({(site, 7)})), "there is no head 7"),
        (Change(mask=torch.eye(5, dtype=torch.bool)), "the mask met nothing"),
    ):
        with pytest.raises(ChangeError, match=words):
            capture_changed(model, change, tokens)

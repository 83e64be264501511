"""What a function or a class is, and what its parameters are for, by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from transformer.checking.bench import CONFIG, Described, Parameter
from transformer.checking.faults import Refused
from transformer.foundation.foreign import quoted, shortened

UNNAMED = "The names do not say what"
"""How a refusal begins of what is of no kind that is known."""
KINDS = ("attention", "module", "positions", "mask", "decoder", "targets", "piece")

_ROLES = (
    ("cosine", r"^cos$|_cos$|^cos_"),
    ("sine", r"^sin$|_sin$|^sin_"),
    ("rotation", r"freqs?_?(cis|complex)|^freqs$|^rope|^rotary|^position_embeddings$"),
    ("start", r"^start_?pos$|^offset$"),
    ("mask", r"mask|^m$|^attn_bias$|^visible$|^allowed$|^hidden$"),
    ("causal", r"causal"),
    ("dropout", r"drop|^p$|^attn_pdrop$|^resid_pdrop$"),
    ("d_vocab", r"vocab|n(um)?_?tokens?$|^n_?symbols|num_classes|^V$|(tgt|out).*size"),
    ("n_groups", r"kv_?heads?|n_?kv|key_value_heads|(query|kv|num|n)_?groups$|^groups$"),
    ("d_head", r"^d_?k$|^d_?v$|^dk$|^dv$|head_?(dim|size)|^d_?head$|dim_?head|d_?h$"),
    ("n_heads", r"heads?$|^n_?h$|^h$|^H$|n_?head|head_?num|num_head"),
    ("n_layers", r"layers?$|depth|^N$|n_?blocks|num_blocks|^L$"),
    ("d_model", r"^hid_?dim$"),
    ("d_other", r"^d_?cross$|^(cross|context|memory|encoder|kv?|v)_?dim$|^d_?(context|memory|encoder)$|cross_?dim"),
    ("d_ff", r"^d_?ff$|ff_?dim|hidden_?dim|mlp|dim_?feedforward|^d_hidden$|d_inner|intermediate"),
    ("window", r"window|^look_?back$"),
    ("side", r"^spac?t?ial_?(dim|size)$|^feat_?size$"),
    ("n_ctx", r"max|ctx(?!_?dim)|context(?!_?dim)|block_?size|seq_?len|^n_?pos|n_positions|^length$"),
    ("batch", r"^batch(_?size)?$|^B$|^bs$"),
    ("d_out", r"^d_?out$|^out_?(features|dim|channels|size)$"),
    ("d_model", r"model|emb|^dim$|^d$|width|hidden_?size|^size$|features|channels|^d_?in$|^d_?out$|^C$"),
    ("base", r"base|theta"),
    ("bias", r"bias"),
    ("query", r"^q|^Q"),
    ("key", r"^k|^K"),
    ("value", r"^v|^V"),
    ("x", r"^x$|^X$|input|hidden_states|^src$|^tgt$|embed"),
    ("tokens", r"^idx$|tokens?$|^ids$|^input_ids$|^inp$"),
    ("memory", r"memory|context|^y$|encoder|enc_"),
    ("targets", r"targets?$|labels?$|^y$"),
    ("scale", r"scale|temperature|temp$"),
    ("flag", r"need_weights|return|verbose|training|cache|use_|batch_first"),
)
_ATTRIBUTES = {
    "d_model": ("d_model", "n_embd", "embed_dim", "hidden_size", "dim", "emb_dim", "d_in", "d_out"),
    "n_heads": ("n_heads", "n_head", "num_heads", "num_attention_heads", "heads", "h"),
    "n_groups": ("n_kv_heads", "n_kv_head", "num_kv_heads", "num_key_value_heads", "n_groups", "num_groups"),
    "n_layers": ("n_layers", "n_layer", "num_layers", "num_hidden_layers", "depth"),
    "d_vocab": ("d_vocab", "vocab_size"),
    "n_ctx": ("n_ctx", "block_size", "context_length", "max_len", "max_seq_len", "seq_len", "max_position_embeddings"),
    "dropout": (
        "dropout",
        "attention_probs_dropout_prob",
        "hidden_dropout_prob",
        "attention_dropout",
        "drop_rate",
        "attn_pdrop",
        "resid_pdrop",
        "embd_pdrop",
        "p_dropout",
    ),
    "d_head": ("d_head", "head_dim", "head_size"),
    "window": ("window", "window_size", "sliding_window"),
    "d_ff": ("d_ff", "intermediate_size", "n_inner", "mlp_dim"),
    "bias": ("bias", "qkv_bias", "use_bias"),
}
"""What settings in one object are called."""


def role(name: str, among: Sequence[str] = ()) -> str:
    """What a parameter is for; of two readings that of `among`. Empty where the name does not say."""
    fitting = [each for each, pattern in _ROLES if re.search(pattern, name) or re.search(pattern, name.lower())]
    return next((each for each in fitting if each in among), "" if among else next(iter(fitting), ""))


def guess(described: Described, *, counting: bool = True) -> str:
    """The kind of a function or a class, from its name and its parameters. Raises Refused where they do not say.

    A function of three or four that have no names is one of attention, where `counting` them is enough.
    """
    name = described.name.lower()
    made, called = (_names(each) for each in (described.parameters, described.called_with))
    roles = [role(each, ("query", "key", "value", "mask")) for each in called]
    three = {"query", "key", "value"} <= set(roles)
    if described.is_class:
        part = re.search(r"(block|(?<!attention)(?<!attn)layer|mlp|ffn|feed_?fo?r?ward|glu|norm|config|args)$", name)
        if any(each in CONFIG for each in made):
            if part:
                raise _unnamed(described)
            word = re.search(r"attention|attn|pos|rotary|gpt|decoder|transformer|model|lm$", name)
            found = {"attention": "module", "attn": "module", "pos": "positions", "rotary": "positions"}
            if word:
                return found.get(word.group(), "decoder")
            if len([each for each in described.called_with if not each.optional]) == 1:
                return "decoder" if role(called[0], ("tokens",)) else "module"
        settings = [role(each, ("d_vocab", "n_heads", "n_ctx", "d_model")) for each in made]
        if "d_vocab" in settings:
            return "decoder"
        if part:
            raise _unnamed(described)
        if re.search(r"attention|attn", name) and not three:
            return "module"
        if re.search(r"pos|embedding|encoding|sinus", name):
            return "positions"
        needed = [each.name for each in described.called_with if not each.optional]
        if len(needed) == 1 and (role(needed[0], ("tokens",)) or re.search(r"gpt|decoder|language|lm$", name)):
            return "decoder"
        if "n_heads" in settings:
            return "module"
        if re.search(r"rotary|rope", name):
            return "positions"
        if three:
            return "module" if "d_model" in settings else "attention"
        if "n_ctx" in settings:
            return "positions"
        if re.search(r"attention|attn|head", name):
            return "module"
    else:
        if three:
            return "attention"
        sizes = all(role(each.name, ("n_ctx", "batch")) for each in described.parameters[1:])
        if re.search(r"target|shift|predict|(get|make|sample)_batch", name) and called and sizes:
            return "targets"
        if re.search(r"mask|causal|subsequent|triangular", name):
            return "mask"
        if re.search(r"pos|encod|sinus|rope|rotary|^pe$", name):
            return "positions"
        needed = [each.name for each in described.parameters if not each.optional]
        if len(needed) == 2 and "d_model" in [role(each, ("d_model", "n_ctx")) for each in needed]:
            return "positions"
        if (counting and len(needed) in (3, 4)) or re.search(r"attention|attn", name):
            return "attention"
        if (len(needed) == 1 and role(needed[0], ("n_ctx", "d_model"))) or re.match(
            r"^(n|size|sz|t)$", "".join(called[:1])
        ):
            return "mask"
    raise _unnamed(described)


def _unnamed(described: Described) -> Refused:
    listed = ", ".join(KINDS)
    words = f"{UNNAMED} {quoted(described.name)} is: say it with --kind, one of {listed}."
    return Refused(words, fatal=True)


def _names(parameters: Sequence[Parameter]) -> list[str]:
    return [each.name for each in parameters]


def settings(described: Described, values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a constructor, by the role of each parameter. Raises Refused for one whose role is unknown."""
    given: dict[str, Any] = {}
    sized = any(role(each.name, ("d_model", "n_heads", "d_vocab")) for each in described.parameters)
    nameless = [each for each in ("d_model", "n_heads") if each in values]
    for each in described.parameters:
        if each.name in CONFIG and (not each.optional or not sized):
            given[each.name] = {
                attribute: values[one] for one, names in _ATTRIBUTES.items() if one in values for attribute in names
            }
            continue
        found = role(each.name, tuple(values))
        if found and (not each.optional or found not in ("bias", "base", "d_ff")):
            given[each.name] = values[found]
            nameless = [one for one in nameless if one != found]
        elif not each.optional and nameless:
            given[each.name] = values[nameless.pop(0)]
        elif not each.optional:
            raise Refused(
                f"{shortened(described.name)} needs a setting {quoted(each.name)}, which the check does not know.",
                fatal=True,
            )
    return given


def needed(described: Described, given: Mapping[str, Any]) -> dict[str, Any]:
    """Of these arguments of a constructor those that it has no default for."""
    optional = {each.name for each in described.parameters if each.optional}
    return {name: value for name, value in given.items() if name not in optional}


def places(parameters: Sequence[Parameter], roles: Sequence[str], defaults: Mapping[str, Any]) -> dict[str, str]:
    """The parameter that takes each role, by their names; where those do not say, by their order.

    What is needed beyond these roles must have a value in `defaults`. Raises Refused where it has none.
    """
    found: dict[str, str] = {}
    every = (*roles, *defaults)
    # attn_mask comes before key_padding_mask, and both before an m.
    for each in sorted(parameters, key=lambda each: ("mask" not in each.name.lower(), "padding" in each.name)):
        one = role(each.name, every)
        if one and one not in found:
            found[one] = each.name
    free = [each.name for each in parameters if each.name not in found.values()]
    for one in roles:
        if one not in found and free and (one != "mask" or _needed(parameters, free[0])):
            found[one] = free.pop(0)
    for each in parameters:
        if not each.optional and each.name not in found.values():
            raise Refused(f"It needs an argument {quoted(each.name)}, which the check does not know.", fatal=True)
    return found


def _needed(parameters: Sequence[Parameter], name: str) -> bool:
    return any(each.name == name and not each.optional for each in parameters)

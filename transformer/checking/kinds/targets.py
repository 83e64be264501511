"""A function that cuts tokens into what is read and what is to be predicted."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from transformer.checking.bench import Bench, Described
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings
from transformer.checking.signatures import role
from transformer.foundation.words import counted

BATCH, LENGTH = 4, 8
"""Pieces that are drawn from a text, and tokens of each, where it is told how many."""


def judge(bench: Bench, described: Described) -> Findings:
    """Is the token that is to be predicted at each position the next one?"""
    if described.is_class:
        raise Refused("Targets are checked as a function of tokens.", fatal=True)
    findings = Findings()
    sizes = {"n_ctx": LENGTH, "batch": BATCH}
    settings = {
        each.name: sizes[role(each.name, tuple(sizes))] for each in described.parameters[1:] if not each.optional
    }
    if len(described.parameters) > 1 or re.search(r"batch", described.name):
        _drawn(bench, settings, findings)
        return findings
    for batch, length in ((2, 6), (1, 2), (3, 11)):
        tokens = torch.arange(batch * length).view(batch, length)
        words = f"{counted(batch, 'sequence')} of {counted(length, 'token')}"
        findings.tried.append(words)
        values = bench.call([tokens]).values
        if len(values) != 2:
            raise Refused("It should return two tensors: what is read, and what is to be predicted.", fatal=True)
        if sentence := _unlike(*values, tokens=tokens):
            findings.wrong.append(f"With {words}: {sentence}")
            if torch.equal(*values):
                findings.call_if_there("target-not-shifted")
            break
    return findings


def _drawn(bench: Bench, sizes: Mapping[str, int], findings: Findings) -> None:
    """Are pieces of one long text drawn, and beside each token the one that follows it there?"""
    text = torch.arange(1000)
    findings.tried.append(f"pieces of a text of {len(text)} tokens")
    values = bench.call([text, *sizes.values()], ["", *sizes]).values
    if len(values) != 2:
        raise Refused("It should return two tensors: what is read, and what is to be predicted.", fatal=True)
    read, predicted = values
    if read.shape == predicted.shape and torch.equal(predicted, read + 1) and bool((read.diff(dim=-1) == 1).all()):
        return
    findings.wrong.append("What is to be predicted is not, at each position, the token that follows in the text.")
    if read.shape == predicted.shape and torch.equal(read, predicted):
        findings.call_if_there("target-not-shifted")


def _unlike(read: Tensor, predicted: Tensor, tokens: Tensor) -> str:
    """What is wrong with a cut; empty where nothing is."""
    if read.shape != predicted.shape:
        return f"the two have the shapes {list(read.shape)} and {list(predicted.shape)}; they should be alike."
    if torch.equal(read, predicted):
        return "what is to be predicted is the token that is read, not the next one."
    if torch.equal(read, tokens[:, :-1]) and torch.equal(predicted, tokens[:, 1:]):
        return ""
    return "tokens[:, :-1] should be read, and tokens[:, 1:] be predicted."

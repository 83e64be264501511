"""A function that cuts tokens into what is read and what is to be predicted."""

from __future__ import annotations

import torch
from torch import Tensor

from transformer.checking.bench import Bench, Described
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings
from transformer.foundation.words import counted


def judge(bench: Bench, described: Described) -> Findings:
    """Is the token that is to be predicted at each position the next one?"""
    if described.is_class:
        raise Refused("Targets are checked as a function of tokens.", fatal=True)
    findings = Findings()
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


def _unlike(read: Tensor, predicted: Tensor, tokens: Tensor) -> str:
    """What is wrong with a cut; empty where nothing is."""
    if read.shape != predicted.shape:
        return f"the two have the shapes {list(read.shape)} and {list(predicted.shape)}; they should be alike."
    if torch.equal(read, predicted):
        return "what is to be predicted is the token that is read, not the next one."
    if torch.equal(read, tokens[:, :-1]) and torch.equal(predicted, tokens[:, 1:]):
        return ""
    return "tokens[:, :-1] should be read, and tokens[:, 1:] be predicted."

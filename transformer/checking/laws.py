"""Laws of attention that hold however it is written: by its name, by its flags, and by what it does to equal tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torch import Tensor

from transformer.checking.bench import Parameter
from transformer.checking.findings import Findings
from transformer.checking.recording import Step

_CAUSAL = re.compile(r"causal|autoregressive|look_?ahead", re.IGNORECASE)
_MASKED = re.compile(r"masked", re.IGNORECASE)
WINDOW = re.compile(r"window|sliding|local", re.IGNORECASE)
"""Names of what sees a few tokens alone."""
_FLAG = re.compile(r"need_weights|return_|output_attn|output_attention|^training$|^train$", re.IGNORECASE)


def require_causal(name: str, findings: Findings, *, takes_mask: bool, switch: bool) -> None:
    """Note as wrong that code which is not causal is called so, or masked, and neither takes a mask nor has a switch.

    Where it takes one it is as causal as whoever calls it makes it: that is said, and not failed.
    """
    causal, masked = bool(_CAUSAL.search(name)), bool(_MASKED.search(name))
    if takes_mask or switch:
        if causal:
            findings.notes.append("Its name says causal: it is so only where it is called with a mask that is.")
    elif causal or masked:
        findings.wrong.append(
            f"Its name says {'causal' if causal else 'masked'}, and every query sees every key, the later ones too."
        )


def require_window(name: str, findings: Findings, reach: Tensor) -> None:
    """Note as wrong that code which is told how far its window reaches sees as far as there are keys.

    `reach` says which outputs change with which inputs, [query, key], of more positions than the window has.
    """
    if bool(reach[-1].all()):
        findings.wrong.append(f"{name} was made with a window of a few tokens, and the last query sees every key.")


def require_read_masks(steps: Sequence[Step], findings: Findings) -> None:
    """Note as wrong that scores are masked, and what comes of it is read by nothing."""
    read = {source for step in steps for source in step.sources}
    for place, step in enumerate(steps):
        if step.name == "masked_fill" and f"step {place}" not in read and any(each.name == "softmax" for each in steps):
            findings.wrong.append(
                "What `masked_fill` returns is never read: it changes nothing in place. Write `scores = "
                "scores.masked_fill(…)`."
            )
            return


def flags(parameters: Sequence[Parameter]) -> dict[str, bool]:
    """The parameters that open another path of the code, by name; is it the one that switches a causal mask?"""
    return {
        each.name: bool(_CAUSAL.search(each.name))
        for each in parameters
        if _FLAG.search(each.name) or (_CAUSAL.search(each.name) and "mask" not in each.name.lower())
    }

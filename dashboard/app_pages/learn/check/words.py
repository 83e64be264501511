"""What the page says: of what can be checked, of a verdict, and of where the code was run."""

from __future__ import annotations

from dashboard.app_pages.learn.check import running
from dashboard.app_pages.learn.check.verdict import Explained
from transformer.checking.isolation.limits import PROMISES
from transformer.checking.verdict import Stage, Verdict
from transformer.foundation.claims import claim
from transformer.foundation.words import listed

GUESSED = "guess it from its names"
KINDS = {
    "attention": "attention: a function of query, key, value and mask",
    "module": "module: a class of multi-head attention",
    "positions": "positions: a positional encoding",
    "mask": "mask: a function that makes a mask",
    "decoder": "decoder: the class of a whole decoder",
    "targets": "targets: a function that cuts tokens into inputs and targets",
    "piece": "piece: another function of the gallery of mistakes",
}
"""What can be checked, by the names of the library's kinds."""
STAGES = {
    "projected": "queries, keys and values, each the input times its own weights",
    "split": "the same, cut into heads",
    "scores": "query · key",
    "scaled": "the scores divided by √d_head",
    "masked": "the scaled scores, the hidden ones −∞",
    "softmax": "the weights of each query, which add up to 1",
    "values": "the values, weighed by them and added up",
    "merged": "the heads side by side again",
    "out": "the output projection",
}
"""What each stage holds."""
COMMAND = "check my_attention.py:attention"
ASK = "Is your attention right? Paste it, and press Check."
OFF = "Your code is not run here."
UNDER_WAY = "Your check is under way."
NOT_RUN = "Your code could not be run."
UNDECIDED = "Not decided: nothing wrong was found, and not all was compared."
NO_VERDICT = "Your code was not checked."
CHANGED = "The code has changed since it was checked."
PRIVATE = (
    "Your code stays in this session. Nothing of it gets into a link, a log, a lecture’s room, a hand-out or another "
    "session. Reloading the page forgets it."
)
HOW = (
    "The code runs in a process of its own. It is tried on unequal lengths, on batches, on one token, with masks and "
    "in half precision. Its results are compared with the reference’s. **Right** means: right in all that was tried. "
    "**Not decided** means: nothing wrong was found, and something could not be compared."
)
NO_STAGES = "Stages are compared for attention and its modules only, where the code can be followed."
ROUNDING = "A stage is the same if its numbers are, up to rounding and the order of the axes."
LIST = "\n".join(f"- **{name}**: {words.partition(': ')[2]}" for name, words in KINDS.items())
SAYS = "say it with --kind, one of"
"""How the command line asks for the kind."""


@claim
def headline(verdict: Explained) -> str:
    """The answer, as the page's title."""
    if verdict.word == "right":
        return "Right in all that was tried."
    if verdict.word == "not run":
        return NOT_RUN
    if verdict.word == "not decided":
        return UNDECIDED
    first = verdict.wrong[0]
    if verdict.known is not None:
        title = verdict.known.title
        longer = (each for each in verdict.wrong[1:] if each.startswith(title))
        first = next(longer, title).partition(";")[0]
    return f"Wrong: {_lower(first).rstrip('.')}."


def _lower(sentence: str) -> str:
    """A sentence to stand behind a colon; a symbol or an abbreviation keeps its capital."""
    kept = any(letter.isupper() for letter in sentence.partition(" ")[0][1:])
    return sentence if kept else f"{sentence[:1].lower()}{sentence[1:]}"


def on_page(sentence: str) -> str:
    """A sentence of the library, as it is said where there is a menu in place of an option."""
    return sentence.replace(SAYS, "pick it under “What it is”, one of")


def wrong(verdict: Explained) -> list[str]:
    """What is wrong, without what is said of the mistake of the gallery anyway."""
    return list(verdict.wrong if verdict.known is None else verdict.wrong[1:])


def mark(verdict: Verdict, stage: Stage) -> str:
    """What is said of a stage in its row."""
    names = [each.name for each in verdict.stages]
    if stage.name == verdict.first:
        return "✕ axes differ first" if stage.reached else "✕ differs first"
    if stage.reached:
        return "✓ same"
    if verdict.first is None or names.index(stage.name) < names.index(verdict.first):
        return "– no such step"
    return "✕ differs"


def amount(stage: Stage) -> str:
    """The largest difference at a stage."""
    if stage.difference is None:
        return "" if stage.shape is None else "no number"
    return "0" if stage.difference == 0 else f"{stage.difference:.3g}"


def shape(sizes: tuple[int, ...] | None) -> str:
    return "" if sizes is None else f"[{', '.join(map(str, sizes))}]"


def stages(verdict: Verdict) -> str:
    """What the table of stages shows, in a sentence or two."""
    if verdict.first is None:
        return f"On the inputs compared here, every stage that the code has agrees with the reference. {ROUNDING}"
    first = next(each for each in verdict.stages if each.name == verdict.first)
    what = f"The first stage that differs from the reference is **{first.name}**: {STAGES[first.name]}."
    if first.shape is None:
        return f"{what} The code has no tensor of that size. {ROUNDING}"
    if first.reached or first.difference is None:
        return f"{what} {ROUNDING}"
    return f"{what} The largest difference is {amount(first)}. {ROUNDING}"


def checked_as(verdict: Verdict) -> str:
    """What was checked, and as what."""
    kind = KINDS.get(verdict.kind, verdict.kind).partition(": ")[0]
    return f"“{verdict.name}” was checked as: {kind}." if verdict.name and kind else ""


def held(verdict: Verdict) -> str:
    """What the process was held to, what it was not, and how long it took."""
    limits = running.LIMITS
    bounds = {
        "time": f"{limits.seconds:g} s of computing",
        "memory": f"{limits.memory / 1024:g} GB of memory",
        "output": f"{limits.printed} MB of printed text",
        "processes": "no other process",
        "network": "no network",
        "files": "no files but Python’s, the system’s, and those of a temporary folder",
    }
    took = f"The check took {verdict.seconds:.1f} s."
    if not verdict.isolated:
        return took
    said = f"The code ran in a process of its own, held to {', '.join(bounds[each] for each in verdict.isolated)}."
    missing = [each for each in PROMISES if each not in verdict.isolated]
    return f"{said} {f'Not isolated on this machine: {listed(missing)}. ' if missing else ''}{took}"


def tried(verdict: Verdict) -> str:
    """What the code was tried on."""
    return f"Tried on: {'; '.join(verdict.tried)}." if verdict.tried else ""


def waits(ahead: int) -> str:
    """How many come first."""
    return f"Your check waits for its turn: {ahead} {'other comes' if ahead == 1 else 'others come'} first."


def goes_on(seconds: float) -> str:
    """How long a check has taken so far."""
    return (
        f"Your code is being checked: {seconds:.0f} s so far. The first one takes longer: it imports PyTorch. "
        f"Code that computes for more than {running.LIMITS.seconds:g} s is ended."
    )

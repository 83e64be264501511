"""Laws of pages that show a shipped measurement: they are judged by its file alone.

No model of the grid meets them: `test_what_every_other_page_says…` does.
"""

from __future__ import annotations

import json
import lzma

from tests.kit.claims import Shown, law
from tests.kit.claims.world import World
from tests.kit.pages import ROOT

LENGTHS, BOTTLENECK = ROOT / "checkpoints" / "lengths.json.xz", ROOT / "checkpoints" / "bottleneck.json"


def reversed_at(length: int) -> dict[str, float]:
    """The mean over its seeds of what each encoding reverses of a length, where it could be measured."""
    values = json.loads(lzma.decompress(LENGTHS.read_bytes()))
    found: dict[str, list[float]] = {}
    for trial in values["trials"]:
        if len(trial["exact"]) >= length and trial["exact"][length - 1] is not None:
            found.setdefault(trial["positions"], []).append(trial["exact"][length - 1] / values["sequences"])
    return {name: sum(shares) / len(shares) for name, shares in found.items()}


def leads(name: str, share: str, length: int) -> None:
    found = reversed_at(length)
    key = next(each for each in found if each.lower() in name.lower() or (each == "none" and "without" in name))
    assert found[key] == max(found.values())
    assert Shown(share) == found[key]


@law(
    "app_pages/positions/lengths/measurement.headline",
    r"After (?P<steps>[\d,]+) steps up to length (?P<trained>\d+), (?P<name>.+) reverses (?P<own>[\d.]+) of it, "
    r"(?P<share>[\d.]+) of length (?P<near>\d+)(?:; (?:no encoding (?P<none>\d+)|(?P<other>.+) (?P<far_share>[\d.]+) "
    r"of length (?P<far>\d+)))?\.",
)
def reverses(
    world: World, steps: Shown, trained: str, name: str, own: Shown, share: str, near: str, none: str | None,
    other: str | None, far_share: str | None, far: str | None,
) -> None:  # fmt: skip
    config = json.loads(lzma.decompress(LENGTHS.read_bytes()))["config"]
    assert (steps.value, int(trained)) == (config["training"]["max_steps"], config["task"]["length"])
    leads(name, share, int(near))
    key = max(reversed_at(int(near)), key=reversed_at(int(near)).__getitem__)
    assert own == reversed_at(int(trained))[key]
    if none is not None:
        assert max(reversed_at(int(none)).values()) == 0
    if far is not None and other is not None and far_share is not None:
        leads(other, far_share, int(far))


@law(
    "app_pages/learn/bottleneck/measurement.headline",
    r"(?P<asked>One vector forgets|One vector or attention)[.?] Right at length (?P<length>\d+): GRU (?P<gru>[\d.]+), "
    r"with attention (?P<attention>[\d.]+), transformer (?P<transformer>[\d.]+)\.",
)
def right_at_length(world: World, asked: str, length: str, gru: Shown, attention: Shown, transformer: Shown) -> None:
    values = json.loads(BOTTLENECK.read_text())
    assert int(length) == values["contestants"][0]["config"]["task"]["length"]
    shares = [each["exact"][-1] / values["sequences"] for each in values["contestants"]]
    for said, share in zip((gru, attention, transformer), shares, strict=True):
        assert said == share
    error = max(4 * (share * (1 - share) / values["sequences"]) ** 0.5 for share in shares)
    assert asked != "One vector forgets" or shares[0] < min(shares[1:])
    assert asked == "One vector forgets" or shares[0] + 2 * error > min(shares[1:])

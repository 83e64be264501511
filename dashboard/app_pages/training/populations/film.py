"""All members of one combination learning together: the working head of each, on one clock."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.app_pages.training.populations import measured, members
from dashboard.app_pages.training.populations.measured import Combination, Counted
from dashboard.components.film import Reel, Track, film_player
from dashboard.figures.loss import loss_axes
from dashboard.view import session
from transformer.analysis.accuracy import ceilings
from transformer.analysis.findings import Head
from transformer.experiments.populations.scenes import Scenes
from transformer.foundation.words import counted

MOST_SHOWN = 100
"""Heads on one stage; loss and accuracy are those of all members."""


def film(found: Counted, combination: Combination) -> None:
    """The section of the page."""
    st.markdown("**The working head of every seed, from the first step to the last**")
    scenes = measured.film(found, combination)
    if scenes is None:
        st.caption("There is no film of these members: none of them has ended, or none has a head to show.")
        return
    key = f"populations-film-{found.name}"  # one for all combinations: else two films stand on the page for a moment
    reel = reel_of(scenes, combination, session.settings().run.removeprefix(f"{found.name}/"))
    alt = f"{described(scenes)} A film of {len(scenes.steps)} steps, {scenes.steps[0]} to {scenes.steps[-1]}."
    film_player(
        reel,
        key=key,
        alt=alt,
        on_focus=lambda: clicked(found, scenes, st.session_state[key]["focus"], key),
    )
    st.caption(
        f"{described(scenes)} A seed that has ended stays as it was at its end. Click a head to open its member."
    )
    members.told(key)


def reel_of(scenes: Scenes, combination: Combination, opened: str = "") -> Reel:
    """A head a member, and the loss and the accuracy of all of them. The member that is `opened` is outlined."""
    config = combination.config
    assert config is not None  # it was trained
    task, floor = config.build_task(), ceilings.loss_floor(config)
    steps, count = np.arange(1, len(scenes.loss) + 1), len(scenes.members)
    shown = scenes.members[:MOST_SHOWN]
    tracks = [
        Track(
            name=f"seed {combination.seeds[member]}",
            called=f"Seed {combination.seeds[member]}, head {Head.parse(scenes.heads[place]).short}",
            group="",
            row=0,
            column=place,
            patterns=scenes.levels[place],
            mask=scenes.mask,
            queries=scenes.queries,
            keys=scenes.keys,
        )
        for place, member in enumerate(shown)
    ]
    return Reel(
        pattern_steps=scenes.steps.tolist(),
        tracks=tracks,
        loss_steps=steps,
        loss=scenes.loss,
        floor=floor,
        chance_loss=task.chance_loss,
        loss_axes=loss_axes(steps, scenes.loss, floor=floor, chance=task.chance_loss),
        solved_at=None,
        accuracy_steps=scenes.steps.tolist(),
        accuracy=scenes.right.sum(axis=0) / (count * scenes.sequences),
        sequences=[count * scenes.sequences] * len(scenes.steps),
        names=scenes.names,
        groups=task.groups(task.length),
        chance=scenes.chance,
        ceiling=ceilings.ceiling(config).greatest,
        flow=True,
        focus=shown.index(opened) if opened in shown else None,
    )


def described(scenes: Scenes) -> str:
    """What is to be seen."""
    count = len(scenes.members)
    first = f" (the first {MOST_SHOWN} are drawn)" if count > MOST_SHOWN else ""
    return (
        f"Of each of {counted(count, 'seed')}{first} the head that looks most at the token to say next once it is "
        f"trained. Loss and accuracy are means over these seeds, accuracy on {scenes.sequences} fresh sequences each."
    )


def clicked(found: Counted, scenes: Scenes, index: int | None, place: str) -> None:
    """Open the member whose head was clicked, and say so at a place."""
    if index is not None and 0 <= index < min(MOST_SHOWN, len(scenes.members)):
        members.open_member(found, scenes.members[index], place)

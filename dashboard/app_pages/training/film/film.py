"""How the heads, the accuracy by position and the loss of a run came to be, as a film."""

from typing import Any

import numpy as np
import streamlit as st

from dashboard.app_pages.training.film import text
from dashboard.components.documents.film_file import film_file
from dashboard.components.film import film_player
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures import learning
from dashboard.frame import other_models
from dashboard.models.cache import cached
from dashboard.models.model import Model, maker_of
from dashboard.parts.film import dots, even_look, heads_of, moment_sentence, of, of_film, order_sentence
from dashboard.parts.learning import floor_sentence, loss, order_heatmap
from dashboard.parts.prose import plain, show_code
from dashboard.parts.text import windows
from dashboard.view import session
from transformer.analysis.film.film import Film, sharpening
from transformer.analysis.findings import Head
from transformer.foundation.claims import claim
from transformer.training.runs import Run

MEAN_SHARE = "the mean share of that head's attention on the token to say next"


def page(model: Model, run: Run) -> None:
    film, metrics, kept = model.film(), run.metrics(), list(run.snapshots())
    said = "" if model.task.lawful else text.headline(metrics)
    headline = said or moment_sentence(film, model.config)
    st.title(headline, anchor=False)
    if said and (why := text.worse_than_even(metrics, model.task.d_vocab)):
        st.caption(why)
    key = f"film-{model.name}"  # another run's film begins anew
    everyone = heads_of(film)
    focus = next((head for head in everyone if str(head) == session.settings().head), None)
    film_player(
        of_film(film, model.config, metrics, kept, focus),
        key=key,
        alt=described(film, headline),
        on_step=lambda: use_step(st.session_state[key]["step"], kept),
        on_focus=lambda: use_head(st.session_state[key]["focus"], everyone),
    )
    below(model, film, headline, metrics)
    left, right = st.columns(2, gap="large")
    with left:
        positions(model, film)
    with right:
        shares(model, film, focus)
    if not model.task.lawful:
        st.markdown("**Loss on the training text, and on the text that was held out**")
        loss(model, key="film-loss", height=360)
    show_code(
        "transformer.analysis.film.film.sharpening",
        "transformer.analysis.film.film.learned_at",
        "transformer.analysis.film.take.film",
        "transformer.analysis.heads.survey.survey",
    )


def use_step(step: int | None, kept: list[int]) -> None:
    """Put every page at the step that was chosen in the film."""
    if step in kept:
        session.update(step=None if step == kept[-1] else step)


def use_head(index: int | None, heads: list[Head]) -> None:
    """Let every page enlarge the head that was clicked."""
    if index is not None and 0 <= index < len(heads):
        session.update(head=str(heads[index]))


def described(film: Film, headline: str) -> str:
    heads = "the patterns of all heads, " if film.readings else ""
    first, last = film.steps[0], film.steps[-1]
    over = f"{len(film.steps)} steps whose weights were kept, {first} to {last}"
    if first == last:
        over = f"the one step whose weights were kept, step {last}"
    return f"{headline} A film of {over}: {heads}the loss, and the accuracy by position."


def below(model: Model, film: Film, headline: str, metrics: list[dict[str, Any]]) -> None:
    """What was looked at, and the film to take away."""
    words, button = st.columns([1.9, 1], vertical_alignment="center")
    chosen = session.settings().step
    where = "" if chosen is None else f" Every page shows step {chosen} now. The sidebar changes it."
    lawful = model.task.lawful
    read = (
        f"{' '.join(film.question)}, with the right answer"
        if lawful
        else f"‘{plain(''.join(film.question).replace('␣', ' '))}’"
    )
    heads = f"The patterns are those on {read}. Accuracy was measured" if film.readings else "Accuracy was measured"
    alone = ", with the model reading its own words" if model.config.model.recurrent else ""
    share = "its attention on this example" if model.config.model.recurrent else MEAN_SHARE
    title = f" The numbers in the title are {share}{when(film)}." if film.readings and lawful else ""
    on = f"{film.sequences} fresh sequences" if lawful else windows(film.sequences, len(film.names))
    # Of a text the loss and the weights are kept at steps of their own.
    own = "" if lawful else " Patterns, loss and accuracy are kept at different steps; each title names its own."
    words.caption(f"{heads} on {on}{alone}.{own}{title}{where}")
    if derived := floor_sentence(model.config):
        words.caption(derived)
    file = packed(film.snapshot, len(metrics), model, film, headline)
    button.download_button(
        f"Save the film ({len(file) / 1000:.0f} kB)",
        lambda: file,
        f"{model.name}-film.html",
        "text/html",
        on_click="ignore",
        icon=":material/download:",
        width="stretch",
        help="One file. It plays in any browser, without a network.",
    )


def when(film: Film) -> str:
    """Of which steps the title's two numbers are, and what it was between them; empty where it names no two."""
    moment = sharpening(film)
    if moment is None:
        return ""
    return f", at steps {film.steps[0]} and {film.steps[-1]}; at step {moment.step} it is {moment.middle:.2f}"


@cached(4)
def packed(digest: str, points: int, model: Model, _film: Film, headline: str) -> bytes:
    """The film as a file."""
    assert model.run is not None
    return film_file(
        of_film(_film, model.config, model.run.metrics()[:points], []),
        title=headline,
        description=f"{model.name}: {session.choices()[model.name].description()}",
        sentence=described(_film, headline),
        digest=digest,
    )


def last(model: Model, film: Film) -> Maker:
    """Whose numbers a film's are: those of all its kept steps, up to the last."""
    assert model.run is not None
    return maker_of(model.run, int(film.steps[-1]))


def positions(model: Model, film: Film) -> None:
    """Which position was learned when."""
    st.markdown("**Which position was learned when?**")
    figure = order_heatmap(film, model.config)
    sentence = order_sentence(film, model.config)
    alt = f"Accuracy by position and step. {sentence}"
    plot(figure, key="film-positions", alt=alt, height=400, makers=[last(model, film)])
    st.caption(f"{sentence}{dots(model.config)}")


def shares(model: Model, film: Film, focus: Head | None) -> None:
    """Which head came to look at its token when: at the one to be said, or at the place that a text's heads look at."""
    if not film.readings:
        other_models.attention_wanted(model)
        return
    place, title, found = "the token to say next", "share of attention on that token", film.shares
    steps, over = film.steps, f"the mean over {film.surveyed} sequences"
    none = f"Under this mask no head ever sees {place}."
    if not model.task.points:
        none = "In this task no token of the input is the one to look at."
    if not model.task.lawful:
        place, found = text.most_looked_at(film)
        steps, title = film.steps[film.pictured], f"share on {place}"
        over, none = (
            "the mean over the positions of this passage that may see more than one token",
            "Every query of this passage may see one key only.",
        )
    if place:
        st.markdown(f"**How much does each head look at {place}?**")
    known = {head: share for head, share in found.items() if np.isfinite(share[-1])}
    if not known:
        st.info(none)
        return
    moment, best = sharpening(film), max(known, key=lambda head: (known[head][-1], head))
    shown = focus if focus in known else best
    figure = coloured(
        learning.share_curves,
        steps,
        {head.short: share for head, share in known.items()},
        focus=shown.short,
        even=even_look(film, model.config),
        moment=None if moment is None else moment.step,
        title=title,
    )
    sentence = share_sentence(of(model.config, shown), known[shown], steps.tolist(), place, over)
    most, also = f"{known[best][-1]:.2f}", ""
    if most != f"{known[shown][-1]:.2f}":
        also = f" Head {of(model.config, best).removeprefix('head ')} has most: {most}."
    plot(figure, key="film-heads", alt=sentence, height=400, makers=[last(model, film)])
    st.caption(f"{sentence}{also}")


@claim
def share_sentence(head: str, share: np.ndarray, steps: list[int], place: str, over: str) -> str:
    """How much a head looks at a place at the end, over what that is a mean, and how much it did at the beginning."""
    earlier = f" At step {steps[0]} it had {share[0]:.2f}." if len(steps) > 1 else ""
    return f"At step {steps[-1]} {head} has {share[-1]:.2f} of its attention on {place}: {over}.{earlier}"


model = session.chosen()
if model.run is None:
    st.title("There is no film of this model, because it was not trained.", anchor=False)
    st.info(
        "Its weights were written by hand. Choose a trained model in the sidebar, or press Train there. The film then "
        "shows how its heads form.",
        icon=":material/movie:",
    )
else:
    page(model, model.run)

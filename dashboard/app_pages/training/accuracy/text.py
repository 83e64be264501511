"""Accuracy on a text: by place in the window, by token, which token is taken for which, and the worst cases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.app_pages.training.accuracy import counts as accuracy_counts
from dashboard.app_pages.training.accuracy import figures
from dashboard.app_pages.training.accuracy.length import measured_length, pick_length
from dashboard.components.plot import coloured, plot
from dashboard.figures.accuracy import position_bars
from dashboard.models.model import Model
from dashboard.models.passages import in_a_line, known
from dashboard.parts import text
from dashboard.parts.claims import foremost
from dashboard.parts.prose import plain
from dashboard.parts.tables import height_of, number_columns, ticked_table
from dashboard.parts.text import whole, windows
from dashboard.parts.yardstick import ByLoss, yardstick
from dashboard.view import session
from dashboard.view.pages import PAGES
from transformer.analysis.accuracy import breakdown
from transformer.analysis.accuracy.breakdown import Answers
from transformer.analysis.accuracy.windows import ByPlace
from transformer.analysis.heads.measure import heads_of
from transformer.analysis.intervals import wilson
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed
from transformer.text.perplexity import said as in_words

READ = 2**13
"""Tokens that are read for the page."""
COMMONEST, CONFUSED = 40, 12
"""Tokens in the table, and in the map of what is said for what."""
HARDEST = 20


def page(model: Model) -> None:
    """What a text has in place of the page's first part: perplexity, and what more of the window is worth."""
    task, length = model.task, measured_length(model.task)
    yard = ByLoss(model, length, READ)
    read = yard.measured()
    found = ByPlace.of(read.nats, read.right)
    st.title(headline(float(read.right.mean()), read.nats.size, read.perplexity), anchor=False)
    st.markdown(
        f"**The task.** {task.law[0].upper()}{task.law[1:]}. Nobody knows how well that can be done. Always saying the "
        f"commonest token is right {task.chance:.2f} of the time. Knowing only how common each token is costs "
        f"{task.chance_loss:.2f} nats a token (nats: minus the logarithm of the probability of the right token)."
        f"{_whole(model)}"
    )
    left, right = st.container(key="accuracy-row").columns(2, gap="medium")
    with left:
        st.markdown("**What does a token cost?**")
        yard.by_position(read, None, key="accuracy", height=340, words=worth(found))
    with right:
        st.markdown("**How many tokens are guessed right?**")
        _guessed(model, found)
    left, right = st.columns([1, 2], gap="large")
    with left:
        pick_length("Length of the windows", task)
        st.metric(
            f"Perplexity in {windows(*read.nats.shape)}",
            in_words(read.perplexity),
            help=text.SEVERAL,
        )
    with right:
        _table(found)


@claim
def headline(right: float, tokens: int, perplexity: float) -> str:
    """How well it reads, in a sentence."""
    among = in_words(perplexity)
    return (
        f"It guesses {right:.2f} of {tokens:,} tokens right. Its perplexity is {among}: it is as "
        f"unsure as a fair choice among {among} tokens."
    )


@claim
def worth(found: ByPlace) -> str:
    """What the window before the last tokens is worth; of one window nobody knows what another would say.

    The costs at two stretches of the same windows are told apart where their intervals lie apart.
    """
    if len(found.names) < 2:
        return f"{found.nats[0]:.2f} nats a token."
    first, last = float(found.nats[0]), float(found.nats[-1])
    ends = f"At place {found.names[0]} of the window a token costs {first:.2f} nats, at {found.names[-1]} {last:.2f}."
    if found.windows < 2:
        return ends
    if abs(last - first) <= found.half[0] + found.half[-1]:
        return f"{ends} These windows show no difference."
    return f"{ends} The tokens before it {'save' if last < first else 'add'} {abs(last - first):.2f} nats."


def _whole(model: Model) -> str:
    """What all of the works that were held out cost, if that was measured with these weights."""
    kept = None if model.run is None else model.run.evaluation or {}
    if not kept or kept.get("snapshot") != model.run.digest(model.step) or "perplexity" not in kept:  # type: ignore[union-attr]
        return ""
    found = whole(kept)
    return f" {found[0].upper()}{found[1:]}: {kept['nats']:.3f} nats a token."


def _guessed(model: Model, found: ByPlace) -> None:
    """The share that is right, by place."""
    figure = coloured(
        position_bars,
        found.right,
        found.names,
        text.sentences(found),
        title="guessed right",
        against=(model.task.chance, "commonest"),
        interval=(found.low, found.high),
        top=1.0,
    )
    said = guessed_sentence(found)
    plot(figure, key="accuracy-guessed", alt=said, height=340)
    st.caption(f"{said} 95 % intervals. Dotted: always saying the commonest token.")


@claim
def guessed_sentence(found: ByPlace) -> str:
    """How many of the tokens are guessed right where a window begins and where it ends."""
    first, last = (f"{share:.2f}" for share in (found.right[0], found.right[-1]))
    if len(found.names) == 1:
        return f"{first} of the tokens are guessed right."
    return (
        f"At place {found.names[0]} of the window {first} of the tokens are guessed right, at {found.names[-1]} {last}."
    )


def _table(found: ByPlace) -> None:
    frame = pd.DataFrame(
        {
            "place": found.names,
            "nats a token": found.nats,
            "±": found.half,
            "perplexity": np.exp(found.nats).round(1),
            "guessed": found.right,
            "low": found.low,
            "high": found.high,
        }
    ).dropna(axis=1, how="all")
    columns = number_columns(frame.columns[1:], ["perplexity"])
    st.dataframe(frame, hide_index=True, column_config=columns, height=height_of(len(frame), 8))


# --- looking closer


def by_head(model: Model, length: int) -> None:
    """What silencing each head costs; a click enlarges it on every page."""
    found = list(heads_of(model.network()))
    focus = {str(head) for head in found if str(head) == session.settings().head}
    does = "Click a cell to enlarge that head on every page."
    yardstick(model, length).by_head((), found, set(), key="depth-head", choose=_enlarge, does=does)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        label = (
            f"See head {next(iter(focus)).split('.')[1]}.{next(iter(focus)).split('.')[-1]}" if focus else "See heads"
        )
        st.page_link(PAGES["heads"].script, label=label, icon=":material/grid_view:")
        st.page_link(PAGES["edits"].script, label="Edit", icon=":material/edit:")


def _enlarge(head: object) -> None:
    session.update(head=str(head))


def by_token(model: Model, length: int) -> None:
    """The commonest tokens in a table: how often each is guessed, and what is said in its place."""
    answers = accuracy_counts.answers(model, session.settings().sequences, length)
    frame = token_table(answers, model.task.vocabulary, COMMONEST)
    said = token_sentence(*(frame[name].tolist() for name in ("token", "times", "guessed")))
    st.markdown(f"**{plain(said)}**")
    columns = number_columns(("guessed", "low", "high", "nats a token", "share"), ["times"])
    st.dataframe(frame, hide_index=True, height=height_of(len(frame), 12), column_config=columns, alt=said)
    st.caption(
        f"{_asked(answers)} “Said instead” is the wrong token that the model says most often where this one is right."
    )


@claim
def token_sentence(tokens: Sequence[str], times: Sequence[int], guessed: Sequence[float]) -> str:
    """Which of the more frequent half of some tokens are guessed most often and least often, as it is written."""
    often = {at: share for at, share in enumerate(guessed) if times[at] >= np.median(times)}
    least = min(times[at] for at in often)
    if len(often) == 1:
        return f"‘{tokens[next(iter(often))]}’ is guessed {next(iter(often.values())):.2f} of the time."
    high, low = foremost(often), foremost({at: -share for at, share in often.items()})
    begin = f"Among {len(often)} tokens that occur {counted(least, 'time')} or more"
    if len(high) == len(often):
        return f"{begin}, each is guessed as often ({often[high[0]]:.2f})."
    return (
        f"{begin}, {_tokens(tokens, high)} {'is' if len(high) == 1 else 'are'} guessed most often "
        f"({often[high[0]]:.2f}) and {_tokens(tokens, low)} least often ({often[low[0]]:.2f})."
    )


def _tokens(tokens: Sequence[str], places: Sequence[int]) -> str:
    """ "‘the’ and ‘of’"; of many their number."""
    return f"{len(places)} of them" if len(places) > text.NAMED else listed([f"‘{tokens[at]}’" for at in places])


def token_table(answers: Answers, names: tuple[str, ...], most: int) -> pd.DataFrame:
    """The commonest targets, the most frequent first: times, share guessed with its interval, nats, and mistakes."""
    rows = breakdown.by_token(answers, breakdown.commonest(answers, most))
    right, times = np.array([each.right for each in rows]), np.array([each.times for each in rows])
    low, high = wilson(right, times)
    return pd.DataFrame(
        {
            "token": [names[each.token] for each in rows],
            "times": times,
            "guessed": right / times,
            "low": low,
            "high": high,
            "nats a token": [each.nats for each in rows],
            "said instead": ["" if each.instead is None else names[each.instead] for each in rows],
            "share": [each.often / each.times for each in rows],
        }
    )


def confusion(model: Model, length: int) -> None:
    """What is said for the commonest tokens, the rest drawn together."""
    answers, names = accuracy_counts.answers(model, session.settings().sequences, length), model.task.vocabulary
    tokens = breakdown.commonest(answers, CONFUSED)
    counts = breakdown.confusion_among(answers, tokens)
    labels = [names[token] for token in tokens]
    said = confusion_sentence(counts, labels)
    st.markdown(f"**{plain(said)}**")
    figure = coloured(figures.confusion_heatmap, counts, labels, [*labels, "other"])
    plot(figure, key="depth-confusion", alt=said, height=130 + 30 * len(tokens))
    st.caption(
        f"{_asked(answers)} A row is the right token, and its cells are the shares of what the model says there. The "
        f"last column is all other tokens together: the model knows {known(model.task)}, and ⟨unk⟩."
    )


@claim
def confusion_sentence(counts: np.ndarray, tokens: Sequence[str]) -> str:
    """Which of some tokens it says most often where another is right: int [true, said], one more column for others."""
    wrong = counts[:, : len(tokens)] * ~np.eye(len(tokens), dtype=bool)
    if len(tokens) == 1:
        return f"One token alone is asked for, ‘{tokens[0]}’."
    if not wrong.any():
        return f"It never says one of the {len(tokens)} commonest tokens where another of them is right."
    worst = np.argwhere(wrong == wrong.max()).tolist()
    if len(worst) > text.NAMED:
        most = counted(int(wrong.max()), "time")
        return f"Among the {len(tokens)} commonest tokens {len(worst)} confusions are the most frequent, {most} each."
    pairs = [
        f"‘{tokens[said]}’ where ‘{tokens[true]}’ is right ({wrong[true, said]:,} of {counts[true].sum():,} times)"
        for true, said in worst
    ]
    return f"Among the {len(tokens)} commonest tokens it most often says {listed(pairs)}."


def hardest(model: Model, length: int) -> None:
    """The windows that cost most; a tick hands one to every page."""
    answers = accuracy_counts.answers(model, session.settings().sequences, length)
    nats = -answers.log_probability.astype(np.float64).mean(axis=1)
    order = np.argsort(-nats, kind="stable")[:HARDEST]
    typed = [in_a_line(model.task.typed(answers.targets[i])) for i in order]
    wrong = (~answers.right).sum(axis=1)[order]
    frame = pd.DataFrame(
        {
            "passage": typed,
            "nats a token": nats[order],
            "perplexity": np.exp(nats[order]).round(1),
            "not guessed": wrong,
        }
    )
    said = hardest_sentence(nats, length)
    st.markdown(f"**{said}**")
    shown = in_a_line(model.task.typed(session.question(model)))
    ticked_table(
        frame,
        typed,
        [shown],
        lambda found: session.update(input=next(iter(found), "")),
        key="depth-hardest",
        mode="single-row",
        column_config={
            "passage": st.column_config.TextColumn("passage", width="large"),
            **number_columns(["nats a token"], ["perplexity"]),
        },
        alt=said,
    )
    st.caption(f"{_asked(answers)} Tick a row, and every page reads that passage.")


@claim
def hardest_sentence(nats: np.ndarray, length: int) -> str:
    """What the hardest and the easiest window cost, float [window]; of one window what it costs."""
    most, least, tokens = f"{nats.max():.2f}", f"{nats.min():.2f}", counted(length, "token")
    if len(nats) == 1:
        return f"The one window of {tokens} costs {most} nats a token."
    if most == least:
        return f"Each of {len(nats):,} windows of {tokens} costs {most} nats a token."
    return (
        f"The hardest of {len(nats):,} windows of {tokens} costs {most} nats a token, the easiest {least}. "
        f"The mean is {nats.mean():.2f}."
    )


def _asked(answers: Answers) -> str:
    many, length = answers.targets.shape
    return f"{windows(many, length)}."

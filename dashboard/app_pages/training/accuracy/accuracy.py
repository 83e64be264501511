"""How often each position is right, against what chance would give and what the mask lets be known."""

import pandas as pd
import streamlit as st

from dashboard.app_pages.training.accuracy import text
from dashboard.app_pages.training.accuracy.breakdown import closer_look
from dashboard.app_pages.training.accuracy.length import measured_length, pick_length
from dashboard.app_pages.training.accuracy.words import chance_sentence
from dashboard.models.model import Model
from dashboard.parts import learning
from dashboard.parts.prose import show_code
from dashboard.parts.tables import number_columns
from dashboard.parts.widgets import bound
from dashboard.view import session
from transformer.analysis.accuracy import ceilings


def lawful(model: Model) -> None:
    """What is right of a law's answer, place by place, with the ceiling."""
    task = model.task
    length = measured_length(task)
    measured = model.accuracy(session.settings().sequences, length=length)
    st.title(learning.verdict_sentence(measured, model.config), anchor=False)
    st.markdown(f"**The law.** {task.law[0].upper()}{task.law[1:]}. {chance_sentence(task, length)}")
    learning.accuracy(model, key="accuracy", height=420, length=length, heading=False)

    left, right = st.columns([1, 2], gap="large")
    with left:
        bound(
            st.select_slider,
            "Fresh sequences",
            "sequences",
            options=sorted({256, 1024, 4096, 16384, 65536, session.settings().sequences}),
            format_func=lambda n: f"{n:,}",
        )
        if len(task.lengths) > 1:
            pick_length("Length of the sequences", task)
        share = measured.exact / measured.sequences
        st.metric(
            "Whole answer right",
            f"{share:.1%}",
            help="The share of sequences in which every token of the answer is right",
        )
    with right:
        low, high = measured.interval()
        frame = pd.DataFrame(
            {
                "target": measured.names,
                "part": measured.groups,
                "accuracy": measured.mean,
                "low": low,
                "high": high,
                "ceiling": ceilings.ceiling(model.config, length).greatest,
                "right": measured.correct,
            }
        )
        columns = number_columns(("accuracy", "low", "high", "ceiling"), ["right"])
        st.dataframe(frame, hide_index=True, column_config=columns, height=320)


model = session.chosen()
if model.task.lawful:
    lawful(model)
else:
    text.page(model)
closer_look(model, measured_length(model.task))
show_code(
    "transformer.analysis.accuracy.by_position.accuracy_by_position",
    "transformer.analysis.intervals.wilson",
    "transformer.analysis.accuracy.ceilings.reachable",
    "transformer.analysis.accuracy.without_heads.ask",
    "transformer.analysis.accuracy.breakdown.confusion",
    "transformer.analysis.accuracy.breakdown.hardest",
)

"""What the pages about a model that is not ours begin with: it is opened, and has read its input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.models import imported
from dashboard.models.imported import Imported, Input, Look
from dashboard.parts import waiting
from dashboard.parts.prose import plain, sentence
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import clicks, session
from dashboard.view import imported as view
from transformer.foundation.checks import UserError, reason

if TYPE_CHECKING:
    from transformer.capturing.foreign import Foreign


def begin(title: DeltaGenerator) -> tuple[Imported, Foreign, Look] | None:
    """The model that the view names, opened, and what its attention did with the input; None where there is none yet.

    Then `title` and the page say why.
    """
    model = view.chosen()
    foreign = opened(model, title)
    seen = None if foreign is None else look(model, foreign, title)
    return None if foreign is None or seen is None else (model, foreign, seen)


def opened(model: Imported, title: DeltaGenerator) -> Foreign | None:
    """The model itself; None while its weights are read, and where they cannot be."""
    session.made_by(model.maker())
    try:
        found = waiting.ready(model.opened(), "Its weights are being read …")
    except Exception as error:  # whatever a stranger's model raises, the page stands
        title.title(f"{plain(model.name)} cannot be opened.", anchor=False)
        refused(error)
        return None
    if found is None:
        title.title(f"{plain(model.name)} is being opened.", anchor=False)
    elif not st.session_state.get("imported_open", True):
        clicks.again()  # the sidebar does not know yet what the model reads
    return found


def look(model: Imported, foreign: Foreign, title: DeltaGenerator) -> Look | None:
    """What its attention did with the input of the view. What cannot be read is said, and the suggestion stands."""
    for _ in range(2):
        asked = view.asked(foreign.says)
        try:
            return imported.look(model, asked)
        except UserError as error:
            if session.settings().imported_input or session.settings().imported_second:
                session.notice(f"The input cannot be read: {str(error).rstrip('.')}. The page’s own stands instead.")
                session.update(imported_input="", imported_second="")
                continue
            problem = error
        except Exception as error:  # the model is a stranger's
            problem = UserError(
                f"The model stopped with an error on this input. {_lacks(model, foreign, asked, error)}"
            )
        break
    title.title(f"{plain(model.name)} is open, and shows no attention on this input.", anchor=False)
    refused(problem)
    return None


def refused(error: BaseException) -> None:
    """Why a model cannot be opened or read, and what to type instead where there is code for it."""
    st.error(sentence(plain(reason(error).strip().rstrip("."))), icon=":material/error:")
    if code := getattr(error, "code", ""):
        st.code(code, language="python", wrap_lines=True)


def _lacks(model: Imported, foreign: Foreign, asked: Input, error: Exception) -> str:
    from transformer.capturing.foreign.model import stopped

    return stopped(foreign, imported.given(model, asked), error)


def most(values: np.ndarray) -> float:
    """The end of a scale: the greatest finite value; 1 where all are zero."""
    return float(values[np.isfinite(values)].max(initial=0.0)) or 1.0

"""Change the attention of a model that is not ours: remove heads or give it another mask, and see what it says then."""

from __future__ import annotations

import streamlit as st

from dashboard.app_pages.your_model.ablation import changed, masking, removal, words
from dashboard.models import imported
from dashboard.parts import imported as parts
from dashboard.parts.prose import plain, show_code
from dashboard.parts.widgets import late_title
from dashboard.view import imported as view
from transformer.foundation.checks import UserError, reason

title = late_title()
if begun := parts.begin(title):
    model, foreign, seen = begun
    asked = view.asked(foreign.says)
    removed, mask = removal.chosen(seen), masking.chosen(seen)
    after, problem = seen, ""
    if removed or mask is not None:
        try:
            heads, cells = imported.by_module(removed, seen.modules), masking.cells(seen, mask)
            after = imported.look(model, asked, heads, cells)
        except UserError as error:
            problem = str(error)
        except Exception as error:  # the model is a stranger's
            problem = f"with this change the model stopped with an error: {reason(error)}"
    what = words.changes(seen, removed, mask)
    if not what:
        title.title(words.NOTHING, anchor=False)
    elif problem:
        title.title(f"{what} the model cannot be asked.", anchor=False)
    else:
        title.title(words.headline(seen, after, what), anchor=False)
    if problem:
        st.error(plain(f"{problem[0].upper()}{problem[1:].rstrip('.')}."), icon=":material/error:")
    changed.output(foreign, seen, None if after is seen else after)
    st.header("Remove a head", anchor=False)
    removal.section(model, asked, seen, removed)
    st.header("Another mask", anchor=False)
    masking.section(seen, after, mask)
    show_code("transformer.capturing.changes.capture_changed", "transformer.capturing.outputs.difference")

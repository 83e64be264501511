"""Bring in a model: a folder or a name is looked at, and what it would take is said before its weights are read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import streamlit as st

from dashboard.models import imported
from dashboard.models.cache import cached
from dashboard.models.imported import LONGEST, Imported, Look
from dashboard.parts.imported import refused
from dashboard.parts.prose import plain
from dashboard.parts.widgets import barred, controlled
from dashboard.view import clicks, permission
from dashboard.view import imported as view
from transformer.foundation.checks import UserError
from transformer.foundation.program import program
from transformer.foundation.words import counted

if TYPE_CHECKING:
    from transformer.capturing.folders import Folder
    from transformer.capturing.foreign import Foreign

HOW = """
**A model of Hugging Face’s library.** Save it as a folder on the machine on which this dashboard runs, and write
that folder’s path above:

```text
model.save_pretrained("my-model")       # config.json and *.safetensors
tokenizer.save_pretrained("my-model")
```

Or write the name of a model that lies in that machine’s cache of Hugging Face, as `openai-community/gpt2`. Nothing is
fetched from anywhere, weights are read from safetensors only, and no code of the model’s is run.

**Any other PyTorch model.** Start the dashboard with a function that builds it:

```text
{program} run --module my_model:build
```

Attention is seen where the model calls `torch.nn.MultiheadAttention` or `F.scaled_dot_product_attention`, and where
what comes out of a softmax weighs values. Nothing in it is changed.
"""
WARNED = 2
"""Warnings that are shown one by one."""
SIDE = 512
"""Rows of the matrices whose product tells how fast this machine is."""


def bring_in(model: Imported) -> None:
    """The field for another model, and how one is brought in, folded away beside the one that is open."""
    from transformer.capturing import folders

    why = permission.for_the_owner("bring in models")
    with st.expander("Bring in a model of your own", icon=":material/input:"):
        typed = st.session_state.get("import_typed", "")

        def written(text: str) -> None:
            st.session_state.import_typed = text.strip()
            clicks.touch()

        controlled(
            st.text_input,
            "Folder, or name in the local cache of Hugging Face",
            key="control-import",
            value=typed,
            picked=written,
            max_chars=1000,
            placeholder="my-model, then Enter",
            **barred(why),
        )
        if typed and not why:
            _looked_at(typed)
        if problem := st.session_state.pop("import_problem", None):
            refused(problem)
        if imported.is_brought_in(model.name):
            st.button(
                f"Take “{plain(model.name)}” off the list",
                on_click=_take_out,
                args=(model.name,),
                icon=":material/delete:",
                **barred(permission.for_the_owner("take models off the list")),
            )
        if taken := st.session_state.get("taken_out"):
            st.button(f"Put “{plain(taken[0])}” back", on_click=_open, args=(taken[1],), icon=":material/undo:")
        if not folders.available():
            st.info(plain(folders.HOW), icon=":material/extension:")
        st.markdown(HOW.format(program=program()))


def _looked_at(typed: str) -> None:
    """What lies there, and what it would take; and the button that opens it."""
    from transformer.capturing.folders import located, look

    try:
        folder = look(located(typed))
    except UserError as error:
        refused(error)
        return
    st.markdown(estimate(folder))
    st.button("Open it", on_click=_open, args=(typed,), type="primary", icon=":material/input:")


def estimate(folder: Folder) -> str:
    """What a folder holds, and what it would take to open and to ask, in a sentence each."""
    from transformer.capturing.folders import free_memory

    needed, free = folder.needed(LONGEST), free_memory()
    seconds = folder.operations(128) / speed()
    room = "" if needed <= free else " **That is too much: it will not be opened.**"
    return (
        f"**{plain(folder.kind)}** with {folder.parameters:,} parameters. It takes about {size(needed)} of "
        f"memory, with inputs of up to {LONGEST} tokens; {size(free)} are free.{room} A pass over 128 tokens takes "
        f"about {folder.operations(128) / 1e9:,.1f} billion operations, some {seconds:.2g} s here, by a matrix product "
        "timed just now."
    )


def size(count: int) -> str:
    """Bytes in words: "498 MB"."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"


@cached(1)
def speed() -> float:
    """Operations a second in a product of two matrices, as this machine does it now."""
    import torch

    matrix = torch.ones(SIDE, SIDE)
    matrix @ matrix
    began = time.perf_counter()
    for _ in range(4):
        matrix @ matrix
    return 4 * 2 * SIDE**3 / (time.perf_counter() - began)


@clicks.once
@permission.owners
def _open(typed: str) -> None:
    try:
        view.choose(imported.bring_in(typed))
    except UserError as error:
        st.session_state.import_problem = error
        return
    st.session_state.import_typed = ""
    st.session_state.pop("taken_out", None)


@clicks.once
@permission.owners
def _take_out(name: str) -> None:
    try:
        st.session_state.taken_out = (name, imported.take_out(name))
        view.choose("")
    except UserError as error:
        st.session_state.import_problem = error


def facts(model: Imported, foreign: Foreign) -> None:
    """What the open model is, in a line."""
    said = foreign.kind if model.is_module else f"{foreign.kind}, {model.folder().parameters:,} parameters"
    longest = "" if foreign.longest is None else f" It reads up to {counted(foreign.longest, 'position')}."
    reads = " ".join(filter(None, [READS[foreign.says], plain(foreign.hint)]))
    st.caption(f"**{plain(model.name)}**: {plain(said)}.{longest} {reads}{SAMPLE if model.is_sample else ''}")


def unseen(seen: Look) -> None:
    """What of its attention could not be seen, or is not over the input's own positions; many are folded away."""
    for sentence in seen.unseen[:WARNED]:
        st.warning(plain(sentence), icon=":material/visibility_off:")
    if more := seen.unseen[WARNED:]:
        with st.expander(f"{counted(len(more), 'sentence')} more of this kind", icon=":material/visibility_off:"):
            st.markdown("\n".join(f"- {plain(sentence)}" for sentence in more))


SAMPLE = " It is a sample, so that there is something to look at: four of PyTorch’s own layers that read Shakespeare."
"""What follows of the model that is shipped for that."""
READS = {
    "text": "It reads a text, cut by its own tokenizer.",
    "pair": "It reads a text, and its decoder reads another.",
    "picture": "It reads a picture, cut into patches: each is a token.",
    "tokens": "",
    "token pair": "Its encoder and its decoder read tokens of their own.",
}

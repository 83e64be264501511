"""The table of pages: address, title, icon and menu of each, and what each needs of the chosen model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "app_pages"


@dataclass(frozen=True)
class Page:
    """One page. Its script lies in a folder of its own below its menu's folder, and both bear its address."""

    address: str
    """Its path in the URL. The first page is also opened by an empty one."""
    title: str
    icon: str
    menu: str = ""
    """The menu it stands in, as it is written on the screen."""
    transformer: bool = False
    """Does it show what only a transformer has?"""
    part: str = ""
    """The part of the model that it shows: "tokens", "positions", "attention", "block", "stream" or "output"; empty is
    all of it, or none."""
    own_input: bool = False
    """Does it ask by itself for what the model reads? Then the sidebar's input means nothing there."""
    imported: bool = False
    """Is it about a model that is not ours? Then the sidebar offers these, and not the runs."""

    @property
    def script(self) -> str:
        """The file that Streamlit runs, as a path: `st.Page`, `st.page_link` and `st.switch_page` take it."""
        folder = f"{self.menu.lower().replace(' ', '_')}/" if self.menu else ""
        return str(SCRIPTS / f"{folder}{self.address}/{self.address}.py")


LOOK_INSIDE, CHANGE_IT, TRAIN_IT, TEXT = "Look inside", "Change it", "Train it", "Text"
HOW_IT_BEGAN, LEARN_BY_DOING, ANY_MODEL = "How it began", "Learn by doing", "Any model"

PAGES = {
    page.address: page
    for page in (
        Page("overview", "Overview", "visibility", part="output"),
        Page("lectures", "Lectures", "school"),
        Page("machine", "The machine", "schema", LOOK_INSIDE),
        Page("heads", "Attention heads", "grid_view", LOOK_INSIDE, part="attention"),
        Page("inside", "Inside a head", "biotech", LOOK_INSIDE, transformer=True, part="attention"),
        Page("block", "Inside a block", "stacks", LOOK_INSIDE, transformer=True, part="block"),
        Page("layers", "Through the layers", "layers", LOOK_INSIDE, transformer=True, part="stream"),
        Page("positions", "Positional encoding", "waves", LOOK_INSIDE, transformer=True, part="positions"),
        Page("order", "Positions at work", "swap_vert", LOOK_INSIDE, transformer=True, part="positions"),
        Page("masks", "Mask effects", "filter_alt", CHANGE_IT, transformer=True, part="attention"),
        Page("information", "Follow the information", "conversion_path", CHANGE_IT, part="stream"),
        Page("edits", "Edits", "edit", CHANGE_IT, transformer=True, part="attention"),
        Page("film", "Training film", "movie", TRAIN_IT, part="attention"),
        Page("accuracy", "Accuracy by position", "bar_chart", TRAIN_IT, part="output"),
        Page("runs", "Runs and races", "flag", TRAIN_IT),
        Page("populations", "Populations", "groups", TRAIN_IT),
        Page("lengths", "What positions buy", "straighten", TRAIN_IT),
        Page("tokens", "Tokens and windows", "content_cut", TEXT, own_input=True, part="tokens"),
        Page("writing", "It writes", "edit_note", TEXT, own_input=True, part="output"),
        Page("reading", "It reads", "menu_book", TEXT, transformer=True, part="output"),
        Page("bottleneck", "The bottleneck", "compress", HOW_IT_BEGAN),
        Page("corners", "Square corners", "crop_square", HOW_IT_BEGAN),
        Page("context", "Attention by hand", "calculate", HOW_IT_BEGAN),
        Page("questions", "Five questions", "help", HOW_IT_BEGAN),
        Page("mistakes", "Gallery of mistakes", "bug_report", LEARN_BY_DOING, own_input=True),
        Page("exercises", "Exercises", "task_alt", LEARN_BY_DOING, own_input=True),
        Page("check", "Check mine", "fact_check", LEARN_BY_DOING, own_input=True),
        Page("imported", "Bring in a model", "input", ANY_MODEL, imported=True),
        Page("stream", "Its layers", "layers", ANY_MODEL, imported=True),
        Page("ablation", "Change its attention", "content_cut", ANY_MODEL, imported=True),
    )
}
"""Every page by its address, in the order of the menus."""
OVERVIEW = PAGES["overview"]
"""The page that an empty address opens."""

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


ATTENTION, POSITIONS, TRAINING, WHOLE_MODEL = "Attention", "Positions", "Training", "Whole model"
TEXT, LEARN, YOUR_MODEL = "Text", "Learn", "Your model"

PAGES = {
    page.address: page
    for page in (
        Page("overview", "Overview", "visibility", part="output"),
        Page("lectures", "Lectures", "school"),
        Page("heads", "Attention heads", "grid_view", ATTENTION, part="attention"),
        Page("inside", "Inside a head", "biotech", ATTENTION, transformer=True, part="attention"),
        Page("masks", "Mask effects", "filter_alt", ATTENTION, transformer=True, part="attention"),
        Page("edits", "Edits", "edit", ATTENTION, transformer=True, part="attention"),
        Page("positions", "Positional encoding", "waves", POSITIONS, transformer=True, part="positions"),
        Page("order", "Positions at work", "swap_vert", POSITIONS, transformer=True, part="positions"),
        Page("lengths", "What positions buy", "straighten", POSITIONS),
        Page("film", "Training film", "movie", TRAINING, part="attention"),
        Page("accuracy", "Accuracy by position", "bar_chart", TRAINING, part="output"),
        Page("runs", "Runs and races", "flag", TRAINING),
        Page("populations", "Populations", "groups", TRAINING),
        Page("machine", "The machine", "schema", WHOLE_MODEL),
        Page("block", "Inside a block", "stacks", WHOLE_MODEL, transformer=True, part="block"),
        Page("layers", "Through the layers", "layers", WHOLE_MODEL, transformer=True, part="stream"),
        Page("information", "Follow the information", "conversion_path", WHOLE_MODEL, part="stream"),
        Page("tokens", "Tokens and windows", "content_cut", TEXT, own_input=True, part="tokens"),
        Page("writing", "It writes", "edit_note", TEXT, own_input=True, part="output"),
        Page("reading", "It reads", "menu_book", TEXT, transformer=True, part="output"),
        Page("exercises", "Exercises", "task_alt", LEARN, own_input=True),
        Page("mistakes", "Gallery of mistakes", "bug_report", LEARN, own_input=True),
        Page("check", "Check mine", "fact_check", LEARN, own_input=True),
        Page("questions", "Five questions", "help", LEARN),
        Page("bottleneck", "The bottleneck", "compress", LEARN),
        Page("corners", "Square corners", "crop_square", LEARN),
        Page("context", "Attention by hand", "calculate", LEARN),
        Page("imported", "Bring in a model", "input", YOUR_MODEL, imported=True),
        Page("stream", "Its layers", "layers", YOUR_MODEL, imported=True),
        Page("ablation", "Change its attention", "content_cut", YOUR_MODEL, imported=True),
    )
}
"""Every page by its address, in the order of the menus."""
OVERVIEW = PAGES["overview"]
"""The page that an empty address opens."""

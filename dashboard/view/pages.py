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
    entry: str = ""
    """What the menu calls the pages that share a place in it: each is a tab there. Empty: the page stands alone."""
    transformer: bool = False
    """Does it show what only a transformer has?"""
    part: str = ""
    """The part of the model that it shows: "tokens", "positions", "attention", "block", "stream" or "output"; empty is
    all of it, or none."""
    follows: str = "input"
    """What of the sidebar it follows: "model", "step" (the model and its step), "input" (and what it reads), or ""."""
    imported: bool = False
    """Is it about a model that is not ours? Then the sidebar offers these, and not the runs."""

    @property
    def script(self) -> str:
        """The file that Streamlit runs, as a path: `st.Page`, `st.page_link` and `st.switch_page` take it."""
        folder = f"{self.menu.lower().replace(' ', '_')}/" if self.menu else ""
        return str(SCRIPTS / f"{folder}{self.address}/{self.address}.py")

    @property
    def tabs(self) -> tuple[Page, ...]:
        """The pages that share its place in the menus, itself among them. The menus open the first."""
        return tuple(each for each in PAGES.values() if self.entry == each.entry != "") or (self,)

    @property
    def stands_in_bar(self) -> bool:
        """Does its entry stand in the bar by itself, and in no menu?"""
        return self.entry == self.menu


ATTENTION, POSITIONS, TRAINING, WHOLE_MODEL = "Attention", "Positions", "Training", "Whole model"
TEXT, LEARN, YOUR_MODEL = "Text", "Learn", "Your model"
MISTAKES, BEGINNING = "Mistakes in code", "How it began"

PAGES = {
    page.address: page
    for page in (
        Page("overview", "Overview", "visibility", part="output"),
        Page("lectures", "Lectures", "school", follows=""),
        Page("heads", "Attention heads", "grid_view", ATTENTION, part="attention"),
        Page("inside", "Inside a head", "biotech", ATTENTION, transformer=True, part="attention"),
        Page("masks", "Mask effects", "filter_alt", ATTENTION, transformer=True, part="attention"),
        Page("edits", "Edits", "edit", ATTENTION, transformer=True, part="attention"),
        Page("positions", "Positional encoding", "waves", POSITIONS, transformer=True, part="positions"),
        Page("order", "Positions at work", "swap_vert", POSITIONS, transformer=True, part="positions"),
        Page("lengths", "What positions buy", "straighten", POSITIONS, follows=""),
        Page("film", "Training film", "movie", TRAINING, part="attention", follows="step"),
        Page("accuracy", "Accuracy by position", "bar_chart", TRAINING, part="output", follows="step"),
        Page("runs", "Runs and races", "flag", TRAINING, "Runs", follows="model"),
        Page("populations", "Populations", "groups", TRAINING, "Runs", follows=""),
        Page("machine", "The machine", "schema", WHOLE_MODEL),
        Page("block", "Inside a block", "stacks", WHOLE_MODEL, transformer=True, part="block"),
        Page("layers", "Through the layers", "layers", WHOLE_MODEL, transformer=True, part="stream"),
        Page("information", "Follow the information", "conversion_path", WHOLE_MODEL, part="stream"),
        Page("writing", "It writes", "edit_note", TEXT, TEXT, part="output", follows="step"),
        Page("reading", "It reads", "menu_book", TEXT, TEXT, transformer=True, part="output"),
        Page("tokens", "Tokens and windows", "token", TEXT, TEXT, part="tokens", follows="model"),
        Page("exercises", "Exercises", "task_alt", LEARN, follows=""),
        Page("mistakes", "Gallery of mistakes", "bug_report", LEARN, MISTAKES, follows=""),
        Page("check", "Check mine", "fact_check", LEARN, MISTAKES, follows=""),
        Page("questions", "Five questions", "help", LEARN, follows="step"),
        Page("bottleneck", "The bottleneck", "compress", LEARN, BEGINNING, follows=""),
        Page("corners", "Square corners", "crop_square", LEARN, BEGINNING, follows=""),
        Page("context", "Attention by hand", "calculate", LEARN, BEGINNING, follows=""),
        Page("imported", "Bring in a model", "input", YOUR_MODEL, YOUR_MODEL, imported=True),
        Page("stream", "Its layers", "table_rows", YOUR_MODEL, YOUR_MODEL, imported=True),
        Page("ablation", "Change its attention", "content_cut", YOUR_MODEL, YOUR_MODEL, imported=True),
    )
}
"""Every page by its address, in the order of the menus."""
OVERVIEW = PAGES["overview"]
"""The page that an empty address opens."""

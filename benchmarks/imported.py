"""When all heads of an imported model stand, beside others: `python benchmarks/imported.py [--quick] [--save]`.

--save writes IMPORTED.md. A GPT-2 of Hugging Face's with random weights, 12 × 12 heads and width 768, reads 128 tokens
on the page "Bring in a model". It is chosen in the open app while another model is shown: once with its weights still
on the disk, then, in turns with the others, with its weights in memory. BertViz's head view and model view draw the
very same patterns in pages that were made beforehand (see kit/viewers.py). Time runs from the click, or from the
navigation, until everything has been handed to the browser, and on to the second frame after that.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from kit.pages import give_up, load, machine, options, page, spread, table
from kit.tabs import one_chromium, open_tab
from kit.viewers import Patterns, Viewer, viewers
from playwright.sync_api import Browser

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.kit.driving import choose, dashboard  # noqa: E402
from tests.kit.foreign.folders import byte_level  # noqa: E402
from transformer import capture  # noqa: E402

PAGE = "IMPORTED.md"
PROGRAMS = HERE.parent / "build" / "explore"
"""Where the rivals' programs are kept between two calls."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PAINTED = """() => {
  const grid = find(document, '__grid')?.__grid, large = find(document, '__plot');
  if (grid?.layout?.boxes.length !== %d || !large?.dataset.head) return false;
  return large.__plot.shown?.figure.layout.meta?.tokens?.x.length === %d;
}"""
"""Whether the grid shows so many heads, and the large one so many tokens."""


@dataclass(frozen=True)
class Size:
    """A GPT-2's shape, and how many tokens it reads."""

    layers: int
    heads: int
    width: int
    tokens: int


FULL, QUICK, OTHER = Size(12, 12, 768, 128), Size(2, 2, 32, 16), Size(1, 1, 8, 8)


def made(folder: Path, size: Size) -> None:
    """A folder as people have it, with a tokenizer that takes letters one by one."""
    tokenizer = byte_level()
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=tokenizer.get_vocab_size(),
        n_layer=size.layers,
        n_head=size.heads,
        n_embd=size.width,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = transformers.GPT2LMHeadModel(config)
    with torch.no_grad():
        for block in model.transformer.h:
            block.attn.c_attn.weight *= 5  # an even look everywhere would be no picture
    model.save_pretrained(folder)
    words.save_pretrained(folder)


def text(folder: Path, tokens: int) -> str:
    """A text that its tokenizer cuts into so many tokens."""
    words = transformers.AutoTokenizer.from_pretrained(folder)
    found = ""
    while len(words(found)["input_ids"]) < tokens:
        found += LETTERS[7 * len(found) % 26]
    return found


def patterns(folder: Path, read: str) -> Patterns:
    """The same patterns, by the library."""
    words = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    tokens = words(read, return_tensors="pt")["input_ids"]
    seen = capture(model, tokens)
    names = [str(name) for name in words.convert_ids_to_tokens(tokens[0])]
    return Patterns(names, torch.cat([seen[f"{site}.pattern"] for site in seen.attentions()]))


def opened(chromium: Browser, app: str, size: Size, read: str) -> float:
    """Seconds from the click on the model in the menu of the open app until all its heads stand."""
    with open_tab(chromium) as tab:
        tab.open(f"{app}/imported?imported=other&imported_input={read}", PAINTED % (1, size.tokens))
        tab.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", state="attached")
        tab.page.wait_for_timeout(500)
        tab.watch(PAINTED % (size.layers * size.heads, size.tokens))
        choose(tab.page, "Imported model", "gpt2")
        return tab.finished() - tab.clicked()


def measure(chromium: Browser, size: Size, rivals: Sequence[Viewer], rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        made(root / "models" / "gpt2", size)
        made(root / "models" / "other", OTHER)
        read = text(root / "models" / "gpt2", size.tokens)
        (root / "runs").mkdir()
        found: dict[str, list[float]] = {"ours, weights on the disk": [], "ours, open app": []}
        seen, pages = patterns(root / "models" / "gpt2", read) if rivals else None, {}
        for number, viewer in enumerate(rivals):
            path = root / f"{number}.html"
            path.write_text(viewer.page(seen), encoding="utf-8")
            pages[viewer.name] = path.as_uri(), viewer.ready(seen)
        for program in PROGRAMS.glob("*"):
            (root / program.name).symlink_to(program)
        with dashboard(root / "runs", ATTENTION_LAB_MODELS=str(root / "models")) as app:
            found["ours, weights on the disk"].append(opened(chromium, app, size, read))
            for _ in range(rounds):
                found["ours, open app"].append(opened(chromium, app, size, read))
                for rival, (address, ready) in pages.items():
                    with open_tab(chromium) as tab:
                        found.setdefault(rival, []).append(tab.open(address, ready))
        for way, seconds in found.items():
            print(f"| {size.tokens} | {size.layers} × {size.heads} | {way} | {spread(seconds, 2)} |", flush=True)


def main() -> None:
    arguments, busy = options(__doc__, PAGE).parse_args(), load()
    rivals, absent = viewers(PROGRAMS)
    rivals = [viewer for viewer in rivals if viewer.name.startswith("BertViz")]
    if not rivals and arguments.save:
        give_up(absent)
    with one_chromium() as chromium, page(PAGE, "All heads of an imported model", save=arguments.save):
        if not rivals:
            print(f"Without these rivals: {absent}.\n")
        print(f"{machine(torch.device('cpu'), busy)}. GPT-2 with random weights.\n")
        table("tokens", "layers × heads", "viewer", "s, median", "least to most")
        measure(chromium, QUICK if arguments.quick else FULL, rivals, 1 if arguments.quick else 5)


if __name__ == "__main__":
    main()

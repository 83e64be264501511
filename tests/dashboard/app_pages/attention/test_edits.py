"""The page of edits: what a removal costs, counted anew, chips by hand, and links."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from dashboard.app_pages.attention.edits.second_input import patching_sentence
from dashboard.components.payload import unpack
from tests.kit.models import untrained
from tests.kit.pages import array, counted, figures, laid_out, link, network, open_page, press, shown, trace
from transformer import observe
from transformer.analysis.batches import questions
from transformer.analysis.heads.measure import measure_removal
from transformer.analysis.interventions.patching import Patching
from transformer.config import TaskConfig
from transformer.edits.heads.zero import AblateHead
from transformer.training.runs import Run

SITE = "decoder.0.self_attention"


def test_the_page_says_what_a_removal_costs():
    model, config = network("reverse")
    app = open_page("edits", run="reverse", edits=f"zero:{SITE}.2~zero:{SITE}.0~-swap:3,5")
    rng = np.random.default_rng([config.training.seed + 1, 1])
    tokens, _, targets = laid_out(config, rng.integers(0, 10, (1024, 8)))
    edits = (AblateHead(f"{SITE}.z", 2), AblateHead(f"{SITE}.z", 0))
    after = (observe(model, tokens, edits).logits.argmax(-1).numpy() == targets).mean(axis=0)
    before = counted(model, config, 1024).mean(axis=0)
    np.testing.assert_allclose(array(trace(app, "edits-accuracy", "after")["y"]), after, atol=1e-6)
    np.testing.assert_allclose(array(trace(app, "edits-accuracy", "before")["y"]), before, atol=1e-6)
    assert app.title[0].value == (
        f"With 2 edits the second half falls from {before[8:].mean():.2f} to {after[8:].mean():.2f}."
    )


def test_an_edit_is_put_out_and_taken_away_at_its_chip(root: Path):
    untrained(root / "small", TaskConfig(length=3), n_layers=1)
    app = open_page("edits", edits=f"zero:{SITE}.1~zero:{SITE}.0~-swap:3,5")
    assert [toggle.value for toggle in app.toggle if toggle.key.startswith("chip-")] == [True, True, False]
    app.toggle(key=f"chip-zero:{SITE}.0").set_value(False).run()
    assert link(app)["edits"] == f"zero:{SITE}.1~-zero:{SITE}.0~-swap:3,5"
    assert "head 0.1 removed" in app.title[0].value
    app.button(key=f"cross-zero:{SITE}.1").click().run()
    assert link(app)["edits"] == f"-zero:{SITE}.0~-swap:3,5"
    assert len(figures(app)) == 3


def test_what_cannot_be_edited_or_touches_nothing_is_said_at_its_chip_and_nonsense_once():
    sentences = {
        "zero:decoder.7.self_attention.0": "met no site",
        f"patch-step:{SITE}.0:40": "is the model of step 40 already",
        f"patch-step:{SITE}.0:5": "No weights of step 5 were kept",
        f"patch-input:{SITE}.0:3_1_4_1_5_9_2_6": "reads that input already",
        f"patch-input:{SITE}.0:3_1": "has 2 symbols, and this one has 8",
        f"patch-input:{SITE}.0:3_x": "“x” is not a symbol of this task",
        f"patch-input:{SITE}.9:3_1_4_1_5_9_2_7": "There is no head 9",
        f"patch-step:{SITE}.9:20": "There is no head 9",
        f"painted:{SITE}.0:4x4x8421": "painted for 4 × 4 tokens, and here are 16 × 16",
    }
    app = open_page("edits", run="reverse", edits="~".join([*sentences, "nonsense"]))
    for error, sentence in zip(app.error, sentences.values(), strict=True):
        assert sentence in error.value
    assert ["cannot be read" in warning.value for warning in app.warning] == [True]
    assert app.title[0].value.startswith("Nothing is edited")


@pytest.mark.nightly
@torch.no_grad()
def test_the_page_patches_each_sequence_from_another_step_and_all_from_one_input():
    (model, config), (before, _) = network("reverse"), network("reverse", 20)
    rng = np.random.default_rng([config.training.seed + 1, 1])
    tokens, _, targets = laid_out(config, rng.integers(0, 10, (1024, 8)))
    one, _, _ = laid_out(config, np.array([[9, 1, 4, 1, 5, 9, 2, 6]]))
    z = {
        f"patch-step:{SITE}.2:20": observe(before, tokens)[f"{SITE}.z"],
        f"patch-input:{SITE}.2:9_1_4_1_5_9_2_6": observe(model, one)[f"{SITE}.z"].expand(1024, -1, -1, -1),
    }
    for text, handed in z.items():
        app = open_page("edits", run="reverse", edits=text)
        mixed = observe(model, tokens)[f"{SITE}.z"].clone()
        mixed[:, 2] = handed[:, 2]
        # PyTorch's own hook puts in what was mixed here: another way in than the library's.
        merged = mixed.transpose(1, 2).flatten(2)
        hook = model.decoder[0].self_attention.out.register_forward_pre_hook(lambda *_, merged=merged: (merged,))
        right = (model(tokens).argmax(-1).numpy() == targets).mean(axis=0)
        hook.remove()
        np.testing.assert_allclose(array(trace(app, "edits-accuracy", "after")["y"]), right, atol=2e-3)


def test_the_map_of_removals_is_a_loop_over_heads_under_the_edits():
    model, config = network("reverse")
    task = config.build_task()
    batch, _ = questions(task, 256, 8, 0)
    tokens, _, targets = laid_out(config, batch.tokens[:, :8])

    def right(*heads):
        edits = tuple(AblateHead(f"decoder.{layer}.self_attention.z", head) for layer, head in heads)
        said = observe(model, tokens, edits).logits.argmax(-1).numpy()
        return (said == targets)[:, 8:].mean()

    gone = (0, 2)
    expected = [[right(gone) - right(gone, (layer, head)) for head in range(4)] for layer in range(2)]
    measured = measure_removal(model, task, (AblateHead(f"{SITE}.z", 2),)).mean
    np.testing.assert_allclose(measured.reshape(2, 4), expected, atol=1e-9)
    app = open_page("edits", run="reverse", edits=f"zero:{SITE}.2")
    drawn = array(figures(app)["edits-removal"]["data"][0]["z"])
    np.testing.assert_allclose(drawn, expected, atol=1e-6)


@pytest.mark.nightly
def test_every_kind_of_edit_can_be_added_by_hand_and_lives_in_the_link(root: Path):
    untrained(root / "small", TaskConfig(length=3), n_layers=1)
    shutil.copy(Run(root / "small").snapshot(0), root / "small" / "snapshots" / "step-000020.safetensors")
    added = {
        "shuffled": f"shuffled:{SITE}.0",
        "shift": f"shift:{SITE}.0:1",
        "patch-input": f"patch-input:{SITE}.0:4_1_4",
        "patch-step": f"patch-step:{SITE}.0:0",
        "swap": "swap:1,2",
        "places-turn": "places-turn:1",
        "unplaced": "unplaced",
    }
    app = open_page("edits")
    for kind in added:
        app.selectbox(key="edit-kind").set_value(kind).run()
        press(app, "Add")
        assert not app.error, kind
    assert link(app)["edits"] == "~".join(added.values())
    app.selectbox(key="edit-kind").set_value("patch-input").run()
    app.text_input(key="edit-input").set_value("<b>~:").run()
    press(app, "Add")
    assert ["needs an input such as 3_1_4" in shown(error.value) for error in app.error] == [True]
    assert link(app)["edits"] == "~".join(added.values())


def test_a_painted_pattern_begins_where_the_head_looks():
    model, config = network("reverse")
    app = open_page("edits", run="reverse")
    app.selectbox(key="edit-kind").set_value("painted").run()
    press(app, "Add")
    tokens, _, _ = laid_out(config, np.array([[3, 1, 4, 1, 5, 9, 2, 6]]))
    pattern = observe(model, tokens)[f"{SITE}.pattern"][0, 0].numpy()
    cells = np.zeros((16, 16), dtype=np.uint8)
    for query in range(16):
        cells[query, pattern[query].argmax()] = 1
    bits = "".join(str(cell) for cell in cells.ravel())
    assert link(app)["edits"] == f"painted:{SITE}.0:16x16x{int(bits, 2):064x}"
    messages = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
    (header, body) = next(message for message in messages if "words" in message[0])
    assert header["words"]["on"] == "looks at"
    assert "".join(f"{byte:08b}" for byte in body) == bits


def test_what_fits_this_length_only_is_not_said_to_keep_the_accuracy():
    app = open_page("edits", run="reverse", input="3 1 4", edits=f"patch-input:{SITE}.0:2_7_1")
    assert app.title[0].value == (
        "With head 0.0 as in input 2 7 1 the model can be asked only inputs of 3 symbols, and it was trained on others."
    )
    assert "after" not in {trace.get("name") for trace in figures(app)["edits-accuracy"]["data"]}
    assert any("that input has 3 symbols, and this one has 8" in info.value for info in app.info)


@pytest.mark.parametrize(
    ("recovered", "said"),
    [
        ([[1, 1], [0.2, 0.9]], "patching decoder.0.resid_mid at positions 3–4 brings back most: 0.90 of {}."),
        ([[1, 1], [0.9, 0.2]], "patching decoder.0.resid_mid at position 2 brings back most: 0.90 of {}."),
        ([[1, 1], [0.901, 0.9]], "2 of these patches bring back most: 0.90 of {} each."),
        (
            [[1, 1], [0.901, 0.1], [0.9, 0.0]],
            "patching decoder.0.resid_mid or decoder.0.resid_post at position 2 brings back most: 0.90 of {} each.",
        ),
        ([[1, 1], [-0.5, 0.004]], "no patch brings back anything of {}."),
        ([[1, 1], [-0.5, np.nan]], "no patch brings back anything of {}."),
    ],
)
def test_the_patch_that_brings_back_most_is_named_where_it_is_one(recovered: list[list[float]], said: str) -> None:
    """Past the embedding, which brings back all."""
    sites = ("decoder.0.resid_pre", "decoder.0.resid_mid", "decoder.0.resid_post")[: len(recovered)]
    seen = Patching(sites, np.array(recovered), 1.0, 0.0, 1)
    said = f"After the embedding, {said.format('the logit difference')}"
    assert patching_sentence(seen, ["2", "3–4"]) == said

"""The first page: its answer and arcs against the model itself, its cards, what is typed, what it opens on."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.overview import cards, words
from dashboard.components.arcs import Arcs, Looks, Said
from dashboard.components.payload import unpack
from dashboard.theme import LIGHT
from dashboard.view.pages import PAGES
from tests.kit.pages import PI, RUNS, answer, counted, link, network, open_page
from transformer import observe
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import build
from transformer.positions.sinusoidal import sinusoids


def arcs(app: AppTest) -> tuple[dict, np.ndarray]:
    """What the rows of tokens are sent: header, and the pattern behind the arcs."""
    header, body = next(
        message for each in app.get("bidi_component") if "said" in (message := unpack(each.proto.bytes))[0]
    )
    looks = header["looks"]
    return header, np.frombuffer(body, "<f4", np.prod(looks["shape"]), looks["pattern"]).reshape(looks["shape"])


@pytest.mark.daily(2)
@pytest.mark.parametrize("run", RUNS)
def test_each_arc_leads_from_an_answer_to_the_tokens_that_its_query_reads(run: str) -> None:
    """Of the head in focus, laid out anew: which query says an answer, and at which token each key stands."""
    model, config = network(run)
    task, said = config.build_task(), answer(model, config, PI)
    header, pattern = arcs(open_page(run=run))
    names = task.vocabulary
    assert header["question"] == [str(token) for token in PI]
    assert [each["text"] for each in header["said"]] == [names[token] for token in said]
    assert [each["truth"] for each in header["said"] if each["verdict"] != "open"] == [
        names[token]
        for token, each in zip(task.answer(np.array(PI)), header["said"], strict=True)
        if each["verdict"] != "open"
    ]
    drawn = [
        *header["question"],
        *([header["separator"]] if header["separator"] else []),
        *(names[each] for each in said),
    ]
    own = [*PI, task.separator, *said][:-1] if header["separator"] else PI
    if task.has_source:
        source, tokens, site = torch.tensor([PI]), torch.tensor([[task.separator, *said[:-1]]]), "cross_attention"
    else:
        source, tokens, site = None, torch.tensor([own]), "self_attention"
    seen = observe(model, tokens, source=source)
    fits = [
        seen[f"{path}.pattern"][0, head].numpy()
        for path in seen.attentions()
        if path.endswith(site)
        for head in range(seen[f"{path}.pattern"].shape[1])
    ]
    assert min(np.abs(each - pattern).max() for each in fits if each.shape == pattern.shape) < 1e-5
    keys = PI if task.has_source else own
    assert [drawn[place] for place in header["looks"]["places"]] == [names[token] for token in keys]
    first = len(PI) if header["separator"] else 0  # the query that says the first answer: SEP, or the first of all
    assert header["looks"]["rows"] == [first + i for i in range(len(said))]


def test_three_digits_are_answered_by_a_model_of_all_lengths_and_the_others_say_what_they_were_trained_on() -> None:
    app = open_page(run="reverse", input="1 2 3")
    assert app.title[0].value.startswith("This transformer was trained on eight digits only: of three digits, ")
    assert "Train one on 1 to 8 symbols" in [each.label for each in app.button]
    assert "Train one on 1 to 8 symbols" not in [each.label for each in open_page(run="reverse").button]


def test_the_first_page_opens_on_the_model_of_all_lengths_and_a_link_on_what_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dashboard.models.menu.OPENING", "reverse-sinusoidal")  # any but the first
    assert link(open_page())["run"] == "reverse-sinusoidal"
    assert link(open_page("heads"))["run"] == "reverse"
    assert link(open_page(step="0"))["run"] == "reverse"
    monkeypatch.setattr("dashboard.models.menu.OPENING", "gone")
    assert link(open_page())["run"] == "reverse"


def test_every_one_of_the_four_things_has_a_card_that_leads_to_it() -> None:
    app = open_page(run="reverse")
    led = {each.proto.page for each in app.get("page_link")}
    assert led >= {PAGES[name].address for name in ("positions", "heads", "masks", "accuracy", "film", "lectures")}


def test_the_bars_on_the_cards_are_the_accuracies_under_the_masks_that_stand_beside_them() -> None:
    """Counted here on other sequences: four standard errors of the difference."""
    model, config = network("reverse")
    hidden = build(replace(config, model=replace(config.model, mask="hide:3")))
    hidden.load_state_dict(model.state_dict())
    told = re.findall(
        r"Accuracy of each token, in order: ([\d., ]+)",
        " ".join(each.value for each in open_page(run="reverse").get("html")),
    )
    assert len(told) == 2
    for bars, counts, n in zip(
        told, (counted(hidden.eval(), config), counted(model, config)), (512, 1024), strict=True
    ):
        found = np.array([float(each) for each in bars.split(", ")])
        expected = counts.mean(axis=0)
        assert (np.abs(found - expected) <= 4 * np.sqrt(expected * (1 - expected) * (1 / n + 1 / 4096)) + 0.006).all()


def test_the_waves_on_the_card_are_the_sinusoidal_encoding() -> None:
    positions, width = cards.WAVES
    np.testing.assert_allclose(cards.sinusoids(), sinusoids(torch.arange(positions), width).numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("task", "title"),
    [
        (TaskConfig(min_length=1), "This transformer reads up to eight digits and writes them backwards."),
        (TaskConfig(min_length=4), "This transformer reads four to eight digits and writes them backwards."),
        (TaskConfig(task="copy", length=1), "This transformer reads one digit and writes it again."),
        (
            TaskConfig(task="sort", symbols=11, length=13),
            "This transformer reads 13 symbols and writes them in ascending order.",
        ),
    ],
)
def test_the_title_says_the_task_in_words(task: TaskConfig, title: str) -> None:
    right = np.ones(task.length, dtype=bool)
    assert words.headline(RunConfig(task=task, model=ModelConfig()), 1, task.length, right, right) == title


@pytest.mark.parametrize(
    ("looks", "sentence"),
    [
        (Looks("head 0.0", np.zeros((2, 3)), (0,), (0, 1)), "1 rows for 1 answers, 2 places for 3 keys"),
        (Looks("head 0.0", np.zeros((2, 2)), (2,), (0, 1)), "beyond the pattern [2, 2] or 3 tokens"),
        (Looks("head 0.0", np.zeros((2, 2)), (1,), (0, 3)), "beyond the pattern [2, 2] or 3 tokens"),
    ],
)
def test_arcs_that_lead_nowhere_are_refused(looks: Looks, sentence: str) -> None:
    made = Arcs(("1",), [Said("1", "right", "1")], key="k", alt="One token.", hint="", separator="SEP", looks=looks)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        made.pack(LIGHT)

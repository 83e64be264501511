"""All heads in one file: every number is the model's, every word is as it was given, and nobody is asked."""

from __future__ import annotations

import base64
import gzip
import json
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import dashboard
from dashboard.components.documents.bundle import WEB
from dashboard.components.payload import unpack
from dashboard.parts.notebook import document
from dashboard.parts.notebook.heads import clearest, seen_attentions
from tests.kit.driving import ROOT
from tests.kit.models import small, tokens_of
from transformer import capture, observe
from transformer.analysis.findings import Attention
from transformer.foundation.checks import UserError
from transformer.observation import PAGES, Observation

LETTERS = tuple("abcdef")


def written(path: Path) -> dict[str, Any]:
    """The one document of a page."""
    (packed,) = re.findall(r'id="documents">([^<]*)</script>', path.read_text())
    (found,) = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found


def components(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in parts:
        if "name" in part:
            yield part
        for column in part.get("columns", []):
            yield from components(column["parts"])


def grid_and_heads(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """What the grid is sent, the figure of each head, and what is said of each."""
    small_, large = components(written(path)["parts"])
    messages = [unpack(gzip.decompress(base64.b64decode(each))) for each in large["choice"]["messages"]]
    header, _ = unpack(base64.b64decode(small_["message"]))
    return header, [json.loads(body) for _, body in messages], [header["alt"] for header, _ in messages]


def numbers(trace: dict[str, Any]) -> np.ndarray:
    z = trace["z"]
    return np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"]).reshape(
        [int(side) for side in z["shape"].split(",")]
    )


def test_every_head_in_the_page_is_the_models_own(tmp_path: Path) -> None:
    model, tokens = small(n_layers=2), tokens_of(1, 6)
    seen = observe(model, tokens)
    path = dashboard.to_html(seen, tmp_path / "heads.html", LETTERS)
    grid, figures, said = grid_and_heads(path)
    pattern = torch.cat([seen[f"decoder.{layer}.self_attention.pattern"][0] for layer in range(2)]).numpy()
    assert len(figures) == len(pattern) == len(grid["panels"]) == 8
    for figure, one in zip(figures, pattern, strict=True):
        allowed = np.tril(np.ones((6, 6), dtype=bool))
        np.testing.assert_array_equal(np.isnan(numbers(figure["data"][0])), ~allowed)
        np.testing.assert_allclose(numbers(figure["data"][0])[allowed], one[allowed], atol=1e-6)
        assert figure["layout"]["meta"]["tokens"] == {"x": list(LETTERS), "y": list(LETTERS)}
    assert [figure["layout"]["meta"]["head"]["number"] for figure in figures] == list(range(8))
    for sentence, one in zip(said, pattern, strict=True):
        row, column = np.unravel_index(one[1:].argmax(), (5, 6))
        largest = "Of queries that see several keys, the largest weight is"
        told = f"{largest} {one[1:].max():.2f}: query '{LETTERS[row + 1]}' at {row + 2} "
        assert sentence.endswith(f"{told}reads '{LETTERS[column]}' at {column + 1}.")


class Theirs(nn.Module):
    """A model of somebody else, whose one layer of PyTorch's attention has three heads."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.attend = nn.Embedding(10, 12), nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        return self.attend(x, x, x)[0]


def test_a_model_of_somebody_else_is_shown_the_same_way(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, tokens = Theirs(), tokens_of(1, 6)
    _, figures, _ = grid_and_heads(dashboard.to_html(capture(model, tokens), tmp_path / "heads.html", LETTERS))
    x = model.embed(tokens)
    _, pattern = model.attend(x, x, x, average_attn_weights=False)
    for figure, one in zip(figures, pattern[0].detach().numpy(), strict=True):
        np.testing.assert_allclose(numbers(figure["data"][0]), one, atol=1e-6)


def test_an_encoder_s_heads_bear_the_names_of_its_own_tokens(tmp_path: Path) -> None:
    seen = observe(small("encoder-decoder"), tokens_of(1, 6), source=tokens_of(1, 4, 1))
    path = dashboard.to_html(seen, tmp_path / "heads.html", LETTERS, sources=tuple("wxyz"))
    grid, figures, _ = grid_and_heads(path)
    shown = {
        panel["group"]: (grid["labels"][panel["queries"]], grid["labels"][panel["keys"]]) for panel in grid["panels"]
    }
    assert shown == {
        "encoder self-attention": (list("wxyz"), list("wxyz")),
        "decoder self-attention": (list("abcdef"), list("abcdef")),
        "cross-attention": (list("abcdef"), list("wxyz")),
    }
    assert {figure["layout"]["meta"]["head"]["name"].split(".")[2] for figure in figures} == {
        "self_attention",
        "cross_attention",
    }


def test_without_names_tokens_are_called_by_their_numbers(tmp_path: Path) -> None:
    seen = observe(small(), torch.tensor([[3, 1, 4]]))
    _, figures, _ = grid_and_heads(dashboard.to_html(seen, tmp_path / "heads.html"))
    assert figures[0]["layout"]["meta"]["tokens"]["x"] == ["3", "1", "4"]


def test_the_page_asks_nobody_and_runs_nothing_that_a_token_says(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    seen = observe(small(), tokens_of(1, 6))
    path = dashboard.to_html(seen, tmp_path / "heads.html", (evil, "<b>", "\n", "w" * 500, "é", ""), title=evil)
    page = path.read_text()
    assert "alert(1)</script>" not in page.replace("&lt;/script&gt;", "")
    assert "default-src 'none'" in page
    assert not re.search(r"""<(?:link|script|img)[^>]*(?:src|href)=["'](?!data:,)""", page)
    (heading, *_) = written(path)["parts"]
    assert heading["words"] == "<h1>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;</h1>"
    _, figures, _ = grid_and_heads(path)
    assert figures[0]["layout"]["meta"]["tokens"]["x"][3] == "w" * 79 + "…"


def test_the_head_that_decides_most_clearly_is_large_at_first(tmp_path: Path) -> None:
    even = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    sharp = np.eye(4)
    mask = np.tril(np.ones((4, 4), dtype=bool))
    names = tuple("abcd")
    found = {
        "decoder.0.self_attention": Attention(
            "decoder.0.self_attention", np.zeros((3, 4, 4)), mask, np.stack([even, sharp, even]), names, names
        )
    }
    assert clearest(found) == 1
    seen = observe(small(), tokens_of(1, 6))
    for focus, first in (("1.2", 6), ("decoder.0.self_attention.3", 3), ("", clearest(seen_attentions(seen)))):
        _, large = components(written(dashboard.to_html(seen, tmp_path / "heads.html", focus=focus))["parts"])
        assert base64.b64decode(large["message"]) == gzip.decompress(
            base64.b64decode(large["choice"]["messages"][first])
        )


def test_of_a_long_input_a_cell_is_the_strongest_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "LONG", 3)
    seen = observe(small(), tokens_of(1, 6))
    _, figures, said = grid_and_heads(dashboard.to_html(seen, tmp_path / "heads.html", LETTERS))
    pattern = seen["decoder.0.self_attention.pattern"][0, 0].numpy()
    blocks = pattern.reshape(3, 2, 3, 2).max(axis=(1, 3))
    shown = numbers(figures[0]["data"][0])
    np.testing.assert_allclose(shown[np.tril_indices(3)], blocks[np.tril_indices(3)], atol=1e-6)
    assert "strongest of 2 × 2" in json.dumps(figures[0]["layout"]["annotations"], ensure_ascii=False)
    assert "from 1 on" in said[0]


def test_what_could_not_be_seen_is_said(tmp_path: Path) -> None:
    class Attention2(nn.Module):
        """Attends by a kernel of its own."""

    model = Theirs()
    model.other = Attention2()
    parts = written(dashboard.to_html(capture(model, tokens_of(1, 3)), tmp_path / "heads.html"))["parts"]
    (alert,) = [part["words"] for part in parts if part.get("kind") == "alert"]
    assert "other (Attention2)" in alert


@pytest.mark.parametrize("sequence", [0, 1, 2])
def test_each_sequence_of_a_batch_is_shown_when_it_is_asked_for(sequence: int, tmp_path: Path) -> None:
    """Of ours, of somebody else's, and of two stacks: as if it had been read alone."""
    tokens, source = tokens_of(3, 6), tokens_of(3, 4, 1)
    torch.manual_seed(0)
    ours, theirs, two = small(), Theirs(), small("encoder-decoder")
    for batch, alone in (
        (observe(ours, tokens), observe(ours, tokens[[sequence]])),
        (capture(theirs, tokens), capture(theirs, tokens[[sequence]])),
        (observe(two, tokens, source=source), observe(two, tokens[[sequence]], source=source[[sequence]])),
    ):
        path = dashboard.to_html(batch, tmp_path / "batch.html", sequence=sequence)
        _, figures, _ = grid_and_heads(path)
        _, expected, _ = grid_and_heads(dashboard.to_html(alone, tmp_path / "alone.html"))
        for figure, one in zip(figures, expected, strict=True):
            np.testing.assert_allclose(numbers(figure["data"][0]), numbers(one["data"][0]), atol=1e-6)
            assert figure["layout"]["meta"]["tokens"] == one["layout"]["meta"]["tokens"]
        assert f"Sequence {sequence} of a batch of 3 is shown." in captions(path)[0]
        assert not captions(tmp_path / "alone.html")


def captions(path: Path) -> list[str]:
    """What stands under the heading in small letters."""
    return [part["words"] for part in written(path)["parts"] if part.get("kind") == "caption"]


def test_what_a_mask_treats_as_padding_is_named(tmp_path: Path) -> None:
    """On the right no query sees it; on the left of a causal model its queries see nothing either."""
    query, key, value = torch.randn(3, 2, 2, 5, 4)
    right, left = torch.ones(2, 5, 5, dtype=torch.bool), torch.ones(5, 5, dtype=torch.bool).tril().repeat(2, 1, 1)
    right[1, :, 3:] = False
    left[1, :, :1] = False
    for mask, told in (
        (right, ["In encoder self-attention no query may see the keys at 4 and 5: the mask treats that as padding."]),
        (left, ["In decoder self-attention no query may see the key at 1: the mask treats that as padding.",
                "In decoder self-attention the query at 1 may see no key."]),
    ):  # fmt: skip
        attend = torch.nn.functional.scaled_dot_product_attention
        seen = capture(attend, query, key, value, attn_mask=mask[:, None])
        dashboard.to_html(seen, tmp_path / "padded.html", sequence=1)
        assert captions(tmp_path / "padded.html")[1:] == [f"<p>{each}</p>" for each in told]
        dashboard.to_html(seen, tmp_path / "padded.html")
        assert len(captions(tmp_path / "padded.html")) == 1


def test_light_and_dark_have_their_own_colours(tmp_path: Path) -> None:
    seen = observe(small(), tokens_of(1, 6))
    light, dark = (written(dashboard.to_html(seen, tmp_path / "x.html", dark=dark)) for dark in (False, True))
    assert light["theme"]["--st-background-color"] == "#ffffff"
    assert dark["theme"]["--st-background-color"] == "#0f131b"


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"names": ["a"]}, "1 names for the 6 queries of decoder.0.self_attention"),
        ({"names": "abcdef"}, "names are a list of texts, one a token"),
        ({"names": [1, 2, 3, 4, 5, 6]}, "names are a list of texts"),
        ({"sequence": 1}, "There is no sequence 1: the batch has one, which is 0."),
        ({"sequence": -1}, "There is no sequence -1: the batch has one"),
        ({"sequence": "first"}, "There is no sequence 'first': the batch has one"),
        ({"focus": "9.9<script>"}, "There is no head “9.9<script>”; there are 8, from 0.0 to 1.3"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(tmp_path: Path, how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        dashboard.to_html(observe(small(), tokens_of(1, 6)), tmp_path / "x.html", **how)
    assert not list(tmp_path.iterdir())


def test_neither_what_is_no_pass_nor_a_place_that_is_none_leaves_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not 'a text'"):
        dashboard.to_html("a text", tmp_path / "x.html")  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"cannot be written to “.*”: No such file"):
        dashboard.to_html(observe(small(), tokens_of(1, 6)), tmp_path / "nowhere" / "x.html")
    with pytest.raises(UserError, match="There are 4 names for 3 tokens"):
        dashboard.to_html(capture(Theirs(), tokens_of(1, 3)), tmp_path / "x.html", tuple("abcd"))
    with pytest.raises(UserError, match="No attention was seen"):
        dashboard.to_html(capture(nn.Linear(2, 2), torch.zeros(1, 2)), tmp_path / "x.html")


def test_the_reader_knows_the_version_that_is_written() -> None:
    (version,) = re.findall(
        r"^export const VERSION = (\d+);$", (WEB / "document" / "write.js").read_text(), re.MULTILINE
    )
    assert int(version) == document.VERSION


# --- by the observation itself


def test_an_observation_finds_who_draws_pages_by_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library names nobody; the project does. Here a distribution of its own says what the project says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (entry,) = project["entry-points"][PAGES].items()
    module, _, function = entry[1].partition(":")
    assert getattr(import_module(module), function) is dashboard.to_html
    installed = tmp_path / "drawing-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: drawing\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{PAGES}]\n{entry[0]} = {entry[1]}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = observe(small(), tokens_of(1, 6))
    path = seen.to_html(tmp_path / "heads.html", LETTERS, focus="0.1")
    assert path == tmp_path / "heads.html"
    assert written(path)["title"] == "8 attention heads on 6 tokens"


def test_without_the_dashboard_it_says_what_draws_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer.observation.entry_points", lambda **which: ())
    seen = Observation(torch.zeros(1, 2, dtype=torch.int64), torch.zeros(1, 2, 3), {})
    with pytest.raises(UserError, match="drawn by the dashboard"):
        seen.to_html(tmp_path / "heads.html")

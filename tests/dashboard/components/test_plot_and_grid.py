"""The Python side of the two web components, and what the server adds to Streamlit."""

import gzip
import json
import re
import tomllib
from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
import plotly
import plotly.graph_objects as go
import pytest
from starlette.applications import Starlette
from streamlit import config
from streamlit.testing.v1 import AppTest

from dashboard.components import appearance, registration
from dashboard.components.head_grid import EXACT_CELLS, HeadGrid, Panel
from dashboard.components.payload import pack, unpack
from dashboard.components.plot import coloured, pack_figure
from dashboard.server import http
from dashboard.theme import DARK, LIGHT, Palette, pattern_colours
from tests.kit.rooms import asgi
from tests.kit.waiting import PATIENCE
from transformer import __version__

LOOKS: dict = {"key": "heads", "focus": 0, "alt": "Patterns."}


def panel(column: int = 0, queries: int = 3, keys: int = 4, masked: bool = True) -> Panel:
    random = np.random.default_rng(column)
    return Panel(
        name=f"0.{column}",
        group="decoder self-attention",
        row=0,
        column=column,
        pattern=random.random((queries, keys), dtype=np.float32),
        mask=np.tril(np.ones((queries, keys), dtype=bool)) if masked else None,
        queries=tuple(str(i) for i in range(queries)),
        keys=tuple(f"k{i}" for i in range(keys)),
    )


# Messages


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "é → 注意"])
def test_a_message_comes_back_and_its_body_is_aligned(text: str) -> None:
    message = pack({"text": text}, b"body")
    assert unpack(message) == ({"text": text}, b"body")
    assert message.index(b"body") % 4 == 0


def test_patterns_arrive_exactly() -> None:
    panels = [panel(column) for column in range(3)]
    panels.append(replace(panel(3), pattern=np.random.default_rng(3).random((4, 3)).T))  # of another layout and type
    header, body = unpack(HeadGrid(panels, **LOOKS, link="heads").pack(LIGHT))
    assert header["exact"]
    assert header["link"] == "heads"
    assert header["forbidden"] == [int(LIGHT.forbidden[i : i + 2], 16) for i in (1, 3, 5)]
    for sent, record in zip(panels, header["panels"], strict=True):
        assert record["pattern"] % 4 == 0
        size = record["rows"] * record["columns"]
        values = np.frombuffer(body, "<f4", count=size, offset=record["pattern"]).reshape(sent.pattern.shape)
        np.testing.assert_array_equal(values, sent.pattern.astype(np.float32))
        mask = np.frombuffer(body, np.uint8, count=size, offset=record["mask"]).reshape(sent.pattern.shape)
        np.testing.assert_array_equal(mask.astype(bool), sent.mask)
        assert header["labels"][record["queries"]] == list(sent.queries)
        assert header["labels"][record["keys"]] == list(sent.keys)
        assert (record["name"], record["row"], record["column"]) == (sent.name, 0, sent.column)
    colours = np.frombuffer(body, np.uint8, count=768, offset=header["colours"]).reshape(256, 3)
    np.testing.assert_array_equal(colours, pattern_colours(dark=False))


def test_equal_masks_and_labels_are_sent_once_and_a_mask_that_forbids_nothing_never() -> None:
    panels = [panel(column) for column in range(6)]
    panels += [replace(panel(6), mask=np.tril(np.ones((3, 4), dtype=bool), 1)), panel(7, masked=False)]
    panels += [replace(panel(8), mask=np.ones((3, 4), dtype=bool))]
    header, _ = unpack(HeadGrid(panels, **LOOKS).pack(LIGHT))
    masks = [record.get("mask") for record in header["panels"]]
    assert len(set(masks[:6])) == 1
    assert masks[6] not in (masks[0], None)
    assert masks[7:] == [None, None]
    assert len(header["labels"]) == 2


def test_many_cells_travel_as_bytes_to_within_half_a_step() -> None:
    side = 1 + int(np.sqrt(EXACT_CELLS))
    large = panel(queries=side, keys=side)
    large.pattern[0, :3] = [np.nan, -0.5, 1.5]
    header, body = unpack(HeadGrid([large], **LOOKS).pack(LIGHT))
    assert not header["exact"]
    values = np.frombuffer(body, np.uint8, count=side * side).reshape(side, side)
    np.testing.assert_array_equal(values[0, :3], [0, 0, 255])
    assert np.abs(values[1:] / 255 - large.pattern[1:]).max() <= 0.5 / 255 + 1e-6


@pytest.mark.parametrize(
    ("panels", "looks", "sentence"),
    [
        ([], {}, "at least one panel"),
        ([panel()], {"focus": 1}, "0 to 0, not 1"),
        ([panel()], {"alt": " "}, "needs alt"),
        ([panel()], {"size": 20}, "at least 36 pixels, not 20"),
        ([panel(), panel()], {}, "0.0 and 0.0 have the same place"),
        ([replace(panel(), pattern=np.zeros(3))], {}, r"0.0: a pattern is \[query, key\], not \[3\]"),
        ([replace(panel(), queries=("a",))], {}, "1 query labels and 4 key labels for a pattern of 3 × 4"),
        ([replace(panel(), mask=np.ones((4, 3), dtype=bool))], {}, r"the mask is \[4, 3\], the pattern \[3, 4\]"),
        ([replace(panel(), row=-1)], {}, "count from 0, not -1 and 0"),
    ],
)
def test_a_grid_that_cannot_be_drawn_is_refused_in_words(panels: list[Panel], looks: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        HeadGrid(panels, **{**LOOKS, **looks}).pack(LIGHT)


def test_a_figure_arrives_whole_and_the_same_figure_as_the_same_bytes() -> None:
    one, other = (
        pack_figure(
            go.Figure(go.Heatmap(z=np.eye(3, dtype=np.float32)), layout={"meta": {"link": "heads"}}),
            key="main", alt="A diagonal.", height=300,
        )
        for _ in range(2)
    )  # fmt: skip
    assert one == other
    header, body = unpack(one)
    assert header == {"alt": "A diagonal.", "height": 300, "revision": "main", "plotly": plotly.__version__}
    figure = json.loads(body)
    assert figure["data"][0]["z"]["dtype"] == "f4"
    assert figure["layout"]["meta"] == {"link": "heads"}


@pytest.mark.parametrize(("options", "sentence"), [({"alt": ""}, "needs alt"), ({"height": 0}, "positive number")])
def test_a_plot_without_words_or_height_is_refused(options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        pack_figure(go.Figure(), **{"key": "main", "alt": "Nothing.", "height": 300, **options})


# Mounting


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_what_is_drawn_takes_the_palette_of_the_rerun(monkeypatch: pytest.MonkeyPatch, palette: Palette) -> None:
    def drawn(place: int, *, name: str, palette: Palette = LIGHT) -> tuple[int, str, Palette]:
        return place, name, palette

    monkeypatch.setattr(appearance, "is_dark", lambda: palette.dark)
    assert coloured(drawn, 3, name="heads") == (3, "heads", palette)


def app() -> None:
    import numpy as np
    import plotly.graph_objects as go
    import streamlit as st

    from dashboard.components.head_grid import HeadGrid, Panel
    from dashboard.components.plot import plot

    click = plot(go.Figure(go.Scatter(y=[1, 2])), key="line", alt="A line.", height=200)
    panels = [Panel(f"0.{i}", "heads", 0, i, np.eye(2), None, ("a", "b"), ("a", "b")) for i in range(2)]
    chosen = HeadGrid(panels, key="grid", focus=1, alt="Heads.").draw()
    st.write(f"{click} {chosen}")


def test_both_components_mount_in_every_runtime() -> None:
    for _ in range(2):  # each AppTest has a runtime of its own
        test = AppTest.from_function(app).run(timeout=PATIENCE)
        assert not test.exception
        line, grid = (unpack(element.proto.bytes)[0] for element in test.get("bidi_component"))
        assert line["alt"] == "A line."
        assert (grid["focus"], len(grid["panels"])) == (1, 2)
        assert test.markdown[0].value == "None None"


WEB = registration.FOLDER / "web"
SHARED = "../../attention-lab.shared/"
ENTRIES = {path for path in WEB.glob("*/*.js") if path.parent.name == path.stem}
BUNDLED = {WEB / "document" / name for name in ("reader.js", "paper.js")}
"""Modules that Streamlit does not serve, but one script of the server (components/documents)."""


def imports(path: Path) -> list[tuple[set[str], str]]:
    """What a module imports: the names it takes, and the address; of a file that is loaded later only the address."""
    source = path.read_text(encoding="utf-8")
    names = re.compile(r"^(?:import|export) \{([^}]*)\} from '([^']*)';$", re.MULTILINE)
    now = [({each.split()[0] for each in found[1].split(",")}, found[2]) for found in names.finditer(source)]
    now += [(set(), address) for address in re.findall(r"^import \w+ from '([^']*)';$", source, re.MULTILINE)]
    assert len(now) == len(re.findall(r"^import\b|^export .* from ", source, re.MULTILINE)), path.name
    return now + [(set(), address) for address in re.findall(r"\bimport\('([^']*)'\)", source)]


def exports(path: Path) -> set[str]:
    source = path.read_text(encoding="utf-8")
    declared = re.findall(r"^export (?:async )?(?:function\*?|const|class) (\w+)", source, re.MULTILINE)
    handed_on = re.findall(r"^export \{([^}]*)\}", source, re.MULTILINE)
    return {*declared, *(name.strip() for names in handed_on for name in names.split(","))}


def imported(path: Path, address: str) -> Path:
    """The file at an address. Streamlit serves a component's own script, and its style, from an address of its own."""
    if path.with_suffix(".js") in ENTRIES:
        assert address.startswith(SHARED), f"{path.name} would have the browser read {address} once more"
        return WEB / address.removeprefix(SHARED)
    return (path.parent / address).resolve()


def test_the_manifest_names_this_distribution_and_every_component() -> None:
    ours, manifest = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        for folder in (WEB.parents[2], registration.FOLDER)
    )
    assert manifest["project"] == {"name": ours["project"]["name"], "version": __version__}
    declared = manifest["tool"]["streamlit"]["component"]["components"]
    assert {component["asset_dir"] for component in declared} == {"web"}
    assert [component["name"] for component in declared][-1] == "shared"
    assert {component["name"] for component in declared} == {path.stem for path in ENTRIES} | {"shared"}


def test_what_is_imported_is_there_and_read_from_one_address() -> None:
    for path in WEB.glob("*/*.js"):
        for names, address in imports(path):
            target = imported(path, address)
            assert target.is_file(), f"{path.name} imports {address}"
            assert path in BUNDLED or target not in ENTRIES, f"{path.name} imports the component {target.stem}"
            assert names <= exports(target), f"{path.name} imports {names - exports(target)} of {address}"
    for path in WEB.glob("*/*.css"):
        for address in re.findall(r'@import "([^"]*)"', path.read_text(encoding="utf-8")):
            assert imported(path, address).is_file(), f"{path.name} imports {address}"


def test_no_folder_is_crowded_and_none_imports_another_in_a_circle() -> None:
    modules: dict[str, set[str]] = {}
    for path in WEB.glob("*/*.js"):
        found = {imported(path, address).parent.name for _, address in imports(path)}
        modules.setdefault(path.parent.name, set()).update(found - {path.parent.name})
    assert list(TopologicalSorter(modules).static_order())
    assert max(len(list(folder.glob("*.js"))) for folder in WEB.iterdir()) <= 14
    assert not [path.name for path in WEB.iterdir() if path.is_file()]


# Server


def get(path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """The answer of the routes and middleware to a GET, without a server."""
    app = Starlette(routes=http.routes("overview"), middleware=http.middleware(""))
    route, _, query = path.partition("?")
    return asgi.answer(app, {"path": route, "query_string": query.encode()}, host="localhost:8501", **headers)


def test_plotly_is_served_compressed_or_plain_and_asked_for_again_where_its_version_is_not_named() -> None:
    status, headers, body = get(f"{http.PLOTLY_PATH}?v={plotly.__version__}", accept_encoding="br, gzip")
    assert (status, headers["content-encoding"], headers["vary"]) == (200, "gzip", "Accept-Encoding")
    assert headers["content-type"].startswith("text/javascript")
    assert headers["cache-control"].endswith("max-age=31536000, immutable")
    status, plain, source = get(f"{http.PLOTLY_PATH}?v=0", accept_encoding="gzip;q=0, identity")
    assert (status, plain["cache-control"]) == (200, "no-cache")
    assert "content-encoding" not in plain
    assert gzip.decompress(body) == source
    assert len(body) < len(source) / 3
    assert headers["etag"] != plain["etag"]
    assert plotly.__version__ in plain["etag"]
    status, _, body = get(http.PLOTLY_PATH, if_none_match=f'"other", W/{plain["etag"]}')
    assert (status, body) == (304, b"")


@pytest.mark.parametrize(
    ("asked", "to"), [("/overview", "./"), ("/overview?run=reverse&step=20", "./?run=reverse&step=20")]
)
def test_the_first_page_opens_by_its_own_address_too(asked: str, to: str) -> None:
    status, headers, _ = get(asked)
    assert (status, headers["location"]) == (307, to)


def test_the_route_stands_under_the_base_path() -> None:
    config.set_option("server.baseUrlPath", "/lab/")
    try:
        assert [get(f"{base}{http.PLOTLY_PATH}")[0] for base in ("/lab", "")] == [200, 404]
    finally:
        config.set_option("server.baseUrlPath", "")


@pytest.mark.parametrize(
    ("header", "allowed"),
    [("", False), ("gzip", True), ("*", True), ("*;q=0", False), ("gzip;q=0.0, *", False), ("GZIP; q=0.5", True)],
)
def test_accept_encoding_is_read_as_the_standard_says(header: str, allowed: bool) -> None:
    assert http.accepts_gzip(header) is allowed


def test_every_answer_carries_the_security_headers() -> None:
    for path in (http.PLOTLY_PATH, "/nothing-here"):
        _, headers, _ = get(path)
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == "'self'"
        assert "unsafe" not in policy["script-src"]
        assert "sha256-" in policy["script-src"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_websockets_pass_through_untouched() -> None:
    seen = []

    async def inner(scope: dict, receive: object, send: object) -> None:
        seen.extend([receive, send])

    receive, send = object(), object()
    asgi.to_its_end(http.SecurityHeaders(inner)({"type": "websocket"}, receive, send))  # type: ignore[arg-type]
    assert seen == [receive, send]

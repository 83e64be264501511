"""The address of a room, in text and as a picture."""

from __future__ import annotations

import re
import socket
from xml.etree import ElementTree

import pytest
import segno

from dashboard.server import sockets
from dashboard.server.rooms import addresses
from tests.kit.rooms.house import HOST, House, in_memory


@pytest.fixture
def in_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "own_address", lambda: "192.168.1.5")
    monkeypatch.setattr(addresses, "beyond_this_machine", lambda port: True)


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("lab.example", "http://lab.example/room/K7WQ"),
        ("lab.example:8501", "http://lab.example:8501/room/K7WQ"),
        ("10.0.0.3:8501", "http://10.0.0.3:8501/room/K7WQ"),
        ("localhost:8501", "http://192.168.1.5:8501/room/K7WQ"),
        ("localhost", "http://192.168.1.5/room/K7WQ"),
        ("127.0.0.1:8501", "http://192.168.1.5:8501/room/K7WQ"),
        ("[::1]:8501", "http://192.168.1.5:8501/room/K7WQ"),
    ],
)
@pytest.mark.usefixtures("in_a_network")
def test_followers_find_a_room_by_the_name_that_others_know(host: str, wanted: str) -> None:
    found = addresses.address("http", host, 8501, "/room/K7WQ")
    assert found == addresses.Address(wanted, False)


@pytest.mark.usefixtures("in_a_network")
def test_what_only_this_machine_can_open_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the address by which it can."""
    here = addresses.Address("http://localhost:8501/room/K7WQ", True)
    monkeypatch.setattr(addresses, "beyond_this_machine", lambda port: False)
    assert addresses.address("http", "localhost:8501", 8501, "/room/K7WQ") == here
    monkeypatch.setattr(addresses, "beyond_this_machine", lambda port: True)
    monkeypatch.setattr(addresses, "own_address", lambda: None)
    assert addresses.address("http", "localhost:8501", 8501, "/room/K7WQ") == here


def test_this_machine_has_an_address_of_its_own_or_none() -> None:
    found = addresses.own_address()
    assert found is None or not found.startswith(("127.", "0."))


@pytest.mark.parametrize(("bound", "beyond"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_a_server_knows_whether_others_can_reach_it(bound: str, beyond: bool) -> None:
    with socket.create_server((bound, 0)) as listening:
        assert sockets.beyond_this_machine(listening.getsockname()[1]) == beyond


def dark(svg: bytes) -> list[list[bool]]:
    """The modules of a QR code in an SVG: strokes of one module's height, each a move and a horizontal line."""
    root = ElementTree.fromstring(svg)
    size = int(root.attrib["viewBox"].split()[-1])
    ground, drawn = (each.attrib for each in root)
    assert (ground["fill"], drawn["stroke"]) == ("#fff", "#000")
    found = [[False] * size for _ in range(size)]
    column = row = 0.0
    for kind, across, down, line in re.findall(r"([Mm])(-?[\d.]+)[ ,]?(-?[\d.]+)h(\d+)", drawn["d"]):
        column, row = (float(across), float(down)) if kind == "M" else (column + float(across), row + float(down))
        for _ in range(int(line)):
            found[int(row)][int(column)] = True
            column += 1
    return found


def test_the_picture_is_the_code_of_the_address_with_a_margin_of_four() -> None:
    found = dark(addresses.qr_code("http://192.168.1.5:8501/room/K7WQ"))
    wanted = segno.make("http://192.168.1.5:8501/room/K7WQ", error="m", micro=False).matrix
    assert [row[4:-4] for row in found[4:-4]] == [[bool(each) for each in row] for row in wanted]
    assert not any(found[row][column] for row in (0, 1, 2, 3, -4, -3, -2, -1) for column in range(len(found)))


@in_memory
@pytest.mark.anyio
async def test_address_and_picture_are_those_of_the_room(house: House) -> None:
    lab = House(house.rooms, "/lab")
    lecturer = await lab.lecturer()
    said = await lab.ask("GET", f"/room/{lecturer.code}/address")
    assert said.json == {"address": f"http://{HOST}/lab/room/{lecturer.code}", "local": False}
    picture = await lab.ask("GET", f"/room/{lecturer.code}/qr.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.body == addresses.qr_code(said.json["address"])

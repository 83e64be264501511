"""Rooms beside Streamlit, in the server as a user starts it."""

from __future__ import annotations

import json
import threading
import urllib.request
from urllib.parse import urlsplit

from tests.kit.driving import dashboard
from tests.kit.rooms.house import packed
from tests.kit.waiting import PATIENCE


def test_rooms_are_served_beside_the_dashboard_and_end_with_it() -> None:
    """With the headers of every answer; and a follower's stream does not keep the server from ending."""
    told: list[bytes] = []
    with dashboard() as address:
        with urllib.request.urlopen(
            urllib.request.Request(f"{address}/rooms", method="POST"), timeout=PATIENCE
        ) as answer:
            assert "default-src 'self'" in answer.headers["content-security-policy"]
            opened = json.load(answer)
        room = f"{address}/room/{opened['code']}"
        stream = urllib.request.urlopen(f"{room}/events", timeout=PATIENCE)
        show = urllib.request.Request(
            f"{room}/document?question=q", packed("shown"), {"X-Room-Key": opened["key"]}, method="PUT"
        )
        with urllib.request.urlopen(show, timeout=PATIENCE) as answer:
            name = json.load(answer)["document"]
        asked = urllib.request.Request(f"{room}/document/{name}", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            assert (answer.headers["content-encoding"], answer.read()) == ("gzip", packed("shown"))
        with urllib.request.urlopen(f"{room}/address", timeout=PATIENCE) as answer:
            own = json.load(answer)
            assert own == {"address": room, "local": True}  # .streamlit/config.toml: this machine only
            assert urlsplit(own["address"]).hostname == "localhost"
        reading = threading.Thread(target=lambda: told.append(stream.read()))
        reading.start()
    reading.join(timeout=PATIENCE)
    stream.close()
    (whole,) = told
    assert name.encode() in whole
    assert whole.endswith(b"event: over\ndata: {}\n\n")

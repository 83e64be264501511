"""Where rooms live is said by ATTENTION_LAB_ROOMS, or the server does not start; and how often a bucket gives."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys

import pytest

from dashboard.server.rooms import places
from dashboard.server.rooms.limits import Bucket, Limits
from dashboard.server.rooms.memory import MemoryRooms
from dashboard.server.rooms.places import place_at
from dashboard.server.rooms.redis import RedisRooms
from tests.kit.driving import ROOT
from transformer.foundation.checks import ConfigError

WRONG = "ATTENTION_LAB_ROOMS must be a Redis's address, such as redis://localhost:6379/0."


def test_rooms_live_here_or_in_redis() -> None:
    assert isinstance(place_at("", Limits()), MemoryRooms)
    assert isinstance(place_at("redis://:secret@elsewhere.example:6379/0", Limits()), RedisRooms)


@pytest.mark.parametrize("address", ["yes", "http://localhost", "localhost:6379", "redis://localhost:secret"])
def test_what_is_no_redis_is_said_without_repeating_it(address: str) -> None:
    with pytest.raises(ConfigError) as raised:
        place_at(address, Limits())
    assert str(raised.value) == WRONG


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dashboard.server.rooms.redis")
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ConfigError, match=r"needs the package redis: pip install 'attention-lab\[rooms\]'"):
        place_at("redis://localhost", Limits())


def test_without_redis_its_package_is_not_imported() -> None:
    code = "import sys; from dashboard.server import rooms; rooms.place(); print('redis' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "ATTENTION_LAB_ROOMS"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_the_server_does_not_start_with_a_wrong_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ATTENTION_LAB_ROOMS", "http://localhost")
    places.place.cache_clear()
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "dashboard" / "app.py"))
    assert (ended.value.code, capsys.readouterr().err) == (2, f"{WRONG}\n")


def test_a_bucket_gives_a_burst_and_then_so_many_a_second() -> None:
    now = 100.0
    bucket = Bucket(rate=2, burst=3, clock=lambda: now)
    assert [bucket.take() for _ in range(5)] == [True, True, True, False, False]
    now += 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]
    now += 60
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]

"""The button “Share”: rooms, in which others follow this page, and hand-outs. What it does happens in the browser."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import urlencode

import streamlit as st

from dashboard.components.payload import pack
from dashboard.components.registration import renderer
from dashboard.lectures.lecture import Lecture
from dashboard.server.http import room_address
from dashboard.view import permission, session
from dashboard.view.pages import OVERVIEW, PAGES

CODE = re.compile(r"[A-Z0-9]{4}")

HTML = """
<div class="al-sharing">
  <button class="open" type="button" aria-haspopup="dialog" popovertarget="al-sharing-panel"
    title="A room in which others follow this page, and hand-outs"><span class="open-words">Share</span></button>
  <div class="panel" id="al-sharing-panel" popover="auto" role="dialog" aria-label="Share">
    <div class="none">
      <h2>A room</h2>
      <p>Others follow this page on their own screens, and send what they predict. No names are asked.</p>
      <button class="start primary" type="button">Open a room</button>
      <p class="why" hidden></p>
    </div>
    <div class="room" hidden>
      <h2>This room is open</h2>
      <p class="code"></p>
      <img class="qr" alt="The address of the room as a QR code">
      <p><a class="address" target="_blank"></a></p>
      <button class="fill" type="button" aria-keyshortcuts="Q">Fill the screen with it (Q)</button>
      <p class="local" hidden>Only this computer can open this address. To let others in, start the server with
        <code>--server.address 0.0.0.0</code>.</p>
      <p><span class="follow"></span> <span class="votes"></span></p>
      <p class="trouble" role="status"></p>
      <button class="end" type="button">Close the room</button>
    </div>
    <hr>
    <h2>A hand-out</h2>
    <p>One file that opens without a network, with figures to point at.</p>
    <label>Your own notes; in a lecture they stand on its first page
      <textarea class="notes" rows="3" maxlength="10000"></textarea></label>
    <label class="for-presenters" hidden><input class="presenters" type="checkbox"> With the presenter's notes</label>
    <div class="row">
      <button class="view" type="button">This view</button>
      <button class="lecture" type="button" hidden>The whole lecture</button>
    </div>
    <p class="said" role="status"></p>
  </div>
</div>
"""


def button(lecture: Lecture | None = None) -> None:
    """The button, in a lecture with the links of its steps."""
    steps = [] if lecture is None else [link(lecture, at) for at in range(1, len(lecture.steps) + 1)]
    name, title = ("", "") if lecture is None else (lecture.name, lecture.title)
    mount = renderer("sharing", html=HTML, isolate_styles=True)
    why = permission.for_the_owner("open a room")
    mount(key="sharing", data=pack({"name": name, "title": title, "steps": steps, "why": why}, b""), width="content")


def link(lecture: Lecture, at: int) -> str:
    """A step, counted from 1, as a link below the application's root, its sidebar closed."""
    step = lecture.steps[at - 1]
    view = replace(step.view, lecture=lecture.name, lecture_step=at, sidebar=False)
    address = "" if PAGES[step.page] is OVERVIEW else step.page
    return f"{address}?{urlencode(view.to_query())}"


def way_back() -> None:
    """The way back to the room that this session came from, if it came from one (web/document/live.js)."""
    code = session.settings().room
    if CODE.fullmatch(code):
        # Not st.link_button, which would open another tab.
        st.html(f'<p class="al-way-back"><a href="{room_address(code)}" target="_self">← Back to room {code}</a></p>')

"""What axe-core finds on a page, once it stands still."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SETTLED = """() =>
  document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning' &&
  [...document.querySelectorAll('[data-testid=stElementContainer]')].every(
    (each) => each.dataset.stale !== 'true' && getComputedStyle(each).opacity === '1')
"""
"""A change of theme and the end of a training are reruns, and what a rerun has not drawn anew yet is pale."""
NOT_OURS = "stFileUploaderDropzone"
"""Streamlit's own element, with both a role and a label: axe-core calls that presentation-role-conflict."""


def violations(page: Page) -> list[str]:
    """What axe-core finds once nothing is being drawn anew, an entry an element."""
    page.wait_for_function(SETTLED)
    found = Axe().run(page).response["violations"]
    return [
        f"{violation['id']}: {node['html']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
        if not (violation["id"] == "presentation-role-conflict" and NOT_OURS in node["html"])
    ]

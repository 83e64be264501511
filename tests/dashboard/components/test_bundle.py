"""One script of several modules: what the bundler takes, and what it refuses."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dashboard.components.documents import bundle, pages
from dashboard.server import plotly_js


def test_the_modules_become_one_script():
    script = bundle.bundle("film/file")
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    assert "</script" not in script.lower()
    places = [script.index(f"module_{name} = ") for name in ("kit_payload", "film_reel", "film_file")]
    assert places == sorted(places)
    assert script.count("module_kit_payload = (") == 1


def test_what_the_bundler_does_not_know_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bundle, "WEB", tmp_path)
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    (tmp_path / "here" / "star.js").write_text("import * as all from '../there/two.js';\n")
    (tmp_path / "here" / "outside.js").write_text("import { a } from 'elsewhere';\n")
    (tmp_path / "here" / "one.js").write_text("import { a } from '../there/two.js';\nexport const b = 1;\n")
    (tmp_path / "there" / "two.js").write_text("import { b } from '../here/one.js';\nexport const a = 1;\n")
    for name, sentence in (
        ("here/star", "cannot be bundled"),
        ("here/outside", "cannot be bundled"),
        ("here/one", "imports itself"),
    ):
        with pytest.raises(ValueError, match=sentence):
            bundle.bundle(name)


def test_what_the_modules_use_is_bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bundle, "WEB", tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "main.js").write_text(
        "import made from '../../attention-lab.shared/a/made.js';\nimport { other as two } from './passed.js';\n"
        "export const said = [made(), two, later()];\nasync function later() {\n"
        "  return (await import('./late.js')).late;\n}\n"
        "Promise.all(said).then((all) => console.log(all.join()));\n"
    )
    (tmp_path / "a" / "made.js").write_text("export default function () { return 'made'; }\n")
    (tmp_path / "a" / "passed.js").write_text("export { other } from './other.js';\n")
    (tmp_path / "a" / "other.js").write_text("export const other = 'other';\n")
    (tmp_path / "a" / "late.js").write_text("export async function* none() {}\nexport const late = 'late';\n")
    script = bundle.bundle("a/main")
    places = [script.index(f"module_a_{name} = ") for name in ("made", "other", "passed", "late", "main")]
    assert places == sorted(places)
    if node := shutil.which("node"):
        assert subprocess.run([node, "-e", script], capture_output=True, text=True).stdout == "made,other,late\n"


def test_a_hand_out_lets_only_its_own_scripts_run():
    page = pages.hand_out_page()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]  # type: ignore[index]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    (packed,) = re.findall(r'<script type="text/plain" id="plotly">(.*?)</script>', page)
    plotly = gzip.decompress(base64.b64decode(packed)).decode()
    assert plotly == plotly_js.source()
    for text in (script, plotly):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert page.count("@@TITLE@@") == 2
    assert page.count("@@DOCUMENTS@@") == 1
    assert not re.search(r"""<(?:link|script)[^>]*(?:src|href)=["'](?!data:,)""", page)


def test_a_hand_out_that_python_writes_is_the_empty_one_with_its_documents_in_it():
    documents = [{"title": "@@DOCUMENTS@@ </script> é"}]
    page = pages.hand_out("a <b> & @@DOCUMENTS@@", documents)
    (found,) = re.findall(r'id="documents">([^<]*)</script>', page)
    assert json.loads(gzip.decompress(base64.b64decode(found))) == documents
    assert page.count("a &lt;b&gt; &amp; @@DOCUMENTS@@") == 2
    assert len(page) == len(pages.hand_out_page()) + len(found) - 13 + 2 * (len("a &lt;b&gt; &amp; @@DOCUMENTS@@") - 9)


def test_the_widget_s_script_is_a_module_that_gives_what_anywidget_asks_for():
    script = pages.widget_script()
    assert not re.search(r"^import\b", script, re.MULTILINE)
    assert len(re.findall(r"^export default ", script, re.MULTILINE)) == 1
    if node := shutil.which("node"):
        stub = "globalThis.window = globalThis.document = globalThis;\n"
        asked = f"{stub}{script}console.log(typeof notebook({{}}, '').render);\n"
        said = subprocess.run([node, "--input-type=module"], input=asked, capture_output=True, text=True)
        assert said.stdout == "function\n", said.stderr

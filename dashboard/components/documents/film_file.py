"""The film as one HTML file that plays from a disk, without a server and without a network."""

import base64
from html import escape

from dashboard.components.documents.bundle import bundle, source_of, style
from dashboard.components.documents.colours import variables
from dashboard.components.film import HTML, Reel, pack_reel

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="about">{description}</p>
{player}
<p>{sentence}</p>
<p class="about">Weights {digest}. Made with Attention Lab; everything that is shown is in this file.</p>
</main>
<script type="text/plain" id="film-message">{message}</script>
<script>{script}</script>
</body>
</html>
"""
STYLE = """
body { margin: 0; font-family: var(--st-font); color: var(--st-text-color); background: var(--st-background-color); }
main { max-width: 1280px; margin: 0 auto; padding: 1.5rem; }
h1 { margin: 0 0 0.25rem; font-size: 1.9rem; line-height: 1.2; }
p { line-height: 1.5; }
.about { margin: 0 0 1rem; color: var(--muted); }
"""


def film_file(reel: Reel, *, title: str, description: str, sentence: str, digest: str, height: int = 460) -> bytes:
    """The file: the player with its data, scripts and style inside, light or dark as the reader's system is.

    `title` is the sentence that the film proves, `description` the run's, `digest` that of its weights. The page's own
    policy forbids it every request.
    """
    rules = f"{_variables()}{STYLE}{style('film/film.css')}"
    script = bundle("film/file")
    policy = (
        f"default-src 'none'; script-src {source_of(script)}; style-src {source_of(rules)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = PAGE.format(
        policy=policy,
        title=escape(title),
        description=escape(description),
        style=rules,
        player=HTML,
        sentence=escape(sentence),
        digest=escape(digest),
        message=base64.b64encode(pack_reel(reel, alt=sentence, height=height)).decode(),
        script=script,
    )
    return page.encode()


def _variables() -> str:
    """The colours of both themes."""
    light, dark = (" ".join(f"{name}: {value};" for name, value in variables(dark).items()) for dark in (False, True))
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"

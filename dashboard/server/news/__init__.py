"""News: a page is told over a socket of its own when something that it shows has changed, and asks for no more.

`followed.py` is what changes and `watcher.py` who looks at it; `routes.py` is the socket. In the browser it is
components/web/news/; parts/redrawing.py draws a part of a page anew when there is news.
"""

from dashboard.server.news.followed import Followed
from dashboard.server.news.routes import routes

__all__ = ["Followed", "routes"]

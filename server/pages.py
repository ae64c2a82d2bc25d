"""The pages: one template for the shell, the embedded view and the one-file report; one for the API's documentation."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from compiler.errors import AotscopeError
from compiler.text import Message, message, render
from server import assets

HERE = Path(__file__).parent


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def shell(view: str, run: str, title: str) -> str:
    """The page that loads the front end. `view` is page or embed; `run` an id or "" for a new one."""
    return (
        _templates()
        .get_template("page.html")
        .render(view=view, run=run, title=title, inline=None, address=assets.address)
    )


def token_page(cause: Message, language: str) -> str:
    """What a browser sees that has no token: why, and a form without script that asks for it."""
    return (
        _templates()
        .get_template("token.html")
        .render(
            language=language,
            sentence=render(cause, language),
            label=render(message("server.token_label"), language),
            go=render(message("server.token_go"), language),
        )
    )


def docs(openapi: dict[str, Any]) -> str:
    """The API's documentation, from its OpenAPI document; no script in it."""
    return _templates().get_template("docs.html").render(api=openapi, pretty=_pretty)


def _pretty(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def data_island(value: str) -> Markup:
    """JSON for a `<script type="application/json">`: without `<`, nothing in it can end the element or open a comment."""
    return Markup(value.replace("<", "\\u003c"))


def script_text(text: str) -> Markup:
    """A script of ours for inside a `<script>` element."""
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))


class NotBuiltError(AotscopeError):
    """The front end's files are missing from this installation."""


def require_front_end() -> None:
    """Raises NotBuiltError when a one-file page cannot be made."""
    if not all((assets.STATIC / name).is_file() for name in ("app.js", "app.css", "layout-worker.js")):
        raise NotBuiltError(message("server.report_not_built"))


def one_file(run: str, title: str, recording: str) -> str:
    """The whole front end and one run in one HTML file. Raises NotBuiltError."""
    require_front_end()
    script = script_text((assets.STATIC / "app.js").read_text(encoding="utf-8"))
    inline = {
        "script": script,
        # Only this script runs: one that got into the page in any other way would not be it.
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "style": Markup((assets.STATIC / "app.css").read_text(encoding="utf-8").replace("</style", "<\\/style")),
        "layout_worker": script_text((assets.STATIC / "layout-worker.js").read_text(encoding="utf-8")),
        "recording": data_island(recording),
    }
    return _templates().get_template("page.html").render(view="page", run=run, title=title, inline=inline)

"""The page of a run for browsers without scripts: the same stages, tables and pictures, from a template."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from compiler.recording import Recording
from compiler.text import Message, catalogue, render
from server.document import document
from server.plain import figures
from server.plain.chart import chart
from server.plain.model import alive_at_peak, page_of
from server.plain.words import STAGES, STATES, WORDS

TEMPLATES = Path(__file__).parent.parent / "templates"

# Tables with more rows are shut at first.
SHORT = 40
# Rows of one table, and characters of one text; the rest is in the document.
ROWS = 300
TEXT = 300_000


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["tally"] = figures.tally_text
    environment.globals |= {
        "bytes": figures.bytes_text,
        "seconds": figures.seconds_text,
        "small": figures.small_text,
        "number": figures.count_text,
        "fact": figures.fact_text,
        "shape": figures.shape_text,
        "alive_at_peak": alive_at_peak,
        "STATES": STATES,
        "ROWS": ROWS,
        "SHORT": SHORT,
        "TEXT": TEXT,
    }
    return environment


def plain(recording: Recording, state: str, language: str) -> str:
    """The page of a run as far as it is recorded. `state` is that of the run: queued, running, or the type of its last event."""
    return (
        _environment()
        .get_template("plain.html")
        .render(
            page=page_of(document(recording), over=state not in ("queued", "running")),
            state=state,
            run=recording.run.id,
            cut=next((event["limit_bytes"] for event in recording.events if event["type"] == "output_cut"), None),
            **_language(language),
        )
    )


def absent(run: str, language: str) -> str:
    """The page for an id that belongs to no run."""
    return _environment().get_template("plain_absent.html").render(run=run, **_language(language))


def stylesheet() -> str:
    return (TEMPLATES / "plain.css").read_text(encoding="utf-8")


def _language(language: str) -> dict[str, Any]:
    def t(key: str, **params: str | int | float | bool | None) -> str:
        return render(Message(key=key, params=params), language)

    def say(said: Message | dict[str, Any]) -> str:
        """A sentence of a run; one that a later version no longer knows is shown by its key."""
        text = said if isinstance(said, Message) else Message.model_validate(said)
        return render(text, language) if text.key in catalogue(language) else text.key

    def word(kind: str, value: str) -> str:
        key = WORDS[kind].get(value)
        return value if key is None else t(key)

    def draw(timeline: dict[str, Any], most: int) -> Markup:
        # Our own SVG, whose texts are escaped where it is made.
        return Markup(
            chart(timeline["points"]["live"], timeline["forward_end"], timeline["peak_point"], most, language)
        )

    return {
        "language": language,
        "t": t,
        "say": say,
        "word": word,
        "chart": draw,
        "stage_word": lambda name: t(STAGES[name]),
        "state_word": lambda state: t(STATES[state][1]),
    }


__all__ = ["absent", "plain", "stylesheet"]

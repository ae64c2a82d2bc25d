"""Text of others on a terminal: nothing in it moves the cursor, sets a title, hides or turns around what is shown."""

from __future__ import annotations

import re

# C0 and C1 without tab and line feed, and what changes the direction or hides (bidirectional marks, zero width, line separators).
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with each such character shown: a carriage return as a line end, others as `␛` or `<U+202E>`."""
    return _UNSEEN.sub(_shown, text.replace("\r\n", "\n").replace("\r", "\n"))


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"

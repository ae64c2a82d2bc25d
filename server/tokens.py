"""Tokens as text: made, and looked at. Imports nothing heavy."""

from __future__ import annotations

import secrets

LEAST_CHARACTERS = 16


def new_token() -> str:
    return secrets.token_urlsafe(24)


def fit(token: str) -> bool:
    """Whether it can be a token: long enough, and the same in a header, in an address and in a cookie."""
    return len(token) >= LEAST_CHARACTERS and token.isascii() and token.replace("-", "").replace("_", "").isalnum()

"""One hierarchy of errors. Each carries a `Message` that is fit to show a user, and what to do about it."""

from __future__ import annotations

from compiler.text import Message


class AotscopeError(Exception):
    """Base. `cause` is the sentence to show; `line` a line of the snippet, where one is to blame."""

    def __init__(self, cause: Message, line: int | None = None, detail: str = "") -> None:
        super().__init__(cause.key)
        self.cause = cause
        self.line = line
        self.detail = detail


class SnippetError(AotscopeError):
    """The snippet cannot be run: a syntax error, no model, no inputs, an import that does not exist."""


class ContractError(AotscopeError):
    """The child said something that the contract does not allow."""

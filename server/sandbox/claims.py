"""What a child's words may claim, beyond their types: plain bounded names, sentences that exist, numbers that JSON can carry.

Everything here comes from a process that runs a stranger's program; what passes is data, shown as text, about its own run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson
from pydantic import BaseModel

from compiler.errors import ContractError
from compiler.events import ArtifactFrame, ArtifactMade, DoneFrame, EventFrame, StageFinished
from compiler.ir.dynamo import BreaksPayload, is_link
from compiler.ir.graph import GraphPayload
from compiler.text import Message, catalogue, message

# Names become parts of ids and of file names that a user saves: no slash, no control character, no markup.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\- ]{0,119}")
# As torch writes it: `0/0`, `!1/0/0` in compiled autograd; `0/0_1` and `0/0.2` where one id is used again.
_COMPILE = re.compile(r"!?\d{1,9}([/_.]\d{1,9}){0,5}", re.ASCII)
_LONGEST_PARAMETERS = 64


def check_frame(frame: EventFrame | ArtifactFrame | DoneFrame) -> None:
    """Raises ContractError with what is wrong as its detail."""
    try:
        # 64 bits and no lone surrogate: what could not be stored is refused here, not later.
        orjson.dumps(frame.model_dump(mode="json"))
    except TypeError as fault:
        raise _wrong(str(fault)) from None
    if isinstance(frame, EventFrame):
        if frame.compile is not None and not _COMPILE.fullmatch(frame.compile):
            raise _wrong("compile is not an id of a compile")
        body = frame.body
        if isinstance(body, ArtifactMade):
            _plain("name", body.name)
            _plain("graph", body.graph)
        elif isinstance(body, StageFinished):
            _plain("graph", body.graph)
            for fact in body.facts:
                _plain("facts", fact)
        elif body.type == "summary":
            for figure in body.summary:
                _plain("summary", figure)
        _sentences(body)
    elif isinstance(frame, DoneFrame):
        _sentences(frame.outcome)


def check_payload(payload: BaseModel) -> None:
    """What readers of a payload rely on. Raises ValueError."""
    if isinstance(payload, GraphPayload):
        _check_columns(payload)
    elif isinstance(payload, BreaksPayload) and not all(is_link(one.url) for one in payload.breaks if one.url):
        raise ValueError("a link that does not lead to PyTorch's pages")


def _check_columns(graph: GraphPayload) -> None:
    """Columns of one length, and indices that lead somewhere."""
    columns = dict(graph.nodes)
    if len({len(column) for column in columns.values()}) > 1 or len(graph.edges.source) != len(graph.edges.target):
        raise ValueError("columns of different lengths")
    count = len(columns["name"])
    texts = len(graph.strings)
    bounds = dict.fromkeys(("name", "op", "target", "args", "phase", "module", "module_type"), (0, texts))
    bounds |= {"grad_fn": (0, texts), "roles": (0, texts), "twin": (-1, texts)}
    bounds |= {"value": (-1, len(graph.values)), "stack": (-1, len(graph.stacks))}
    held = [(name, columns[name], *bound) for name, bound in bounds.items()]
    held += [("source", graph.edges.source, 0, count), ("target", graph.edges.target, 0, count)]
    for name, column, low, high in held:
        if column and (min(column) < low or max(column) >= high):
            raise ValueError(f"an index of {name} leads nowhere")


def _sentences(body: BaseModel) -> None:
    known = catalogue("en")
    for said in _messages(body):
        if said.key not in known:
            raise _wrong("a sentence that does not exist")
        if len(said.params) > _LONGEST_PARAMETERS:
            raise _wrong("a sentence with too many parameters")


def _messages(body: BaseModel) -> Iterator[Message]:
    for _name, value in body:
        if isinstance(value, Message):
            yield value


def _plain(field: str, name: str | None) -> None:
    if name is not None and not _NAME.fullmatch(name):
        raise _wrong(f"{field} is not a plain name")


def _wrong(detail: str) -> ContractError:
    return ContractError(message("server.malformed_frame"), detail=detail)

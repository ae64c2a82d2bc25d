"""What the child says on its pipe, read piece by piece: a four-byte big-endian length, that many bytes of JSON, and
after an artifact's frame its payload."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import orjson
from pydantic import ValidationError

from compiler.errors import ContractError
from compiler.events import FRAMES, ArtifactFrame, DoneFrame, EventFrame
from compiler.ir.payloads import PAYLOADS
from compiler.text import message
from server.sandbox.claims import check_frame, check_payload

_LENGTH = struct.Struct(">I")
# Validation needs about a hundred bytes for each value of a payload, and as much again for each that is wrong.
_MOST_VALUES = 5_000_000
_LONGEST_DETAIL = 2000


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """In bytes: the JSON of one frame, one artifact, all artifacts of a run; and the number of artifacts."""

    event_bytes: int
    artifact_bytes: int
    artifacts_bytes: int
    artifacts: int


class FrameReader:
    """Bytes in, validated frames out. Raises ContractError for anything that the contract does not allow."""

    def __init__(self, limits: FrameLimits, artifacts_bytes: int = 0, artifacts: int = 0) -> None:
        self._limits = limits
        self._buffer = bytearray()
        self._awaited: ArtifactFrame | None = None
        # Shared by the phases of a run: what the earlier ones have used is passed in.
        self.artifacts_bytes = artifacts_bytes
        self.artifacts = artifacts
        # Of the frame that was given last.
        self.frame_bytes = 0

    def feed(self, data: bytes) -> Iterator[tuple[EventFrame | DoneFrame, None] | tuple[ArtifactFrame, bytes]]:
        self._buffer += data
        while True:
            if self._awaited is not None:
                size = self._awaited.ref.bytes
                if len(self._buffer) < size:
                    return
                frame, self._awaited = self._awaited, None
                payload = bytes(self._buffer[:size])
                del self._buffer[:size]
                yield frame, _checked(frame, payload)
                continue
            if len(self._buffer) < _LENGTH.size:
                return
            (size,) = _LENGTH.unpack_from(self._buffer)
            if size > self._limits.event_bytes:
                raise ContractError(message("server.event_too_large", limit=self._limits.event_bytes))
            if len(self._buffer) < _LENGTH.size + size:
                return
            text = bytes(self._buffer[_LENGTH.size : _LENGTH.size + size])
            del self._buffer[: _LENGTH.size + size]
            try:
                # JSON as the rest of the world reads it: no NaN, no endless nesting.
                orjson.loads(text)
                read = FRAMES.validate_json(text, strict=True)
            except (orjson.JSONDecodeError, ValidationError) as error:
                raise ContractError(message("server.malformed_frame"), detail=_said(error)) from None
            check_frame(read)
            self.frame_bytes = size
            if isinstance(read, ArtifactFrame):
                self._admit(read)
                self._awaited = read
            else:
                yield read, None

    def _admit(self, frame: ArtifactFrame) -> None:
        self.artifacts_bytes += frame.ref.bytes
        self.artifacts += 1
        if self.artifacts > self._limits.artifacts:
            raise ContractError(message("server.too_many_artifacts", limit=self._limits.artifacts))
        if frame.ref.bytes > self._limits.artifact_bytes:
            raise ContractError(message("server.artifact_too_large", limit=self._limits.artifact_bytes))
        if self.artifacts_bytes > self._limits.artifacts_bytes:
            raise ContractError(message("server.artifacts_too_large", limit=self._limits.artifacts_bytes))


def _checked(frame: ArtifactFrame, payload: bytes) -> bytes:
    """The payload, if it is what its reference says."""
    ref = frame.ref
    if hashlib.sha256(payload).hexdigest() != ref.hash:
        raise ContractError(message("server.artifact_hash", kind=ref.kind))
    model = PAYLOADS.get(ref.kind)
    if model is None or model.model_fields["format"].default != ref.format:
        raise ContractError(message("server.artifact_kind", kind=ref.kind, format=ref.format))
    if payload.count(b",") > _MOST_VALUES:
        raise ContractError(message("server.artifact_values", kind=ref.kind, limit=_MOST_VALUES))
    try:
        orjson.loads(payload)
        check_payload(model.model_validate_json(payload, strict=True))
    except ValueError as error:
        # orjson's and pydantic's errors are ValueErrors, too.
        raise ContractError(message("server.artifact_invalid", kind=ref.kind), detail=_said(error)) from None
    return payload


def _said(error: ValueError) -> str:
    """What is wrong; the text of a million wrong values is not even made."""
    if isinstance(error, ValidationError) and error.error_count() > 20:
        return f"{error.error_count()} values are wrong"
    return str(error)[:_LONGEST_DETAIL]

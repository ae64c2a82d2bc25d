"""From a kernel of a run to the question that a derived run answers: its text and its marks, out of the run's own artifacts."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from compiler.errors import AotscopeError
from compiler.events import LONGEST_KERNEL, ArtifactMade, ArtifactRef, Event, KernelQuestion, StageName
from compiler.ir.code import CodePayload, LineMarks
from compiler.ir.schedule import KernelsPayload
from compiler.text import message


class UnaskableError(AotscopeError):
    """The kernel is none that can be taken down to machine code."""


class UnknownKernelError(AotscopeError):
    """The run has no such kernel."""


def generated(events: Iterable[Event], kernel: str) -> tuple[ArtifactRef, ArtifactRef]:
    """The generated code and the table of kernels that a kernel's entity belongs to. Raises UnknownKernelError."""
    found: dict[str, ArtifactRef] = {}
    for event in events:
        body = event.body
        if event.stage is StageName.CODEGEN and event.compile and isinstance(body, ArtifactMade):
            prefix = f"{event.compile.replace('/', '_')}/codegen/{body.graph}"
            if kernel.rpartition("/")[0] == prefix:
                found[body.artifact.kind] = body.artifact
    if "code" not in found or "kernels" not in found:
        raise UnknownKernelError(message("server.kernel_unknown", kernel=kernel[:200]))
    return found["code"], found["kernels"]


def question(parent: str, kernel: str, config: int, code: CodePayload, kernels: KernelsPayload) -> KernelQuestion:
    """What to ask of a kernel. Raises UnknownKernelError or UnaskableError."""
    name = kernel.rpartition("/")[2]
    known = next((one for one in kernels.kernels if one.name == name), None)
    if known is None:
        raise UnknownKernelError(message("server.kernel_unknown", kernel=kernel[:200]))
    if known.kind != "triton":
        raise UnaskableError(message("server.kernel_not_triton", kernel=name))
    text = "\n".join(code.text.split("\n")[known.first_line - 1 : known.last_line]) + "\n"
    if len(text) > LONGEST_KERNEL:
        raise UnaskableError(message("server.kernel_too_long", kernel=name, limit=LONGEST_KERNEL))
    lines = range(known.first_line, known.last_line + 1)
    rows = [(line, entity) for line, entity in zip(code.marks.line, code.marks.entity, strict=True) if line in lines]
    used = sorted({entity for _, entity in rows})
    places = {entity: place for place, entity in enumerate(used)}
    try:
        return KernelQuestion(
            parent=parent,
            kernel=kernel,
            config=config,
            text=text,
            first_line=known.first_line,
            strings=[code.strings[entity] for entity in used],
            marks=LineMarks(line=[line for line, _ in rows], entity=[places[entity] for _, entity in rows]),
        )
    except (ValidationError, LookupError):
        # Each artifact was checked by itself; what they say of each other, a run can forge.
        raise UnaskableError(message("server.artifact_contradicts")) from None

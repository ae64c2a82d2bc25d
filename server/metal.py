"""One kernel of a run on the command line: found in the run's document, asked for, and told as text.

A document comes from anywhere: one that does not hold what a document holds ends in LookupError, TypeError or ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compiler.events import RunRequest, StageName
from compiler.ir.code import CodePayload
from compiler.ir.metal import Candidate, Level, MetalPayload
from compiler.ir.schedule import KernelsPayload
from compiler.targets import BY_ID
from compiler.text import message, render
from server.document import Document
from server.kernels import UnaskableError, UnknownKernelError, question
from server.local import UnusableError

_LINE = re.compile(r"^line/(\d+)$")


def kernels(document: Document) -> dict[str, tuple[CodePayload, KernelsPayload]]:
    """The entity of each Triton kernel of a run → the generated code and the table that it stands in. Raises UnusableError where
    there is none."""
    target = document["run"]["request"]["options"]["target"]
    if BY_ID[target].kind == "cpu":
        raise UnusableError(message("metal.no_target", target=target))
    found: dict[str, tuple[CodePayload, KernelsPayload]] = {}
    for compiled in document["compiles"]:
        for stage in compiled["stages"]:
            if stage["name"] != StageName.CODEGEN:
                continue
            of = {(one["kind"], one["graph"]): one["payload"] for one in stage["artifacts"]}
            for graph in [graph for kind, graph in of if kind == "kernels" and ("code", graph) in of]:
                code = CodePayload.model_validate(of["code", graph])
                table = KernelsPayload.model_validate(of["kernels", graph])
                prefix = f"{compiled['id'].replace('/', '_')}/codegen/{graph}"
                found |= {f"{prefix}/{one.name}": (code, table) for one in table.kernels if one.kind == "triton"}
    if not found:
        raise UnusableError(message("server.kernel_none"))
    return found


def asked(document: Document, name: str, config: int) -> RunRequest:
    """The request of the derived run. `name` is a kernel's entity, or as much of its end as tells it
    apart. Raises UnusableError."""
    known = kernels(document)
    fits = [name] if name in known else [entity for entity in known if f"/{entity}".endswith(f"/{name}")]
    if not fits:
        raise UnusableError(message("server.kernel_which", kernel=name[:200], kernels=", ".join(known)))
    if len(fits) > 1:
        raise UnusableError(message("server.kernel_several", kernel=name[:200], kernels=", ".join(fits)))
    try:
        made = question(str(document["run"]["id"]), fits[0], config, *known[fits[0]])
    except (UnaskableError, UnknownKernelError) as fault:
        raise UnusableError(fault.cause) from None
    request: RunRequest = RunRequest.model_validate(document["run"]["request"])
    return request.model_copy(update={"question": made})


def level_text(value: MetalPayload, name: str, lines: bool) -> Iterator[str]:
    """A level as it is, or with `lines` the line of the snippet before each of its own. Raises UnusableError."""
    level = next((one for one in value.levels if one.name == name), None)
    if level is None:
        there = ", ".join(one.name for one in value.levels)
        raise UnusableError(message("server.kernel_no_level", name=name, target=value.target, levels=there))
    text = level.code.text.split("\n")
    if not lines:
        yield from text
        return
    of = _snippet_lines(level)
    width = max((len(one) for one in of.values()), default=1)
    yield from (f"{of.get(number, ''):>{width}} │ {line}".rstrip() for number, line in enumerate(text, 1))


def _snippet_lines(level: Level) -> dict[int, str]:
    """Line of a level → those of the snippet that it comes from."""
    found: dict[int, list[int]] = {}
    marks = level.code.marks
    for line, entity in zip(marks.line, marks.entity, strict=True):
        if at := _LINE.match(level.code.strings[entity]):
            found.setdefault(line, []).append(int(at[1]))
    return {line: ",".join(map(str, sorted(set(numbers)))) for line, numbers in found.items()}


def summary(value: MetalPayload) -> Iterator[str]:
    """What the kernel needs, what fits, what its levels hold and which other configurations there are."""
    target = BY_ID[value.target].name if value.target in BY_ID else value.target
    yield value.kernel
    yield render(message("server.kernel_compiled", target=target, triton=value.triton))
    yield ""
    yield from _table([(_words(one.name), _known(one.value), one.source) for one in value.needs])
    yield ""
    if value.occupancy is None:
        yield render(value.occupancy_unknown or message("metal.occupancy_unknown"))
    else:
        found = value.occupancy
        yield render(
            message(
                "server.kernel_occupancy",
                warps=found.warps,
                most=found.most_warps,
                blocks=found.blocks,
                each=found.warps_per_block,
            )
        )
        yield from _table([(f"  {_words(one.resource)}", _known(one.blocks), one.formula) for one in found.limits])
        yield f"  {found.source}"
    yield ""
    yield render(message("server.kernel_levels"))
    yield from _table([(f"  {one.name}", f"{one.linked} / {one.statements}", "") for one in value.levels])
    yield ""
    yield render(value.chosen)
    for at, candidate in enumerate(value.candidates):
        yield f"{'→' if at == value.config else ' '} {at}  {_candidate(candidate)}"


def _candidate(one: Candidate) -> str:
    blocks = [f"{name}={size}" for name, size in one.blocks.items()]
    return " ".join([*blocks, f"num_warps={one.warps}", f"num_stages={one.stages}"])


def _words(name: str) -> str:
    return name.replace("_", " ")


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _table(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    first, second = (max((len(row[at]) for row in rows), default=0) for at in (0, 1))
    yield from (f"{name:<{first}}  {value:>{second}}  {rest}".rstrip() for name, value, rest in rows)


def payload_of(document: Document) -> MetalPayload | None:
    """The answer in a derived run's document, if there is one."""
    for compiled in document["compiles"]:
        for stage in compiled["stages"]:
            for one in stage["artifacts"]:
                if one["kind"] == "metal":
                    return MetalPayload.model_validate(one["payload"])
    return None

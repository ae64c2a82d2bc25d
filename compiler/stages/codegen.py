"""The generated file of each graph: its wrapper and its kernels, each line linked to the FX nodes it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch.fx as fx

from compiler.events import StageFinished, StageName, StageStarted
from compiler.ir.code import CodePayload, LineMarks
from compiler.ir.encode import Strings
from compiler.ir.schedule import Kernel, KernelsPayload
from compiler.linker import Links
from compiler.session import Session, slug
from compiler.stages.generated import Reading, count
from compiler.stages.provenance import Provenance
from compiler.stages.roofline import Launch, roofline
from compiler.targets import BY_ID
from compiler.torch_compat import scheduler as compat
from compiler.torch_compat.hooks import Lap, ours
from compiler.torch_compat.kernels import Generated, around_codegen

_NAME = StageName.CODEGEN


class Codegen:
    name = _NAME
    scope: Literal["run", "compile"] = "compile"

    @contextmanager
    def install(self, session: Session) -> Iterator[None]:
        laps: list[Lap] = []
        distinct: set[str] = set()

        def started() -> None:
            compile_id = session.compile
            if compile_id is not None:
                session.emit(StageStarted(), stage=_NAME, compile=compile_id)
            laps[:] = [Lap()]

        def finished(generated: Generated) -> None:
            seconds = laps[-1].seconds()
            compile_id = session.compile
            if compile_id is not None:
                with ours(session, _NAME, compile_id):
                    _count(session, generated.text, distinct)
                    _emit(session, compile_id, generated, seconds)

        with around_codegen(started, finished):
            yield


def _count(session: Session, text: str, distinct: set[str]) -> None:
    counts = count(text)
    distinct.update(counts.kernels)
    session.tally.distinct_cpp_kernels = len(distinct)
    session.tally.cpp_kernel_launches += counts.launches
    session.tally.extern_calls += counts.extern_calls


def _emit(session: Session, compile: str, generated: Generated, seconds: float) -> None:
    place = compat.place(generated.lowering)
    kind = place.kind
    prefix = f"{slug(compile)}/codegen/{kind}"
    reading = Reading.of(generated, Provenance(session, compile, kind, place.fx))
    strings = Strings()
    rows = [(line, strings.code(entity)) for line, entities in sorted(reading.marks.items()) for entity in entities]
    code = CodePayload.model_construct(
        format="code/1",
        id=prefix,
        language="cpp" if generated.lowering.cpp_wrapper else "python",
        text=generated.text,
        strings=strings.all,
        marks=LineMarks.model_construct(line=[row[0] for row in rows], entity=[row[1] for row in rows]),
    )
    kernels = KernelsPayload(
        id=prefix,
        kernels=list(reading.kernels),
        statements=reading.statements,
        statements_with_node=reading.statements_with_node,
        statements_with_line=reading.statements_with_line,
        library=reading.library,
        unlinked=reading.unlinked,
    )
    links = _links(reading, prefix, f"{slug(compile)}/fusion/{kind}")
    session.artifact(code, kind="code", name="wrapper", stage=_NAME, compile=compile, graph=kind)
    session.artifact(kernels, kind="kernels", name="kernels", stage=_NAME, compile=compile, graph=kind)
    session.artifact(links.payload(), kind="links", name="links", stage=_NAME, compile=compile, graph=kind)
    device = BY_ID[session.options.target].device
    lifted = session.graphs.get((compile, StageName.POST_GRAD, kind))
    if device is not None and lifted is not None:
        floor = roofline(
            f"{slug(compile)}/roofline/{kind}",
            session.options.target,
            device,
            lifted,
            _launches(generated, reading, place.fx),
            _group_bytes(generated, reading),
        )
        session.artifact(floor, kind="roofline", name="roofline", stage=_NAME, compile=compile, graph=kind)
    counts = count(generated.text)
    session.emit(
        StageFinished(
            seconds=seconds,
            graph=kind,
            facts={
                "kernels": len(set(counts.kernels)),
                "launches": counts.launches,
                "extern": counts.extern_calls,
            },
        ),
        stage=_NAME,
        compile=compile,
    )


def _launches(generated: Generated, reading: Reading, graph: fx.Graph) -> list[Launch]:
    """Each launch of a kernel is one definition of it; an external call is its own."""
    named = {node.name: node for node in graph.nodes}
    own = [
        Launch(one.name, list(dict.fromkeys(node for node in one.origins if node.graph is graph)))
        for one in generated.definitions
    ]
    external = [
        Launch(kernel.name, [named[name] for name in kernel.nodes if name in named])
        for kernel in reading.kernels
        if kernel.kind == "extern"
    ]
    return [*own, *external]


def _group_bytes(generated: Generated, reading: Reading) -> dict[str, int | None]:
    """Kernel → what its scheduler nodes read and write, by Inductor's own count; None for one in a body of its own."""
    known = {
        node.get_name(): sum(compat.accesses(node, reads=True, writes=True).values())
        for node in generated.lowering.scheduler.nodes
    }
    return {
        name: None if any(group.name not in known for group in groups) else sum(known[group.name] for group in groups)
        for name, groups in reading.groups.items()
    }


def _links(reading: Reading, prefix: str, fusion: str) -> Links:
    links = Links()
    for kernel in reading.kernels:
        entity = f"{prefix}/{kernel.name}"
        for group in reading.groups.get(kernel.name, ()):
            place = f"{fusion}.{group.body}" if group.body else fusion
            links.add(f"{place}/{group.name}", entity, "lowered", "define_kernel")
        for line in _lines(kernel):
            links.add(entity, f"{prefix}/@{line}", "code", "text")
    return links


def _lines(kernel: Kernel) -> Iterator[int]:
    if kernel.first_line:
        yield from range(kernel.first_line, kernel.last_line + 1)
    yield from (launch.line for launch in kernel.launches)


STAGE = Codegen()

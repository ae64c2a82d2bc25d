"""What Dynamo captured, where it broke the graph, what it guards, and why it compiled again."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch

from compiler.events import (
    CompileStarted,
    Finding,
    Severity,
    StageFinished,
    StageName,
    StageSkipped,
    StageStarted,
)
from compiler.ir.dynamo import BreaksPayload, GraphBreak, Guard, GuardsPayload, Recompile, RecompilesPayload
from compiler.ir.encode import encode
from compiler.ir.graph import Graph
from compiler.lift import lift_graph
from compiler.linker import Links, graph_code
from compiler.session import Session, slug
from compiler.stages.captured import noteworthy, own_hint, sentence
from compiler.text import Frozen, Message, message, to_json
from compiler.torch_compat import breaks, compiles, dynamo
from compiler.torch_compat.compiles import Attempt

_KEPT_BREAKS = 500
_REASON = re.compile(r"\d+/\d+: ")
_COMMENT = re.compile(r"\s+# .*$")
_ADVICE = re.compile(r"\(HINT: (.*)\)")
# Torch's hints that say nothing about the break itself.
_NO_HELP = ("This graph break may have been caused by an earlier", "If it is a Python builtin, please file an issue")


class _Watch:
    """Dynamo's hooks on one side, the session on the other."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._begun: set[str] = set()
        self._reasons: set[str] = set()
        self._breaks: dict[tuple[object, ...], GraphBreak] = {}
        self._recompiles: list[Recompile] = []
        self._last: Recompile | None = None  # of the latest recompile, the entry that was made last
        self._waiting: dict[str, list[Finding]] = {}
        self._told: set[tuple[str, str, int | None]] = set()
        self._said: set[tuple[bytes, int | None]] = set()

    def guarded(self) -> contextlib.AbstractContextManager[None]:
        return self._session.watching(StageName.DYNAMO, self._session.compile)

    # --- compiles

    def started(self, attempt: Attempt) -> None:
        """Frames of libraries are told of when they give a graph: most of them never do."""
        if self._session.sources.is_user(attempt.code.co_filename):
            with self.guarded():
                self._begin(attempt)

    def _begin(self, attempt: Attempt) -> None:
        if attempt.compile in self._begun:
            return
        self._begun.add(attempt.compile)
        code, sources = attempt.code, self._session.sources
        reason = sources.plain(attempt.reasons[0].split("\n", 1)[0]) if attempt.reasons else None
        file, line = code.co_filename, code.co_firstlineno
        # Of a module of torch's own, the user wrote the call, or only what makes it.
        written = (dynamo.calling_line(sources) or self._session.model_line) if dynamo.is_wrapper(code) else None
        if written is not None:
            file, line = sources.main, written
        body = CompileStarted(
            function=code.co_name,
            file=sources.shown(file),
            line=line,
            reason=reason,
        )
        self._session.emit(body, compile=attempt.compile)
        self._session.emit(StageStarted(), stage=StageName.DYNAMO, compile=attempt.compile)
        self._tell_recompile(attempt.compile)

    def _tell_recompile(self, id_: str) -> None:
        """Why a compile is needed is known before it begins: told when it has, or when it turns out that there is none."""
        for finding in self._waiting.pop(id_, ()):
            self._session.emit(finding, stage=StageName.DYNAMO, compile=id_)

    def ended(self, attempt: Attempt, result: Any, fault: BaseException | None) -> None:
        """A frame that gave no graph: skipped, or broken before anything was captured. What raises is told by the pipeline."""
        self._tell_recompile(attempt.compile)
        if attempt.graphs or attempt.compile not in self._begun:
            return
        reason = getattr(result, "skip_reason", None)
        if fault is None and reason is None:
            said = message("dynamo.empty")
        elif fault is None:
            said = message("dynamo.skipped", reason=str(reason).split("\n", 1)[0])
        elif dynamo.is_soft(fault):
            said = message("dynamo.to_eager", reason=str(fault).split("\n", 1)[0])
        else:
            return
        self._session.emit(StageSkipped(reason=said), stage=StageName.DYNAMO, compile=attempt.compile)

    def _tell(self, said: Finding, compile: str | None) -> None:
        """One cause is told once, however often it strikes."""
        cause = (to_json(said.message), said.line)
        if cause not in self._said:
            self._said.add(cause)
            self._session.emit(said, stage=StageName.DYNAMO, compile=compile)

    # --- what dynamo.Listener asks for

    def graph(self, attempt: Attempt, module: torch.fx.GraphModule, backend: Any) -> Callable[..., Any] | None:
        session, id_ = self._session, attempt.compile
        seconds = time.perf_counter() - attempt.began - attempt.own
        began = time.perf_counter()
        self._begin(attempt)
        graph = lift_graph(module.graph, id=f"{slug(id_)}/dynamo/dynamo", sources=session.sources)
        session.graphs[id_, StageName.DYNAMO, "dynamo"] = graph
        _emit(session, graph, id_)
        for finding in noteworthy(module, graph, attempt.whole_graph):
            self._tell(finding, id_)
        calls = sum(node.op.startswith("call") for node in graph.nodes)
        facts: dict[str, int | float | str | bool | None] = {
            "nodes": len(graph.nodes),
            "calls": calls,
            "inputs": sum(node.op == "placeholder" for node in graph.nodes),
            "backend": dynamo.backend_name(backend),
        }
        body = StageFinished(seconds=seconds, graph="dynamo", facts=facts)
        session.emit(body, stage=StageName.DYNAMO, compile=id_)
        attempt.own += time.perf_counter() - began
        # Nothing after this stage is wanted: the captured graph itself runs, and nothing is compiled.
        return module.forward if session.options.until is StageName.DYNAMO else None

    def graph_compiled(self, attempt: Attempt) -> None:
        """As torch counts: a graph on which its backend failed is none."""
        attempt.compiled += 1
        self._session.tally.compiled_graphs += 1

    def guards(self, compile: str, guards: list[Guard], leaf_guards: int, tree: str) -> None:
        self._session.tally.leaf_guards.append(leaf_guards)
        payload = GuardsPayload(guards=guards, leaf_guards=leaf_guards, tree=tree)
        self._session.artifact(payload, kind="guards", name="guards", stage=StageName.DYNAMO, compile=compile)

    def recompiled(self, attempt: Attempt, reasons: list[str], rows: list[Recompile]) -> None:
        tally = self._session.tally
        tally.recompiles += 1
        for reason in reasons:
            first = reason.split("\n", 1)[0]
            self._reasons.add(_COMMENT.sub("", _REASON.sub("", first, count=1).strip()))
        tally.unique_recompile_reasons = sorted(self._reasons)
        self._recompiles.extend(rows)
        self._last = rows[0] if rows else None
        for row in rows:
            cause = (attempt.code.co_name, row.source or row.guard, row.line)
            if cause in self._told:
                continue
            self._told.add(cause)
            params: dict[str, str] = {"function": breaks.own_name(attempt.code.co_name), "guard": row.guard}
            if row.source and row.old and row.old != row.new:
                said = message("dynamo.recompile_values", source=row.source, old=row.old, new=row.new, **params)
            else:
                said = message("dynamo.recompile", **params)
            finding = Finding(severity=Severity.NOTE, message=said, line=row.line, hint=_torch_hint(row.text))
            self._waiting.setdefault(attempt.compile, []).append(finding)

    def specialised(self, attempt: Attempt, found: dynamo.Specialisation) -> None:
        if found.line is not None:
            attempt.specialised = found.line
        self._tell(
            Finding(
                severity=Severity.WARNING,
                message=message("dynamo.specialised", source=found.source, value=found.value, code=found.code),
                line=found.line,
                hint=message("dynamo.specialised_hint"),
            ),
            attempt.compile,
        )

    def unguarded(self, found: dynamo.ChangedHooks) -> None:
        owner, _, hooks = found.source.rpartition("._")
        self._tell(
            Finding(
                severity=Severity.WARNING,
                message=message("dynamo.hooks_added", owner=owner, hooks=hooks, count=found.count),
                line=found.line,
                hint=message("dynamo.hooks_added_hint"),
            ),
            found.compile,
        )

    # --- breaks

    def said(self, found: GraphBreak, where: str, fallback: str) -> None:
        session = self._session
        if fallback:
            session.tally.eager_fallback.append(f"{fallback} {where}")
        # The cause, not the moment: the frames above differ between calls.
        cause = (found.kind, found.gb_type, found.reason, found.context, found.function, found.line, where)
        known = self._breaks.get(cause)
        if known is not None:
            self._breaks[cause] = known.model_copy(update={"count": known.count + 1})
            return
        if len(self._breaks) >= _KEPT_BREAKS:
            return
        one = self._breaks[cause] = found.model_copy(update={"id": f"break/{len(self._breaks) + 1}"})
        if one.kind == "skipped" and not one.context:
            return
        hint = next((hint for hint in one.hints if not hint.startswith(_NO_HELP)), None)
        session.emit(
            Finding(
                severity=Severity.WARNING,
                message=sentence(one, self._last),
                line=one.line,
                entity=one.id,
                hint=message("dynamo.hint", text=hint) if hint else own_hint(one),
            ),
            stage=StageName.DYNAMO,
            compile=session.compile,
        )

    def broke(self) -> None:
        self._session.tally.break_messages += 1

    def tables(self) -> None:
        """At the end of the phase: what struck how often."""
        put = self._session.artifact
        put(BreaksPayload(breaks=list(self._breaks.values())), kind="breaks", name="breaks", stage=StageName.DYNAMO)
        rows = RecompilesPayload(recompiles=self._recompiles)
        put(rows, kind="recompiles", name="recompiles", stage=StageName.DYNAMO)


def _emit(session: Session, graph: Graph, compile: str) -> None:
    links = Links()
    links.lines(graph)

    def put(payload: Frozen, kind: str) -> None:
        session.artifact(payload, kind=kind, name="dynamo", stage=StageName.DYNAMO, compile=compile, graph="dynamo")

    put(encode(graph), "graph")
    put(graph_code(graph), "code")
    session.artifact(links.payload(), kind="links", name="links", stage=StageName.DYNAMO, compile=compile)


def _torch_hint(text: str) -> Message | None:
    """What torch advises beside the guard that failed."""
    found = _ADVICE.search(text)
    return message("dynamo.hint", text=found[1]) if found else None


class _DynamoStage:
    name = StageName.DYNAMO
    scope: Literal["run", "compile"] = "compile"

    @contextlib.contextmanager
    def install(self, session: Session) -> Iterator[None]:
        watch = _Watch(session)
        with (
            compiles.listening(watch.started, watch.ended),
            dynamo.watching(watch, session.sources, watch.guarded),
            breaks.watching_breaks(watch.said, watch.broke, session.sources, watch.guarded),
        ):
            try:
                yield
            finally:
                watch.tables()


STAGE = _DynamoStage()

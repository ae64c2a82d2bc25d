"""What the stages share while one snippet is captured: where to say things, whose line a frame is, what was counted.

The pipeline makes one `Session` a phase and enters every stage's `install(session)`; the stages' hooks, called by torch
in the middle of a compile, look at what they are given, lift it into `compiler.ir` values, and emit.
"""

from __future__ import annotations

import hashlib
import re
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from compiler.events import (
    ArtifactFrame,
    ArtifactMade,
    ArtifactRef,
    Body,
    EventFrame,
    Options,
    StageFailed,
    StageName,
)
from compiler.ir.code import CodePayload
from compiler.ir.graph import Graph, StackFrame
from compiler.ir.memory import SavedForBackward
from compiler.text import Frozen, message, to_json

SNIPPET_FILE = "snippet.py"
_PACKAGES = re.compile(r"/[^\s\"'`]*/site-packages/")
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + "/"


class Sink(Protocol):
    """Where a phase says what it sees. In the child it writes frames to the worker's pipe; in a test it is a list."""

    def event(self, frame: EventFrame) -> None: ...

    def artifact(self, frame: ArtifactFrame, payload: bytes) -> None: ...


@dataclass
class Tally:
    """The raw material of the summary. Field names are the summary's; see `tests/corpus/README.md`."""

    compiled_graphs: int = 0
    break_messages: int = 0
    joint_nodes_before_passes: list[int | None] = field(default_factory=list)
    joint_nodes: list[int] = field(default_factory=list)
    fw_nodes: list[int] = field(default_factory=list)
    bw_nodes: list[int] = field(default_factory=list)
    saved_tensors: list[int] = field(default_factory=list)
    saved_bytes: list[int] = field(default_factory=list)
    saved_activation_bytes: list[int] = field(default_factory=list)
    recomputed_ops: list[int] = field(default_factory=list)
    ir_nodes_pre_fusion: int = 0
    scheduler_nodes_after_fusion: int = 0
    distinct_cpp_kernels: int = 0
    cpp_kernel_launches: int = 0
    extern_calls: int = 0
    recompiles: int = 0
    unique_recompile_reasons: list[str] = field(default_factory=list)
    leaf_guards: list[int] = field(default_factory=list)
    eager_fallback: list[str] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """Which files are the user's, and how they are shown. `files` maps absolute path → shown name; the snippet's own
    file is the one called `main`. Anything under `root` (the folder of a script run by the command line) is the user's too."""

    main: str
    files: dict[str, str]
    root: str | None = None

    def shown(self, file: str) -> str:
        """The name to show for a file: the user's as they know it, a library's from its package on."""
        if file in self.files:
            return self.files[file]
        if self.root and file.startswith(self.root):
            return file[len(self.root) :].lstrip("/")
        return file.rsplit("site-packages/", 1)[-1].removeprefix(_STANDARD_LIBRARY)

    def plain(self, text: str) -> str:
        """A text of torch's with its files named as they are shown. Beside a guard torch leaves out of a file's path what that
        shares with torch's own, and a letter more."""
        for file, name in self.files.items():
            text = text.replace(file, name)
            ending = rf"[^\s\"'`(]*/{re.escape(file.rsplit('/', 1)[-1])}\b"
            text = re.sub(ending, lambda found: name if file.endswith(found[0]) else found[0], text)  # noqa: B023
        return _PACKAGES.sub("", text)

    def told(self, error: BaseException) -> str:
        """An exception as its type and its text, with files named as they are shown."""
        return self.plain(f"{type(error).__name__}: {error}")

    def is_user(self, file: str) -> bool:
        return file in self.files or bool(self.root and file.startswith(self.root))

    def line(self, stack: tuple[StackFrame, ...]) -> int | None:
        """The innermost line of the snippet's main file in a stack, outermost frame first."""
        shown = self.files[self.main]
        for frame in reversed(stack):
            if frame.user and frame.file == shown:
                return frame.line
        return None


class Session:
    """One phase of one run. Not frozen: the hooks of a running compile write to it."""

    def __init__(
        self, sink: Sink, options: Options, sources: Sources, current_compile: Callable[[], str | None]
    ) -> None:
        self.options = options
        self.sources = sources
        self.tally = Tally()
        # (compile, stage, graph) → the graph as lifted there, for the stages that build on an earlier one.
        self.graphs: dict[tuple[str, StageName, str], Graph] = {}
        # (compile, graph) → Inductor's generated code with the marks of its lines, as it was sent.
        self.codes: dict[tuple[str, str], CodePayload] = {}
        # What Inductor generated, in order; the memory stage runs it again (see torch_compat/interpreter.py).
        self.modules: list[Any] = []
        # Compile → what AOTAutograd's last trace of it was given, to be traced again when the run is over
        # (see stages/aot_steps.py).
        self.traces: dict[str, Any] = {}
        # A script's first call of something that it compiled: callable, args, kwargs, and whether gradients were recorded.
        # The memory stage repeats it.
        self.first_call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], bool] | None = None
        # The line at which a declared snippet makes its model, None of any other.
        self.model_line: int | None = None
        # (compile, plan) of each graph, in order: Inductor's memory plans.
        self.plans: list[tuple[str, Any]] = []
        # What the memory stage found to be kept for the backward; the native phase is told.
        self.saved: SavedForBackward | None = None
        self._sink = sink
        self._current_compile = current_compile
        self._sent: set[str] = set()

    @property
    def compile(self) -> str | None:
        """The compile that torch is in, as torch writes it (`0/0`), or None outside of any."""
        return self._current_compile()

    def emit(self, body: Body, *, stage: StageName | None = None, compile: str | None = None) -> None:
        self._sink.event(EventFrame(clock=time.monotonic(), compile=compile, stage=stage, body=body))

    def artifact(
        self,
        payload: Frozen,
        *,
        kind: str,
        name: str,
        stage: StageName,
        compile: str | None = None,
        graph: str | None = None,
    ) -> ArtifactRef:
        """Send a payload (once for equal bytes) and the event that names it."""
        if isinstance(payload, CodePayload) and stage is StageName.CODEGEN and compile and graph:
            self.codes[compile, graph] = payload
        data = to_json(payload)
        digest = hashlib.sha256(data).hexdigest()
        format_ = str(payload.format)  # type: ignore[attr-defined]
        ref = ArtifactRef(hash=digest, kind=kind, format=format_, bytes=len(data))
        if digest not in self._sent:
            self._sent.add(digest)
            self._sink.artifact(ArtifactFrame(ref=ref), data)
        self.emit(ArtifactMade(name=name, graph=graph, artifact=ref), stage=stage, compile=compile)
        return ref

    @contextmanager
    def watching(self, stage: StageName, compile: str | None = None) -> Iterator[None]:
        """Around our own code in a hook: a fault of ours ends the stage with an event and never the user's compile."""
        try:
            yield
        except Exception as fault:  # noqa: BLE001 - told to the user as the stage's failure
            self.emit(
                StageFailed(
                    cause=message("stage.internal", stage=stage.value),
                    error=f"{type(fault).__name__}: {fault}",
                ),
                stage=stage,
                compile=compile,
            )


def slug(compile: str) -> str:
    """A compile as it appears inside the ids of entities: `0/0` → `0_0`."""
    return compile.replace("/", "_")


class Stage(Protocol):
    """One file of `compiler/stages/`, one row of its registry."""

    name: StageName
    scope: Literal["run", "compile"]

    def install(self, session: Session) -> AbstractContextManager[None]:
        """Put the stage's hooks in place until the context ends; leave torch as it was found."""
        ...

"""The wire contract: what a run says, as one tagged union, and what a request asks.

Torch-free. The child sends `Frame`s to the worker; the worker gives each body its place in the run (`run`, `seq`, `t`)
and so makes the `Event` that is stored, streamed and replayed. Large payloads are artifacts, named here by hash.

Ids. A compile is written as torch writes it, `0/0` (frame id / recompile number); inside ids of entities the slash
becomes an underscore: `0_0`. An entity is `compile/stage/graph/name`, for example `0_0/joint/joint/addmm_1`; a line of
the snippet is `line/18`. See `compiler/ir/link.py` for the links between them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from compiler.ir.code import LineMarks
from compiler.ir.memory import SavedForBackward
from compiler.targets import TargetName
from compiler.text import Frozen, Message

VERSION = 1
MOST_DIGESTS = 500


class StageName(StrEnum):
    """The stages, in the order in which they are shown."""

    SOURCE = "source"
    DYNAMO = "dynamo"
    PRE_GRAD = "pre_grad"
    JOINT = "joint"
    JOINT_PASSES = "joint_passes"
    PARTITION = "partition"
    POST_GRAD = "post_grad"
    SCHEDULE = "schedule"
    FUSION = "fusion"
    CODEGEN = "codegen"
    MEMORY = "memory"
    EXECUTE = "execute"
    CACHE = "cache"


class Mode(StrEnum):
    AUTO = "auto"
    TRAINING = "training"
    INFERENCE = "inference"


class Options(Frozen):
    """How to run a snippet. Each field is a field of the REST API and a flag of the command line."""

    target: TargetName = Field(
        "cpu", description="What the code is compiled for: an id, or a name that people know it by, as h100."
    )
    mode: Mode = Field(Mode.AUTO, description="auto: training when anything requires grad, else inference.")
    native: bool = Field(True, strict=True, description="Compile with the C++ compiler, run, time and compare.")
    until: StageName | None = Field(None, description="The last stage to show; null for all of them.")
    trace: bool = Field(False, strict=True, description="Keep torch's structured trace, as TORCH_TRACE writes it.")


# Characters of a kernel's source.
LONGEST_KERNEL = 400_000


class KernelQuestion(Frozen):
    """What a derived run asks: one Triton kernel of a finished run, down to machine code.

    `kernel` is its entity, `0_0/codegen/forward/triton_poi_fused_0`; `text` its source, whose first line is line
    `first_line` of the generated code; `marks` are those of the generated code for the kernel's lines, with `strings` as in
    `code/1`."""

    parent: str = Field(description="Id of the run that the kernel is of.", max_length=64)
    # ASCII only: readers of the schema disagree about what else \s and \w match.
    kernel: str = Field(max_length=1000, pattern=r"^[A-Za-z0-9_.!-]+/codegen/[A-Za-z0-9_.!-]+/[A-Za-z0-9_]+$")
    config: int = Field(
        0, ge=0, le=10_000, description="Index of the configuration, in the order of Inductor's heuristics."
    )
    text: str = Field(max_length=LONGEST_KERNEL)
    first_line: int = Field(ge=1)
    strings: list[str] = []
    marks: LineMarks = LineMarks()

    @property
    def name(self) -> str:
        return self.kernel.rpartition("/")[2]


class RunRequest(Frozen):
    """One snippet and its options; with a `question`, one thing more about a finished run of them."""

    source: str = Field(description="Python source of the snippet.", max_length=200_000)
    options: Options = Options()
    question: KernelQuestion | None = Field(
        None, description="Set by `POST /api/v1/runs/{id}/kernels`: this run is derived from another."
    )


class ArtifactRef(Frozen):
    """An immutable payload: `hash` is the sha256 of its uncompressed bytes, `bytes` their number."""

    hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    kind: str
    format: str
    bytes: int = Field(ge=0)


class Engine(Frozen):
    """What ran the snippet."""

    aotscope: str
    torch: str
    python: str
    platform: str
    cpu: str = Field(description='Vector instruction set that Inductor compiles for, e.g. "avx512"; "" if unknown.')
    threads: int


class StageStatus(StrEnum):
    OK = "ok"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


# --- bodies: what a run says -------------------------------------------------------------------------------------


class RunStarted(Frozen):
    type: Literal["run_started"] = "run_started"
    request: RunRequest
    engine: Engine


class PhaseStarted(Frozen):
    """A fork of the warmed parent began: `capture` (every stage up to generated code), `native` (g++ and timing), or `kernel` (a
    derived run: one kernel down to machine code)."""

    type: Literal["phase_started"] = "phase_started"
    phase: Literal["capture", "native", "kernel"]


class CompileStarted(Frozen):
    """Dynamo began to compile a frame: the envelope's `compile` is its id."""

    type: Literal["compile_started"] = "compile_started"
    function: str
    file: str = Field(description="As shown to the user; the snippet's own file is `snippet.py` or its real name.")
    line: int
    reason: str | None = Field(None, description="For a recompile, torch's own text of the guard that failed.")


class StageStarted(Frozen):
    type: Literal["stage_started"] = "stage_started"


class StageFinished(Frozen):
    """`seconds` is what torch spent in the stage (null where it cannot be told apart), without our own work."""

    type: Literal["stage_finished"] = "stage_finished"
    status: StageStatus = StageStatus.OK
    seconds: float | None = None
    graph: str | None = None
    facts: dict[str, int | float | str | bool | None] = Field(
        {}, description="A few figures for the stage rail and the command line, e.g. nodes=196."
    )


class StageFailed(Frozen):
    type: Literal["stage_failed"] = "stage_failed"
    cause: Message
    error: str = Field("", description="The exception's own type and text, as torch says it.")
    line: int | None = Field(None, description="Line of the snippet, where it is known.")
    traceback: str = Field("", description="The user's frames only.")


class StageSkipped(Frozen):
    type: Literal["stage_skipped"] = "stage_skipped"
    reason: Message


class ArtifactMade(Frozen):
    """A payload is ready. `name` tells several of one stage apart; `graph` is the graph that it belongs to."""

    type: Literal["artifact"] = "artifact"
    name: str
    graph: str | None = None
    artifact: ArtifactRef


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(Frozen):
    """Something the user should know: a graph break, a recompile, a divergence, with its line and its evidence."""

    type: Literal["finding"] = "finding"
    severity: Severity
    message: Message
    line: int | None = None
    entity: str | None = Field(None, description="Id of the entity that is the evidence.")
    hint: Message | None = None


class Printed(Frozen):
    type: Literal["printed"] = "printed"
    stream: Literal["stdout", "stderr"]
    text: str


class OutputCut(Frozen):
    """The snippet printed more than is kept; nothing after this is shown."""

    type: Literal["output_cut"] = "output_cut"
    limit_bytes: int


class Summary(Frozen):
    """The figures of the whole run; the names are defined in `tests/corpus/README.md`."""

    type: Literal["summary"] = "summary"
    summary: dict[str, int | str | list[int] | list[str] | None]


class Finished(Frozen):
    """Terminal: the snippet ran. `error` is set when compiling or running the model raised."""

    type: Literal["finished"] = "finished"
    error: Message | None = None


class Failed(Frozen):
    """Terminal: the snippet could not be run."""

    type: Literal["failed"] = "failed"
    cause: Message
    error: str = ""
    line: int | None = None
    traceback: str = ""


class TimedOut(Frozen):
    type: Literal["timed_out"] = "timed_out"
    limit_seconds: float
    stage: StageName | None = Field(None, description="The stage that was running.")


class Cancelled(Frozen):
    type: Literal["cancelled"] = "cancelled"


class Lost(Frozen):
    """Terminal: the worker died; the run was not repeated."""

    type: Literal["lost"] = "lost"
    cause: Message


Body = Annotated[
    RunStarted
    | PhaseStarted
    | CompileStarted
    | StageStarted
    | StageFinished
    | StageFailed
    | StageSkipped
    | ArtifactMade
    | Finding
    | Printed
    | OutputCut
    | Summary
    | Finished
    | Failed
    | TimedOut
    | Cancelled
    | Lost,
    Field(discriminator="type"),
]

TERMINAL = ("finished", "failed", "timed_out", "cancelled", "lost")


class Event(Frozen):
    """One event of a run. `seq` counts from 1 without gaps and is the SSE id; `t` is seconds since the run began.
    On the wire, the fields of `body` lie beside those of the envelope (see `dump_event`)."""

    v: Literal[1] = 1
    run: str
    seq: int = Field(ge=1)
    t: float = Field(ge=0)
    compile: str | None = None
    stage: StageName | None = None
    body: Body


# --- frames: what the child says to the worker -------------------------------------------------------------------


class EventFrame(Frozen):
    """`clock` is `time.monotonic()` in the child, which shares its clock with the worker."""

    frame: Literal["event"] = "event"
    clock: float
    compile: str | None = None
    stage: StageName | None = None
    body: Body


class ArtifactFrame(Frozen):
    """Followed on the pipe by `ref.bytes` raw bytes. Sent before the event that names it."""

    frame: Literal["artifact"] = "artifact"
    ref: ArtifactRef


class Captured(Frozen):
    """What the capture phase found, for the native one to be held against: a digest of each graph's generated code, in the
    order of generation (null when there are too many), and what is kept for the backward."""

    digests: Annotated[tuple[Annotated[str, Field(max_length=64)], ...], Field(max_length=MOST_DIGESTS)] | None = None
    saved: SavedForBackward | None = None


class DoneFrame(Frozen):
    """The child's last frame: how its phase ended. Its absence means that the process died. `captured` is handed to the
    native phase."""

    frame: Literal["done"] = "done"
    outcome: Annotated[Finished | Failed, Field(discriminator="type")]
    captured: Captured | None = None


Frame = Annotated[EventFrame | ArtifactFrame | DoneFrame, Field(discriminator="frame")]

FRAMES: TypeAdapter[EventFrame | ArtifactFrame | DoneFrame] = TypeAdapter(Frame)

_ENVELOPE = ("v", "run", "seq", "t", "compile", "stage")
_BODY: TypeAdapter[Body] = TypeAdapter(Body)


def dump_event(event: Event) -> dict[str, object]:
    """The event as it is stored and streamed: envelope and body in one flat object, absent envelope fields left out."""
    envelope = event.model_dump(mode="json", exclude={"body"}, exclude_none=True)
    return envelope | event.body.model_dump(mode="json")


def load_event(raw: dict[str, object]) -> Event:
    """The inverse of `dump_event`. Raises pydantic's ValidationError."""
    envelope = {key: raw[key] for key in _ENVELOPE if key in raw}
    body = _BODY.validate_python({key: value for key, value in raw.items() if key not in _ENVELOPE})
    return Event.model_validate(envelope | {"body": body})

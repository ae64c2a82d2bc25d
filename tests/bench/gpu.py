"""What a target without a device costs, through a warm worker's fork server.

The first row: from the request until the last thing of the codegen stage has been heard, GPT-2 block, for an H100 (Triton's
source) over the same for the CPU (C++). The second: from asking for one kernel of that run until its PTX has been heard, with all
that comes with it (SASS, registers, occupancy), over the two seconds that it may take.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from compiler.events import ArtifactRef, Event, Options, RunRequest, StageName
from compiler.ir.code import CodePayload
from compiler.ir.metal import MetalPayload
from compiler.ir.schedule import KernelsPayload
from compiler.targets import TargetId
from server.kernels import generated, question
from server.sandbox.launcher import Launcher
from server.sandbox.supervisor import Supervisor
from server.settings import load
from tests.bench.overhead import MODELS
from tests.bench.ratios import Ratio, abba, ratio, spread

BUDGET_SECONDS = 2.0
TARGET: TargetId = "sm_90"
SOURCE = (MODELS / "gpt2_block.py").read_text()


class _Listener:
    """Keeps a run, and when its codegen stage was last heard of."""

    def __init__(self) -> None:
        self.log: list[Event] = []
        self.payloads: dict[str, bytes] = {}
        self.generated = 0.0

    def artifact(self, ref: ArtifactRef, payload: bytes) -> None:
        self.payloads[ref.hash] = payload

    def events(self, events: Sequence[Event]) -> None:
        self.log += events
        if any(event.stage is StageName.CODEGEN for event in events):
            self.generated = time.perf_counter()


def _run(launcher: Launcher, request: RunRequest) -> tuple[_Listener, float]:
    """The run, and seconds from the request until its codegen stage was last heard of."""
    listener = _Listener()
    began = time.perf_counter()
    Supervisor("bench", request, launcher, listener, load(), lambda: False).run()
    if not listener.generated or listener.log[-1].body.type != "finished":
        raise RuntimeError(f"no code was generated: {listener.log[-1].body}")
    return listener, listener.generated - began


def _generated(launcher: Launcher, target: TargetId) -> float:
    return _run(launcher, RunRequest(source=SOURCE, options=Options(target=target, native=False)))[1]


def _questions(listener: _Listener) -> list[RunRequest]:
    """One for each Triton kernel of a run, forward and backward."""
    request = RunRequest(source=SOURCE, options=Options(target=TARGET, native=False))
    asked = []
    for event in listener.log:
        if event.body.type != "artifact" or event.body.artifact.kind != "kernels":
            continue
        table = KernelsPayload.model_validate_json(listener.payloads[event.body.artifact.hash])
        assert event.compile is not None
        prefix = f"{event.compile.replace('/', '_')}/codegen/{event.body.graph}"
        for kernel in (one for one in table.kernels if one.kind == "triton"):
            entity = f"{prefix}/{kernel.name}"
            code, _ = generated(listener.log, entity)
            text = CodePayload.model_validate_json(listener.payloads[code.hash])
            asked.append(request.model_copy(update={"question": question("bench", entity, 0, text, table)}))
    return asked


def _answered(launcher: Launcher, request: RunRequest) -> float:
    listener, seconds = _run(launcher, request)
    (payload,) = listener.payloads.values()
    if not any(level.name == "ptx" for level in MetalPayload.model_validate_json(payload).levels):
        raise RuntimeError("there is no PTX")
    return seconds


def measure(pairs: int) -> tuple[list[Ratio], str]:
    """Both rows; in words, the seconds of both arms and of each kernel once."""
    cpu = Launcher("compiler.child", warm=True)
    gpu = Launcher("compiler.child", warm=True, target=TARGET)
    try:
        for launcher in (cpu, gpu):
            launcher.ready()
        first, _ = _run(gpu, RunRequest(source=SOURCE, options=Options(target=TARGET, native=False)))
        asked = _questions(first)
        bases, news = abba(lambda: _generated(cpu, "cpu"), lambda: _generated(gpu, TARGET), pairs)
        answers = [_answered(gpu, asked[at % len(asked)]) for at in range(max(pairs, len(asked)))]
    finally:
        cpu.close()
        gpu.close()
    rows = [
        ratio("every stage up to generated code: H100 / CPU, GPT-2 block", bases, news, 1.0),
        ratio("PTX of a kernel / two seconds", [BUDGET_SECONDS] * len(answers), answers, 1.0),
    ]
    said = (
        f"Seconds, median and range: H100 {spread(news)}, CPU {spread(bases)}; "
        f"{len(answers)} answers of {len(asked)} kernels, SASS included {spread(answers)}."
    )
    return rows, said

"""The kernel phase: one Triton kernel of a finished run, compiled for the run's target and taken apart."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from compiler.errors import AotscopeError
from compiler.events import (
    Failed,
    Finished,
    KernelQuestion,
    RunRequest,
    StageFailed,
    StageFinished,
    StageName,
    StageStarted,
)
from compiler.ir.code import CodePayload, LineMarks
from compiler.ir.encode import Strings
from compiler.ir.metal import Candidate, Level, LevelName, MetalPayload
from compiler.metal import locations
from compiler.metal.needs import needs, usage
from compiler.metal.occupancy import occupancy
from compiler.session import Session, Sink, Sources
from compiler.targets import BY_ID, Device, TargetId
from compiler.text import message
from compiler.torch_compat.triton_build import (
    FILE,
    Compiled,
    NoKernelError,
    compile_config,
    load_kernel,
    triton_version,
)

_STAGE = StageName.CODEGEN
_SOURCES = Sources("", {})
_TIME = re.compile(r"^ptxas info *: Compile time.*\n?", re.M)
# In Inductor's DeviceProperties.
_CAPABILITY = re.compile(r"\bcc=(\d+)\b")
_ORDER: tuple[LevelName, ...] = get_args(LevelName)


def build(request: RunRequest, sink: Sink) -> Finished | Failed:
    """Answer a request's question: a `metal/1` artifact of its codegen stage, of the parent's compile and graph. Never raises for
    what is wrong with the kernel."""
    question = request.question
    device = None if question is None else _device(request.options.target, question.text)
    if question is None or device is None:
        return Failed(cause=message("metal.no_target", target=request.options.target))
    compile_slug, _, graph, _ = question.kernel.split("/", 3)
    compile_id = compile_slug.replace("_", "/")
    session = Session(sink, request.options, _SOURCES, lambda: compile_id)
    session.emit(StageStarted(), stage=_STAGE, compile=compile_id)
    scratch = Path(tempfile.mkdtemp(prefix="aotscope-kernel-"))
    before = os.environ.get("TRITON_CACHE_DIR")
    os.environ["TRITON_CACHE_DIR"] = str(scratch / "cache")
    try:
        payload, seconds = _payload(question, request.options.target, device)
    except AotscopeError as fault:
        failed = StageFailed(cause=fault.cause, error=fault.detail)
        session.emit(failed, stage=_STAGE, compile=compile_id)
        return Failed(cause=fault.cause, error=fault.detail)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if before is None:
            del os.environ["TRITON_CACHE_DIR"]
        else:
            os.environ["TRITON_CACHE_DIR"] = before
    session.artifact(payload, kind="metal", name="metal", stage=_STAGE, compile=compile_id, graph=graph)
    done = StageFinished(seconds=round(seconds, 4), graph=graph, facts={"levels": len(payload.levels)})
    session.emit(done, stage=_STAGE, compile=compile_id)
    return Finished()


def _device(target: TargetId, text: str) -> Device | None:
    """Whose limits a kernel has to keep. For the GPU of the machine: those of its compute capability, which the kernel's own text
    names; what differs between GPUs of one capability is not asked for here."""
    capability = _CAPABILITY.search(text)
    known = target if target != "cuda" else f"sm_{capability[1]}" if capability is not None else ""
    return BY_ID[known].device if known in BY_ID else None


def _payload(question: KernelQuestion, target: str, device: Device) -> tuple[MetalPayload, float]:
    """The same for the same question; and the seconds that Triton and the assembler took."""
    loaded = load_kernel(question.name, question.text)
    if question.config >= len(loaded.configs):
        raise NoKernelError(message("metal.no_config", index=question.config, count=len(loaded.configs)))
    began = time.perf_counter()
    compiled = compile_config(loaded, loaded.configs[question.config])
    seconds = time.perf_counter() - began
    rows = needs(compiled, device)
    taken = usage(rows, device)
    filled = None if taken is None else occupancy(device, taken)
    payload = MetalPayload(
        id=question.kernel.replace("/codegen/", "/metal/", 1),
        kernel=question.kernel,
        target=target,
        triton=triton_version(),
        config=question.config,
        candidates=[_candidate(config) for config in loaded.configs],
        chosen=message("metal.only_one") if len(loaded.configs) == 1 else message("metal.by_timing"),
        levels=_levels(question, compiled),
        needs=rows,
        occupancy=filled,
        occupancy_unknown=message("metal.occupancy_unknown") if filled is None else None,
        assembler_log=_TIME.sub("", _plain(compiled.log)).strip(),
    )
    return payload, seconds


def _candidate(config: Any) -> Candidate:
    return Candidate(blocks=dict(config.kwargs), warps=config.num_warps, stages=config.num_stages)


def _levels(question: KernelQuestion, compiled: Compiled) -> list[Level]:
    source = question.text
    found = {"triton": (source, {line: line for line in locations.triton_statements(source)})}
    for name, (read, _) in locations.READERS.items():
        if text := compiled.texts.get(name):
            found[name] = (text, read(text, FILE))
    if compiled.sass:
        found["sass"] = (compiled.sass, locations.of_sass(compiled.sass, found["ptx"][1]))
    entities = _entities(question)
    return [_level(question, name, *found[name], entities) for name in _ORDER if name in found]


def _level(
    question: KernelQuestion,
    name: LevelName,
    text: str,
    lines: Mapping[int, int],
    entities: Mapping[int, list[str]],
) -> Level:
    if name == "sass":
        statements = locations.sass_statements(text)
    elif name == "triton":
        statements = locations.triton_statements(text)
    else:
        statements = locations.READERS[name][1](text)
    strings = Strings()
    rows = [
        (line, strings.code(entity))
        for line, triton_line in sorted(lines.items())
        for entity in entities.get(triton_line, ())
    ]
    return Level(
        name=name,
        code=CodePayload(
            id=f"{question.kernel.replace('/codegen/', '/metal/', 1)}/{name}",
            language="python" if name == "triton" else "text",
            text=_plain(text),
            strings=strings.all,
            marks=LineMarks(line=[line for line, _ in rows], entity=[entity for _, entity in rows]),
        ),
        triton_line=[lines.get(number, 0) for number in range(1, text.count("\n") + 2)],
        statements=len(statements),
        linked=len(statements & set(lines)),
    )


def _entities(question: KernelQuestion) -> dict[int, list[str]]:
    """Line of the Triton source → what it stands for: FX nodes, lines of the snippet, its line of the generated code."""
    code = question.kernel.rpartition("/")[0]
    first = question.first_line
    found: dict[int, list[str]] = {line: [] for line in range(1, question.text.count("\n") + 2)}
    for line, entity in zip(question.marks.line, question.marks.entity, strict=True):
        at = line - first + 1
        if at in found and 0 <= entity < len(question.strings):
            found[at].append(question.strings[entity])
    for line, entities in found.items():
        entities.append(f"{code}/@{first + line - 1}")
    return found


def _plain(text: str) -> str:
    """Without the folder of the installed packages, which differs from machine to machine."""
    return _SOURCES.plain(text)

"""What is held against what in each kind of payload: its figures, its things one by one, its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from compiler.ir.aot import AotStepsPayload, LedgerPayload
from compiler.ir.code import CodePayload
from compiler.ir.comparison import Scalar
from compiler.ir.diff import value_text
from compiler.ir.dynamo import BreaksPayload, GuardsPayload, RecompilesPayload
from compiler.ir.execution import CachePayload, ExecutionPayload
from compiler.ir.fidelity import FidelityPayload
from compiler.ir.memory import MemoryPayload, MemoryTimelinePayload
from compiler.ir.metal import MetalPayload
from compiler.ir.partition import NetworkPayload, PartitionPayload
from compiler.ir.passes import PassesPayload
from compiler.ir.payloads import Payload
from compiler.ir.roofline import RooflinePayload
from compiler.ir.schedule import FusionPayload, KernelsPayload, SchedulePayload
from compiler.ir.source import SourcePayload

# Addresses and ids of objects, which are others in each process.
_ADDRESS = re.compile(r"\b(0x[0-9a-f]{6,}|\d{7,})\b")


@dataclass(frozen=True, slots=True)
class Item:
    """A thing in a table. Two are the same thing when their `key` is equal; the same in all when `text` is equal, too."""

    key: tuple[object, ...]
    text: str
    id: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """`figures` count; `measured` are a clock's, and only told. With `ordered`, the items' order matters. `text` is diffed."""

    figures: dict[str, Scalar] = field(default_factory=dict)
    measured: dict[str, Scalar] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    ordered: bool = False
    text: str = ""


def table(payload: Payload) -> Table | None:
    """The payload as a table; None for a kind that is held against another in no way of its own."""
    made = _TABLES.get(type(payload))
    return None if made is None else made(payload)


def _code(payload: CodePayload) -> Table:
    return Table(text=payload.text)


def _source(payload: SourcePayload) -> Table:
    figures: dict[str, Scalar] = {
        name: getattr(payload, name)
        for name in ("form", "model", "calls", "loss", "mode", "backend", "compile_kwargs", "config")
    }
    if payload.parameters is not None:
        figures |= {f"parameters.{name}": value for name, value in payload.parameters.model_dump().items()}
    items = [Item((one.name,), f"{one.name}: {value_text(one.value) or one.text}") for one in payload.inputs]
    return Table(figures, items=items, ordered=True, text=payload.model_text)


def _breaks(payload: BreaksPayload) -> Table:
    items = [
        Item((one.kind, one.gb_type, one.reason, one.function), f"{one.kind} {one.gb_id} {one.reason} ×{one.count}")
        for one in payload.breaks
    ]
    return Table({"breaks": len(items)}, items=items)


def _guards(payload: GuardsPayload) -> Table:
    items = [
        Item(
            (one.type, one.source), _ADDRESS.sub("…", f"{one.type} {one.source} {' and '.join(one.code) or one.value}")
        )
        for one in payload.guards
    ]
    return Table({"leaf_guards": payload.leaf_guards}, items=items)


def _recompiles(payload: RecompilesPayload) -> Table:
    items = [
        Item((one.source, _ADDRESS.sub("…", one.guard)), f"{one.guard}: {one.old} → {one.new}")
        for one in payload.recompiles
    ]
    return Table({"recompiles": len(items)}, items=items)


def _aot_steps(payload: AotStepsPayload) -> Table:
    items = [Item((one.name,), f"{one.name}: {one.nodes} nodes") for one in payload.steps]
    return Table(items=items, ordered=True)


def _ledger(payload: LedgerPayload) -> Table:
    items = [Item(("mutation", one.op, one.tensor), f"{one.op} {one.tensor}") for one in payload.mutations]
    items += [Item(("mutated input", one.tensor), f"{one.tensor} {one.type}") for one in payload.mutated_inputs]
    items += [Item(("output", one.output), f"output {one.output}: {one.type} {one.base}") for one in payload.outputs]
    items += [
        Item(
            ("decomposition", one.op, *(made.op for made in one.into)),
            f"{one.op} → {', '.join(f'{made.op} ×{made.count}' for made in one.into)} ×{one.count}",
        )
        for one in payload.decompositions
    ]
    return Table(items=items)


def _passes(payload: PassesPayload) -> Table:
    items = [
        Item((one.name,), f"{one.name}: {one.nodes_before} → {one.nodes_after}{' *' if one.changed else ''}")
        for one in payload.steps
    ]
    seconds = [one.seconds for one in payload.steps if one.seconds is not None]
    return Table(measured={"seconds": round(sum(seconds), 6)} if seconds else {}, items=items, ordered=True)


def _network(payload: NetworkPayload) -> Table:
    return Table({"nodes": len(payload.nodes.name), "edges": payload.edges_in_all, "cut_value": payload.value})


def _partition(payload: PartitionPayload) -> Table:
    figures: dict[str, Scalar] = {
        name: getattr(payload, name)
        for name in (
            "partitioner", "saved_bytes", "saved_activation_bytes", "save_everything_bytes", "eager_saved_bytes",
            "memory_budget", "cut_value",
        )
    }  # fmt: skip
    figures |= {"saved_tensors": len(payload.saved), "recomputed": len(payload.recomputed)}
    figures |= {f"options.{name}": value for name, value in payload.options.items()}
    items = [
        Item((one.node,), f"{one.node}: {one.verdict}", one.node, "" if one.bytes is None else f"{one.bytes} B")
        for one in payload.decisions
    ]
    return Table(figures, items=items, ordered=True)


def _schedule(payload: SchedulePayload) -> Table:
    kinds: dict[str, Scalar] = {}
    for one in payload.nodes:
        kinds[one.kind] = int(kinds.get(one.kind) or 0) + 1
    items = [
        Item(
            (one.kind, *(re.sub(r"_\d+$", "", name) for name in one.origins)),
            f"{one.kind} {one.dtype}[{', '.join(map(_size, one.shape))}] {' '.join(one.origins)}",
            one.name,
        )
        for one in payload.nodes
    ]
    return Table({"nodes": len(payload.nodes), **kinds}, items=items, ordered=True)


def _fusion(payload: FusionPayload) -> Table:
    figures: dict[str, Scalar] = {"nodes_before": payload.nodes_before, "nodes_after": payload.nodes_after}
    for name in ("bytes_before", "bytes_after"):
        sizes = [getattr(one, name) for one in payload.groups]
        figures[name] = None if None in sizes else sum(sizes)
    items = [
        Item(
            (one.kind, len(one.members)),
            f"{one.kind} {' '.join(one.members)}: {one.bytes_before} → {one.bytes_after} B",
        )
        for one in payload.groups
    ]
    return Table(figures, items=items, ordered=True)


def _kernels(payload: KernelsPayload) -> Table:
    figures: dict[str, Scalar] = {
        "kernels": sum(one.kind != "extern" for one in payload.kernels),
        "extern_calls": sum(len(one.launches) for one in payload.kernels if one.kind == "extern"),
        "launches": sum(len(one.launches) for one in payload.kernels if one.kind != "extern"),
        "statements": payload.statements,
    }
    items = [
        Item((one.kind, tuple(one.ops)), f"{one.name} ×{len(one.launches)}: {' '.join(one.ops)}", one.name)
        for one in payload.kernels
    ]
    return Table(figures, items=items)


def _roofline(payload: RooflinePayload) -> Table:
    figures: dict[str, Scalar] = {"target": payload.target, "device": payload.device, "seconds": payload.seconds}
    return Table(
        figures, items=[Item((one.kernel,), f"{one.kernel}: {one.seconds}", one.kernel) for one in payload.kernels]
    )


def _metal(payload: MetalPayload) -> Table:
    figures: dict[str, Scalar] = {"target": payload.target, "config": payload.config, "triton": payload.triton}
    figures |= {one.name: one.value for one in payload.needs}
    figures["warps"] = payload.occupancy.warps if payload.occupancy else None
    items = [
        Item((at,), f"{at}: {one.blocks} warps={one.warps} stages={one.stages}")
        for at, one in enumerate(payload.candidates)
    ]
    text = "\n".join(f"# {level.name}\n{level.code.text}" for level in payload.levels)
    return Table(figures, items=items, ordered=True, text=text)


def _fidelity(payload: FidelityPayload) -> Table:
    figures: dict[str, Scalar] = {
        "target": payload.target,
        "device": payload.device,
        "decisions": len(payload.decisions),
    }
    return Table(figures | {f"assumed.{name}": value for name, value in payload.assumed.items()})


def _timeline(payload: MemoryTimelinePayload) -> Table:
    figures: dict[str, Scalar] = {
        "peak_bytes": payload.peak_bytes,
        "end_bytes": payload.end_bytes,
        "blocks": len(payload.blocks.name),
        "points": len(payload.points.live),
    }
    # What the profiler saw depends on the machine; the others follow from the graphs.
    return Table(measured=figures) if payload.series in ("compiled", "eager") else Table(figures)


def _memory(payload: MemoryPayload) -> Table:
    measured = {f"peak.{name}": size for name, size in payload.peaks.items() if name in ("compiled", "eager")}
    figures = {f"peak.{name}": size for name, size in payload.peaks.items() if name not in ("compiled", "eager")}
    return Table(figures | payload.saved.model_dump(), {**measured})


def _execution(payload: ExecutionPayload) -> Table:
    verdicts = [one.agrees for one in payload.comparisons]
    figures: dict[str, Scalar] = {
        "compared": payload.compared,
        "comparisons": len(verdicts),
        "agree": verdicts.count(True),
        "disagree": verdicts.count(False),
        "diverges": payload.divergence.first if payload.divergence else None,
    }
    measured: dict[str, Scalar] = {
        "compile_seconds": payload.compile_seconds,
        "native_seconds": payload.native_seconds,
        "ratio": payload.timing.ratio if payload.timing else None,
    }
    measured |= {f"kernel.{one.name}": one.seconds for one in payload.kernels}
    items = [Item((one.kind, one.call, one.name), f"{one.name}: {_verdict(one.agrees)}") for one in payload.comparisons]
    return Table(figures, measured, items)


def _verdict(agrees: bool | None) -> str:
    return {True: "=", False: "≠", None: "?"}[agrees]


def _cache(payload: CachePayload) -> Table:
    items = [
        Item((one.what, one.cache), f"{one.what} {one.cache}: {one.outcome} ×{one.count} {one.reason}".rstrip())
        for one in payload.probes
    ]
    return Table(measured={"cold_seconds": payload.cold_seconds, "warm_seconds": payload.warm_seconds}, items=items)


def _size(size: object) -> str:
    return str(getattr(size, "expr", size))


_TABLES: dict[type, Callable[..., Table]] = {
    CodePayload: _code,
    SourcePayload: _source,
    BreaksPayload: _breaks,
    GuardsPayload: _guards,
    RecompilesPayload: _recompiles,
    AotStepsPayload: _aot_steps,
    LedgerPayload: _ledger,
    PassesPayload: _passes,
    NetworkPayload: _network,
    PartitionPayload: _partition,
    SchedulePayload: _schedule,
    FusionPayload: _fusion,
    KernelsPayload: _kernels,
    RooflinePayload: _roofline,
    MetalPayload: _metal,
    FidelityPayload: _fidelity,
    MemoryTimelinePayload: _timeline,
    MemoryPayload: _memory,
    ExecutionPayload: _execution,
    CachePayload: _cache,
}

"""Every payload an artifact can hold: artifact kind → model. The page's TypeScript types come from here."""

from __future__ import annotations

from compiler.ir.aot import AotStepsPayload, LedgerPayload
from compiler.ir.code import CodePayload
from compiler.ir.dynamo import BreaksPayload, GuardsPayload, RecompilesPayload
from compiler.ir.execution import CachePayload, ExecutionPayload
from compiler.ir.fidelity import FidelityPayload
from compiler.ir.graph import GraphPayload
from compiler.ir.link import LinksPayload
from compiler.ir.memory import MemoryPayload, MemoryTimelinePayload
from compiler.ir.metal import MetalPayload
from compiler.ir.partition import NetworkPayload, PartitionPayload
from compiler.ir.passes import PassesPayload
from compiler.ir.roofline import RooflinePayload
from compiler.ir.schedule import FusionPayload, KernelsPayload, SchedulePayload
from compiler.ir.source import SourcePayload
from compiler.ir.trace import TracePayload

Payload = (
    AotStepsPayload
    | LedgerPayload
    | CodePayload
    | BreaksPayload
    | GuardsPayload
    | RecompilesPayload
    | CachePayload
    | ExecutionPayload
    | FidelityPayload
    | GraphPayload
    | LinksPayload
    | MemoryPayload
    | MemoryTimelinePayload
    | MetalPayload
    | NetworkPayload
    | PartitionPayload
    | PassesPayload
    | RooflinePayload
    | FusionPayload
    | KernelsPayload
    | SchedulePayload
    | SourcePayload
    | TracePayload
)

PAYLOADS: dict[str, type[Payload]] = {
    "source": SourcePayload,
    "graph": GraphPayload,
    "code": CodePayload,
    "links": LinksPayload,
    "breaks": BreaksPayload,
    "guards": GuardsPayload,
    "recompiles": RecompilesPayload,
    "aot_steps": AotStepsPayload,
    "ledger": LedgerPayload,
    "passes": PassesPayload,
    "network": NetworkPayload,
    "partition": PartitionPayload,
    "schedule": SchedulePayload,
    "fusion": FusionPayload,
    "kernels": KernelsPayload,
    "metal": MetalPayload,
    "roofline": RooflinePayload,
    "timeline": MemoryTimelinePayload,
    "memory": MemoryPayload,
    "execution": ExecutionPayload,
    "cache": CachePayload,
    "fidelity": FidelityPayload,
    "trace": TracePayload,
}

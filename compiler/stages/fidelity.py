"""Of a run for a virtual GPU: which decisions the real device could have changed. Told under the execute stage."""

from __future__ import annotations

import triton

from compiler.events import StageName
from compiler.ir.fidelity import Decision, FidelityPayload
from compiler.ir.graph import Graph, Node, TensorValue
from compiler.session import Session, slug
from compiler.stages.generated import count
from compiler.targets import Device, Target
from compiler.text import message
from compiler.torch_compat.virtual_gpu import versions
from compiler.torch_compat.virtual_gpu.candidates import candidates
from compiler.torch_compat.virtual_gpu.fakes import Unknown

# Elements to which Inductor pads the sizes of a matrix multiplication (`fx_passes/pad_mm.py`, get_alignment_size_dtype).
_ALIGNMENT = {"float16": 8, "bfloat16": 8, "float32": 4}
_MATMULS = ("aten.mm.", "aten.addmm.", "aten.bmm.", "aten.baddbmm.")
_ATTENTION = "_scaled_dot_product_"


def tell(session: Session, target: Target, device: Device, unknown: Unknown) -> None:
    """The payload, after all code was generated. Nothing where none was."""
    if not session.codes:
        return
    with session.watching(StageName.CODEGEN):
        found = [
            _autotuned(session),
            _selected(unknown),
            *_of_nodes(session),
            _cuda_graphs(unknown),
            _library(session),
        ]
        payload = FidelityPayload(
            target=target.id,
            name=target.name,
            device=device.name,
            assumed=versions() | {"triton": triton.__version__},
            ran=message("virtual.not_run", name=target.name),
            decisions=[decision for decision in found if decision.count],
        )
        session.artifact(payload, kind="fidelity", name="fidelity", stage=StageName.EXECUTE)


def _autotuned(session: Session) -> Decision:
    numbers = {
        f"{slug(owner)}/codegen/{graph}/{name}": number
        for (owner, graph), code in session.codes.items()
        for name, number in candidates(code.text).items()
    }
    several = [entity for entity, number in numbers.items() if number > 1]
    text = message("virtual.autotune", kernels=len(several), all=len(numbers))
    return Decision(kind="autotune", count=len(several), of=len(numbers), entities=several, text=text)


def _selected(unknown: Unknown) -> Decision:
    choices = unknown.untimed
    details = [
        f"{choice.operator}: {candidate}{' ←' if candidate == choice.shown else ''}"
        for choice in choices
        for candidate in choice.candidates
    ]
    text = message("virtual.selection", count=len(choices), all=sum(len(choice.candidates) for choice in choices))
    return Decision(kind="selection", count=len(choices), details=details, text=text)


def _cuda_graphs(unknown: Unknown) -> Decision:
    count = unknown.graphs + len(unknown.skipped)
    text = message("virtual.cudagraphs", recorded=unknown.graphs, skipped=len(unknown.skipped))
    return Decision(kind="cudagraphs", count=count, details=list(dict.fromkeys(unknown.skipped)), text=text)


def _of_nodes(session: Session) -> list[Decision]:
    graphs = [graph for (_, stage, _), graph in session.graphs.items() if stage is StageName.POST_GRAD]
    attention = [f"{graph.id}/{node.name}" for graph in graphs for node in graph.nodes if _ATTENTION in node.target]
    padded = [f"{graph.id}/{node.name}" for graph in graphs for node in _unaligned(graph)]
    return [
        Decision(
            kind="attention",
            count=len(attention),
            entities=attention,
            text=message("virtual.attention", count=len(attention)),
        ),
        Decision(
            kind="padding", count=len(padded), entities=padded, text=message("virtual.padding", count=len(padded))
        ),
    ]


def _unaligned(graph: Graph) -> list[Node]:
    """Matrix multiplications with a size that is no multiple of what the dtype is padded to."""
    values = {node.name: node.value for node in graph.nodes}
    found = []
    for node in graph.nodes:
        if node.target.startswith(_MATMULS) and isinstance(node.value, TensorValue):
            step = _ALIGNMENT.get(node.value.dtype.removeprefix("torch."))
            given = [values.get(name) for name in node.inputs]
            sizes = {
                size
                for value in (node.value, *given)
                if isinstance(value, TensorValue)
                for size in value.shape[-2:]
                if isinstance(size, int)
            }
            if step and any(size % step for size in sizes):
                found.append(node)
    return found


def _library(session: Session) -> Decision:
    calls = sum(count(code.text).extern_calls for code in session.codes.values())
    return Decision(kind="library", count=calls, text=message("virtual.library", count=calls))

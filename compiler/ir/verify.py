"""What must hold of every graph that a stage makes. Run after each lift in the tests."""

from __future__ import annotations

from compiler.ir.graph import Graph

OPS = frozenset({"placeholder", "get_attr", "call_function", "call_method", "call_module", "output"})


def problems(graph: Graph) -> list[str]:
    """Every rule that the graph breaks, as text; empty when it is sound.

    Names are distinct and not empty; ops are FX's; each node reads only earlier nodes, each once; placeholders come before
    other nodes and read nothing; the one output, if any, is last; in a graph of both halves, a twin is a forward node."""
    found: list[str] = []
    if len(graph.id.split("/")) != 3:
        found.append(f"id {graph.id!r} is not compile/stage/graph")
    seen: dict[str, str] = {}
    computing = False
    both_halves = {"forward", "backward"} <= {node.phase for node in graph.nodes}
    for position, node in enumerate(graph.nodes):
        if not node.name or node.name in seen:
            found.append(f"{node.name!r}: name is empty or used twice")
        if node.op not in OPS:
            found.append(f"{node.name}: {node.op!r} is no FX op")
        if len(set(node.inputs)) != len(node.inputs):
            found.append(f"{node.name}: reads a node twice")
        found += [f"{node.name}: reads {name}, which is not before it" for name in node.inputs if name not in seen]
        if node.op == "placeholder":
            if node.inputs:
                found.append(f"{node.name}: a placeholder that reads")
            if computing:
                found.append(f"{node.name}: a placeholder after the first computing node")
        elif node.op != "get_attr":
            computing = True
        if node.op == "output" and position != len(graph.nodes) - 1:
            found.append(f"{node.name}: an output that is not last")
        if both_halves and node.twin is not None and seen.get(node.twin) == "backward":
            found.append(f"{node.name}: its twin {node.twin} is a backward node")
        stride = node.value.stride if node.value is not None and node.value.kind == "tensor" else None
        if stride is not None and len(stride) != len(node.value.shape):  # type: ignore[union-attr]
            found.append(f"{node.name}: {len(stride)} strides for another number of dimensions")
        seen[node.name] = node.phase
    return found


def verify(graph: Graph) -> Graph:
    """The graph itself. Raises ValueError, naming every problem, when it is not sound."""
    found = problems(graph)
    if found:
        raise ValueError(f"{graph.id}: " + "; ".join(found))
    return graph

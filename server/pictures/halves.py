"""A forward and a backward graph as one: what the backward takes in from the forward comes from the forward's own node."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.graph import Graph, Node


def join(forward: Graph, backward: Graph) -> Graph:
    """One graph, in topological order, whose id names both. A call that the forward has too is a recomputation
    and gets a name of its own, `name again`; the forward's list of results to keep is left out, since wires show it."""
    known = {node.name for node in forward.nodes if node.op != "output"}
    crossing = {node.name for node in backward.nodes if node.op == "placeholder" and node.name in known}
    nodes = [_forward(node, crossing) for node in forward.nodes if node.op != "output"]
    place: dict[str, str] = {}
    for node in backward.nodes:
        if node.name in crossing:
            place[node.name] = node.name
            continue
        again = node.name in known
        place[node.name] = f"{node.name} again" if again else node.name
        roles = tuple(role for role in node.roles if role != "recomputed") + (("recomputed",) if again else ())
        nodes.append(
            replace(
                node,
                name=place[node.name],
                inputs=tuple(place[name] for name in node.inputs),
                phase="backward",
                roles=roles,
            )
        )
    return Graph(backward.id + "+forward", tuple(nodes))


def _forward(node: Node, crossing: set[str]) -> Node:
    roles = tuple(role for role in node.roles if role not in ("recomputed", "saved"))
    return replace(node, phase="forward", roles=(*roles, "saved") if node.name in crossing else roles)

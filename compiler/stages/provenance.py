"""From the FX nodes that Inductor keeps with its IR to entities of the post-grad stage and lines of the snippet."""

from __future__ import annotations

from collections.abc import Iterable

import torch.fx as fx

from compiler.events import StageName
from compiler.ir.graph import Graph
from compiler.lift import lift_graph
from compiler.session import Session, slug


class Provenance:
    """For one graph of one compile. Nodes of subgraphs (bodies of higher-order operators) have lines, and no entity: only
    their operator is a node of the graph."""

    def __init__(self, session: Session, compile: str, kind: str) -> None:
        self._session = session
        self._kind = kind
        self._id = f"{slug(compile)}/post_grad/{kind}"
        self._graph: Graph | None = session.graphs.get((compile, StageName.POST_GRAD, kind))
        self._nodes = {node.name: (i, node) for i, node in enumerate(self._graph.nodes)} if self._graph else {}
        self._bodies: dict[int, dict[str, int | None]] = {}

    def entity(self, name: str) -> str | None:
        return f"{self._id}/{name}" if name in self._nodes else None

    def ordered(self, nodes: Iterable[fx.Node]) -> list[fx.Node]:
        """Each node once, in the order of the graph."""
        distinct = {node.name: node for node in nodes}
        last = len(self._nodes)
        return sorted(distinct.values(), key=lambda node: (self._nodes.get(node.name, (last, None))[0], node.name))

    def line(self, node: fx.Node) -> int | None:
        """The line of the snippet that a node comes from."""
        known = self._nodes.get(node.name)
        if known is not None:
            return known[1].line
        body = self._bodies.get(id(node.graph))
        if body is None:
            lifted = lift_graph(node.graph, id=f"{self._id}.body", sources=self._session.sources)
            body = self._bodies[id(node.graph)] = {inner.name: inner.line for inner in lifted.nodes}
        return body.get(node.name)

    def line_of(self, nodes: list[fx.Node]) -> int | None:
        """The line to show for several nodes: that of the last one that has any, for it gives the result."""
        return next((line for node in reversed(nodes) if (line := self.line(node))), None)

    def recomputed(self, name: str) -> bool:
        """Whether the backward computes a node that the forward has computed already."""
        known = self._nodes.get(name)
        return self._kind == "backward" and known is not None and "recomputed" in known[1].roles

    def target(self, node: fx.Node) -> str:
        known = self._nodes.get(node.name)
        return known[1].target if known is not None else str(node.target)

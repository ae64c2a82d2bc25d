"""From the FX nodes that Inductor keeps with its IR to entities of the post-grad stage and lines of the snippet."""

from __future__ import annotations

from collections.abc import Iterable

import torch.fx as fx

from compiler.events import StageName
from compiler.ir.graph import Node, StackFrame
from compiler.lift import lift_graph
from compiler.session import Session, slug


class Provenance:
    """For one graph of one compile, whose FX graph is `graph`. Nodes of other graphs (the bodies of higher-order operators)
    have lines and no entity: only their operator is a node of the graph."""

    def __init__(self, session: Session, compile: str, kind: str, graph: fx.Graph) -> None:
        self._session = session
        self._kind = kind
        self._id = f"{slug(compile)}/post_grad/{kind}"
        self._fx = graph
        lifted = session.graphs.get((compile, StageName.POST_GRAD, kind))
        self._nodes = {node.name: (i, node) for i, node in enumerate(lifted.nodes)} if lifted is not None else {}
        self._bodies: dict[fx.Graph, dict[str, tuple[int, Node]]] = {}

    def entity(self, node: fx.Node) -> str | None:
        return f"{self._id}/{node.name}" if node.graph is self._fx and node.name in self._nodes else None

    def ordered(self, nodes: Iterable[fx.Node]) -> list[fx.Node]:
        """Each node once, in the order of the graph."""
        known = {node: self._known(node) for node in nodes}
        last = len(self._nodes)
        return sorted(known, key=lambda node: (last if (found := known[node]) is None else found[0], node.name))

    def line(self, node: fx.Node) -> int | None:
        """The line of the snippet that a node comes from. An input has none: what is done to it (a copy in another layout) is
        done for what reads it, so it is the line of the first reader that has one."""
        found = self._known(node)
        if found is None or found[1].line is not None or node.op != "placeholder":
            return None if found is None else found[1].line
        readers = (self._known(user) for user in node.users)
        return next((reader[1].line for reader in readers if reader is not None and reader[1].line is not None), None)

    def library(self, node: fx.Node) -> StackFrame | None:
        """The library's innermost frame that a node comes from."""
        found = self._known(node)
        return found[1].stack[-1] if found is not None and found[1].stack else None

    def line_of(self, nodes: list[fx.Node]) -> int | None:
        """The line to show for several nodes: that of the last one that has any, for it gives the result."""
        return next((line for node in reversed(nodes) if (line := self.line(node))), None)

    def recomputed(self, node: fx.Node) -> bool:
        """Whether the backward computes a node that the forward has computed already."""
        found = self._known(node) if node.graph is self._fx else None
        return self._kind == "backward" and found is not None and "recomputed" in found[1].roles

    def target(self, node: fx.Node) -> str:
        found = self._known(node)
        return str(node.target) if found is None else found[1].target

    def _known(self, node: fx.Node) -> tuple[int, Node] | None:
        if node.graph is self._fx:
            return self._nodes.get(node.name)
        body = self._bodies.get(node.graph)
        if body is None:
            lifted = lift_graph(node.graph, id=f"{self._id}.body", sources=self._session.sources)
            body = self._bodies[node.graph] = {inner.name: (i, inner) for i, inner in enumerate(lifted.nodes)}
        return body.get(node.name)

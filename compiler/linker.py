"""Links between entities of neighbouring stages, made from the objects in which torch keeps the relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler.ir.code import CodePayload, LineMarks
from compiler.ir.diff import print_graph
from compiler.ir.encode import Strings
from compiler.ir.graph import Graph, Node
from compiler.ir.link import LinkColumns, LinksPayload


class Links:
    """Collects links; `payload` gives them in columns. A link that is added twice is kept once."""

    def __init__(self) -> None:
        self._strings = Strings()
        self._links: dict[tuple[int, int, int, int], None] = {}

    def add(self, source: str, target: str, kind: str, evidence: str) -> None:
        code = self._strings.code
        self._links[code(source), code(target), code(kind), code(evidence)] = None

    def lines(self, graph: Graph) -> None:
        """From each line of the snippet to the nodes that come from it."""
        for node in graph.nodes:
            if node.line:
                self.add(f"line/{node.line}", f"{graph.id}/{node.name}", "line", "stack_trace")

    def same_names(self, before: Graph, after: Graph) -> None:
        """Passes and the partitioner keep the names of the nodes that they keep."""
        names = {node.name for node in before.nodes}
        for node in after.nodes:
            if node.name in names and node.op != "output":
                self.add(f"{before.id}/{node.name}", f"{after.id}/{node.name}", "lowered", "name")

    def lowered(self, before: Graph, after: Graph, origins: Mapping[str, Sequence[str]], evidence: str) -> None:
        """From the nodes that torch says a node was made of: name → names in the earlier graph."""
        known = {node.name for node in before.nodes}
        for node in after.nodes:
            for origin in origins.get(node.name, ()):
                if origin in known:
                    self.add(f"{before.id}/{origin}", f"{after.id}/{node.name}", "lowered", evidence)

    def replacements(self, before: Graph, after: Graph) -> None:
        """From the nodes that passes removed to those they made in their place: the ones of the same stack, in the same
        half; torch copies the stack of what is replaced. Where only a library's frames are known, which calls of one function
        share, the module must be the same too."""
        old = {node.name for node in before.nodes}
        new = {node.name for node in after.nodes}
        removed: dict[tuple[object, ...], list[str]] = {}
        for node in before.nodes:
            if node.name not in new and node.stack:
                removed.setdefault(_made_at(node), []).append(node.name)
        for node in after.nodes:
            if node.name not in old:
                for name in removed.get(_made_at(node), ()):
                    self.add(f"{before.id}/{name}", f"{after.id}/{node.name}", "lowered", "pass")

    def payload(self) -> LinksPayload:
        columns = list(zip(*self._links, strict=True)) or [(), (), (), ()]
        source, target, kind, evidence = (list(column) for column in columns)
        return LinksPayload.model_construct(
            format="links/1",
            strings=self._strings.all,
            links=LinkColumns.model_construct(source=source, target=target, kind=kind, evidence=evidence),
        )


def _made_at(node: Node) -> tuple[object, ...]:
    return node.stack, node.phase, "" if node.line else node.module


def between(before: Graph | None, after: Graph) -> Links:
    """The links of a stage that transforms a graph and keeps names: lines, names, and what replaced what."""
    links = Links()
    links.lines(after)
    if before is not None:
        links.same_names(before, after)
        links.replacements(before, after)
    return links


def from_dynamo(dynamo: Graph | None, joint: Graph, origins: Mapping[str, Sequence[str]]) -> Links:
    """From Dynamo's nodes to those of the traced graph: a forward node says which it was made of, a placeholder which it
    stands for, and a backward node comes from what its twin comes from."""
    links = Links()
    links.lines(joint)
    if dynamo is None:
        return links
    known = {node.name for node in dynamo.nodes}
    found = {name: [origin for origin in sources if origin in known][:1] for name, sources in origins.items()}
    links.lowered(dynamo, joint, found, "from_node")
    for node in joint.nodes:
        for origin in found.get(node.twin or "", ()):
            links.add(f"{dynamo.id}/{origin}", f"{joint.id}/{node.name}", "lowered", "seq_nr")
    return links


def graph_code(graph: Graph) -> CodePayload:
    """The printed graph, each line marked with its node and the line of the snippet."""
    strings = Strings()
    rows: list[int] = []
    entities: list[int] = []
    lines = print_graph(graph)
    for number, line in enumerate(lines, 1):
        for entity in (line.node and f"{graph.id}/{line.node}", line.source_line and f"line/{line.source_line}"):
            if entity:
                rows.append(number)
                entities.append(strings.code(entity))
    return CodePayload.model_construct(
        format="code/1",
        id=graph.id,
        language="python",
        text="\n".join(line.text for line in lines) + "\n",
        strings=strings.all,
        marks=LineMarks.model_construct(line=rows, entity=entities),
    )

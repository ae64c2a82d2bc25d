"""Between `Graph`, which the stages work with, and `GraphPayload`, its columns for the wire. `decode(encode(g)) == g`."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from compiler.ir.graph import EdgeColumns, Graph, GraphPayload, Node, NodeColumns, StackFrame, Value

T = TypeVar("T")

_TEXTS = ("name", "op", "target", "args", "phase", "module", "module_type", "grad_fn")


class Strings:
    """A dictionary of strings: `code` gives the index of a string, adding it when it is new. Index 0 is always ""."""

    def __init__(self) -> None:
        self.all: list[str] = [""]
        self._codes: dict[str, int] = {"": 0}

    def code(self, text: str) -> int:
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.all)
            self.all.append(text)
        return code


class _Distinct(Generic[T]):
    """Equal values once each. Values are shared between nodes by the lifter, so identity settles nearly every look-up."""

    def __init__(self) -> None:
        self.all: list[T] = []
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[T, int] = {}

    def code(self, value: T) -> int:
        code = self._by_identity.get(id(value))
        if code is None:
            code = self._by_value.setdefault(value, len(self.all))
            if code == len(self.all):
                self.all.append(value)
            self._by_identity[id(value)] = code
        return code


def encode(graph: Graph) -> GraphPayload:
    """The graph in columns. Raises KeyError when a node reads one that is not in the graph."""
    strings = Strings()
    values: _Distinct[Value] = _Distinct()
    stacks: _Distinct[tuple[StackFrame, ...]] = _Distinct()
    index = {node.name: i for i, node in enumerate(graph.nodes)}
    nodes = graph.nodes
    columns: dict[str, Any] = {field: [strings.code(getattr(node, field)) for node in nodes] for field in _TEXTS}
    # The columns are made here and are right by construction: pydantic need not look at each number.
    node_columns = NodeColumns.model_construct(
        _fields_set=None,
        **columns,
        call=[node.call for node in nodes],
        line=[node.line or 0 for node in nodes],
        stack=[stacks.code(node.stack) if node.stack else -1 for node in nodes],
        seq_nr=[-1 if node.seq_nr is None else node.seq_nr for node in nodes],
        twin=[-1 if node.twin is None else strings.code(node.twin) for node in nodes],
        roles=[strings.code(" ".join(node.roles)) for node in nodes],
        value=[-1 if node.value is None else values.code(node.value) for node in nodes],
        bytes=[_bytes(node.value) for node in nodes],
    )
    sources: list[int] = []
    targets: list[int] = []
    for i, node in enumerate(nodes):
        for name in node.inputs:
            sources.append(index[name])
            targets.append(i)
    return GraphPayload.model_construct(
        format="graph/1",
        id=graph.id,
        strings=strings.all,
        values=values.all,
        stacks=[list(stack) for stack in stacks.all],
        nodes=node_columns,
        edges=EdgeColumns.model_construct(source=sources, target=targets),
    )


def decode(payload: GraphPayload) -> Graph:
    """The inverse of `encode`."""
    text = payload.strings
    column = payload.nodes
    inputs: list[list[str]] = [[] for _ in column.name]
    for source, target in zip(payload.edges.source, payload.edges.target, strict=True):
        inputs[target].append(text[column.name[source]])
    stacks = [tuple(stack) for stack in payload.stacks]
    return Graph(
        payload.id,
        tuple(
            Node(
                name=text[column.name[i]],
                op=text[column.op[i]],
                target=text[column.target[i]],
                args=text[column.args[i]],
                inputs=tuple(inputs[i]),
                value=None if column.value[i] < 0 else payload.values[column.value[i]],
                phase=text[column.phase[i]],  # type: ignore[arg-type]
                module=text[column.module[i]],
                module_type=text[column.module_type[i]],
                call=column.call[i],
                line=column.line[i] or None,
                stack=stacks[column.stack[i]] if column.stack[i] >= 0 else (),
                seq_nr=None if column.seq_nr[i] < 0 else column.seq_nr[i],
                twin=None if column.twin[i] < 0 else text[column.twin[i]],
                grad_fn=text[column.grad_fn[i]],
                roles=tuple(text[column.roles[i]].split()),
            )
            for i in range(len(column.name))
        ),
    )


def _bytes(value: Value | None) -> int:
    """Bytes of a tensor, or of the tensors of a tuple; -1 where any is unknown or there is none."""
    if value is None or value.kind == "scalar":
        return -1
    if value.kind == "tensor":
        return -1 if value.bytes is None else value.bytes
    parts = [_bytes(item) for item in value.items if item is not None]
    return -1 if not parts or -1 in parts else sum(parts)

"""The one translator from torch's FX graphs to `compiler.ir.graph.Graph`.

Nothing of torch's is copied or changed: a graph is read where it is, in the middle of a compile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

import torch.fx as fx

from compiler.ir.graph import Graph, Node, StackFrame
from compiler.session import Sources
from compiler.torch_compat import fx as read

Phase = Literal["forward", "backward", ""]

_ROOT = re.compile(r"^(?:[A-Z]+\[['\"](?P<name>\w+)['\"]\]|(?P<bare>\w+))")
_SUBSCRIPT = re.compile(r"\[['\"]?([^'\"\]]*)['\"]?\]")
_WRAPPERS = frozenset({"_modules", "_parameters", "_buffers", "_orig_mod", "__call__", "__wrapped__", "forward"})


class _Path(NamedTuple):
    """A module, parameter or buffer: the variable it hangs on, and its name as `model.named_modules()` has it."""

    root: str
    name: str

    def shown(self, several_roots: bool) -> str:
        if not several_roots or self.root in ("", "self"):
            return self.name
        return f"{self.root}.{self.name}" if self.name else self.root


@lru_cache(maxsize=16384)
def _path(expression: str) -> _Path:
    """`L['self']._modules['layers']._modules['0']` → ("self", "layers.0")."""
    hit = _ROOT.match(expression)
    root = (hit["name"] or hit["bare"]) if hit else ""
    rest = _SUBSCRIPT.sub(r".\1", expression[hit.end() :] if hit else expression)
    segments = [part for part in rest.split(".") if part and part not in _WRAPPERS]
    return _Path(root, ".".join(segments))


class _Module(NamedTuple):
    path: _Path
    type: str
    call: int


@lru_cache(maxsize=16384)
def _module(stack: tuple[tuple[str, str, str], ...]) -> _Module | None:
    """The innermost module of a stack; the key of its n-th call ends in `@n-1`."""
    if not stack:
        return None
    key, path, kind = stack[-1]
    _, at, call = key.rpartition("@")
    return _Module(_path(path), kind, int(call) if at and call.isdigit() else 0)


class _Stacks:
    """Stack traces parsed once each, with the frames of the user's own files marked."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._parsed: dict[str, tuple[tuple[StackFrame, ...], int | None]] = {"": ((), None)}

    def parse(self, trace: str) -> tuple[tuple[StackFrame, ...], int | None]:
        """The stack, outermost frame first, and the innermost line of the snippet in it."""
        known = self._parsed.get(trace)
        if known is None:
            shown, is_user = self._sources.shown, self._sources.is_user
            stack = tuple(
                StackFrame(file=shown(file), line=line, function=function, code=code, user=is_user(file))
                for file, line, function, code in read.frames(trace)
            )
            known = self._parsed[trace] = (stack, self._sources.line(stack))
        return known

    def library(self, frame: tuple[str, int, str, str] | None) -> tuple[StackFrame, ...]:
        """A stack of the one frame that is known of a node of a library's module."""
        if frame is None:
            return ()
        file, line, function, code = frame
        return (StackFrame(file=self._sources.shown(file), line=line, function=function, code=code),)


@lru_cache(maxsize=4)
def _stacks(main: str, root: str | None, files: frozenset[tuple[str, str]]) -> _Stacks:
    return _Stacks(Sources(main, dict(files), root))


class _Draft:
    """One node while the graph is being lifted: what torch says of it, to be completed from its neighbours."""

    __slots__ = (
        "call",
        "grad_fn",
        "line",
        "module",
        "module_known",
        "module_type",
        "node",
        "phase",
        "roles",
        "stack",
        "twin",
    )

    def __init__(self, node: fx.Node, phase: Phase) -> None:
        self.node = node
        self.phase = phase
        self.module = ""
        self.module_type = ""
        self.module_known = False
        self.call = 0
        self.line: int | None = None
        self.stack: tuple[StackFrame, ...] = ()
        self.twin: str | None = None
        self.grad_fn = ""
        self.roles: list[str] = []

    def place(self, module: str, module_type: str, call: int) -> None:
        self.module, self.module_type, self.call, self.module_known = module, module_type, call, True

    def place_like(self, other: _Draft) -> None:
        self.place(other.module, other.module_type, other.call)


def lift_graph(
    graph: fx.Graph,
    *,
    id: str,
    sources: Sources,
    phase_of: Callable[[fx.Node], str] | None = None,
    earlier: Graph | None = None,
    dynamo: Graph | None = None,
    grad_fns: Mapping[int, str] | None = None,
) -> Graph:
    """The graph as a value. `id` is `compile/stage/graph`.

    `phase_of` says the half of a node; without it, torch's own tag does (a joint graph's node without one is forward).
    `earlier` is the neighbouring earlier stage's graph of the same names: what cannot be told from half of a joint graph
    (a twin, an owner, a role) is taken from it.
    `dynamo` is Dynamo's graph, to name the parameters among a joint graph's placeholders. `grad_fns` maps
    the number of an autograd node to its name."""
    stacks = _stacks(sources.main, sources.root, frozenset(sources.files.items()))
    nodes = list(graph.nodes)
    drafts = {node: _draft(node, phase_of or read.half, stacks) for node in nodes}
    _place_by_stack(drafts.values())
    _place_inputs(drafts.values(), dynamo)
    _mark_outputs(nodes, drafts)
    _find_twins(drafts.values(), grad_fns or {})
    if earlier is not None:
        _inherit(drafts.values(), earlier)
    _place_accumulations(drafts)
    _place_mutations(drafts)
    _place_strays(drafts)
    args = {node: "" for node in nodes if node.op == "placeholder"}
    args |= _input_names(drafts.values(), dynamo, earlier)
    return Graph(
        id,
        tuple(
            Node(
                name=node.name,
                op=node.op,
                target=read.target_text(node),
                args=args[node] if node in args else read.args_text(node),
                inputs=tuple(source.name for source in node.all_input_nodes),
                value=read.value_of(node),
                phase=draft.phase,
                module=draft.module,
                module_type=draft.module_type,
                call=draft.call,
                line=draft.line,
                stack=draft.stack,
                seq_nr=read.seq_nr(node),
                twin=draft.twin,
                grad_fn=draft.grad_fn,
                roles=tuple(dict.fromkeys(draft.roles)),
            )
            for node, draft in drafts.items()
        ),
    )


def _draft(node: fx.Node, phase_of: Callable[[fx.Node], str], stacks: _Stacks) -> _Draft:
    draft = _Draft(node, phase_of(node))  # type: ignore[arg-type]
    draft.stack, draft.line = stacks.parse(read.stack_trace(node))
    if not draft.stack and node.op.startswith("call"):
        draft.stack = stacks.library(read.module_frame(node))
    if read.is_accumulation(node):
        draft.roles.append("accumulation")
    if read.is_mutation(node):
        draft.roles.append("mutation")
    return draft


def _place_by_stack(drafts: Iterable[_Draft]) -> None:
    """The module that torch recorded. A node with a Python stack but no module lies in the root's own `forward`."""
    found: list[tuple[_Draft, _Module]] = []
    for draft in drafts:
        if draft.node.op in ("placeholder", "output"):
            continue
        module = _module(read.modules(draft.node))
        if module is not None:
            found.append((draft, module))
        elif draft.stack and "accumulation" not in draft.roles:
            draft.module_known = True
    several = len({module.path.root for _, module in found}) > 1
    for draft, module in found:
        draft.place(module.path.shown(several), module.type, module.call)


def _place_inputs(drafts: Iterable[_Draft], dynamo: Graph | None) -> None:
    """Roles of placeholders, and the owner of each parameter and buffer."""
    originals = [node for node in dynamo.nodes if node.op == "placeholder"] if dynamo is not None else []
    for draft in drafts:
        node = draft.node
        if node.op != "placeholder":
            continue
        draft.module_known = True
        source = read.source_name(node)
        if read.is_tangent(node):
            draft.roles.append("tangent")
            draft.phase = "backward"
        elif source:
            role = "parameter" if read.is_parameter(node) else "buffer" if "_buffers[" in source else "input"
            draft.roles.append(role)
            if role != "input":
                draft.module = _path(source).name.rpartition(".")[0]
        elif "desc" in node.meta:
            draft.roles.append("primal")
            index = read.input_index(node)
            if index is not None and index < len(originals):
                draft.roles += [role for role in originals[index].roles if role in ("parameter", "buffer", "input")]
                draft.module = originals[index].module


def _input_names(drafts: Iterable[_Draft], dynamo: Graph | None, earlier: Graph | None) -> dict[fx.Node, str]:
    """What a placeholder stands for, as the user wrote it: `fc1.weight`, `x`."""
    originals = [node for node in dynamo.nodes if node.op == "placeholder"] if dynamo is not None else []
    before = {node.name: node.args for node in earlier.nodes if node.op == "placeholder"} if earlier is not None else {}
    names: dict[fx.Node, str] = {}
    for draft in drafts:
        node = draft.node
        if node.op != "placeholder":
            continue
        source = read.source_name(node)
        index = read.input_index(node) if "primal" in draft.roles else None
        if source:
            path = _path(source)
            names[node] = path.name or path.root
        elif node.name in before:
            names[node] = before[node.name]
        elif index is not None and index < len(originals):
            names[node] = originals[index].args
    return names


def _mark_outputs(nodes: list[fx.Node], drafts: dict[fx.Node, _Draft]) -> None:
    if not nodes or nodes[-1].op != "output":
        return
    roles = read.output_roles(nodes[-1])
    drafts[nodes[-1]].module_known = True
    for node in nodes[-1].all_input_nodes:
        role = roles[node.name][0]
        if role:
            drafts[node].roles.append(role)


def _find_twins(drafts: Iterable[_Draft], grad_fns: Mapping[int, str]) -> None:
    """A backward node is the gradient of the first forward node with its number: the later ones with the same number
    are not differentiable and have only inherited it."""
    first: dict[int, _Draft] = {}
    for draft in drafts:
        number = read.seq_nr(draft.node)
        if number is None or not draft.node.op.startswith("call"):
            continue
        if "accumulation" in draft.roles or "mutation" in draft.roles:
            continue  # made between two autograd nodes: the number is what the last one left behind
        draft.grad_fn = grad_fns.get(number, "")
        if draft.phase == "forward":
            first.setdefault(number, draft)
        elif draft.phase == "backward" and number in first:
            twin = first[number]
            draft.twin = twin.node.name
            draft.place_like(twin)


_LASTING = frozenset({"primal", "parameter", "buffer", "input", "tangent", "accumulation", "saved", "recomputed"})


def _inherit(drafts: Iterable[_Draft], earlier: Graph) -> None:
    """What a node of the same name was known to be, one stage earlier."""
    before = {node.name: node for node in earlier.nodes}
    for draft in drafts:
        old = before.get(draft.node.name)
        if old is None:
            continue
        draft.place(old.module, old.module_type, old.call)
        draft.twin = draft.twin or old.twin
        draft.grad_fn = draft.grad_fn or old.grad_fn
        draft.roles += [role for role in old.roles if role in _LASTING]
        if not draft.stack:
            draft.stack, draft.line = old.stack, old.line


def _place_accumulations(drafts: dict[fx.Node, _Draft]) -> None:
    """A sum of gradients belongs to the module that produced the tensor whose gradient it is."""
    forward: dict[int, list[fx.Node]] = {}
    by_name = {node.name: node for node in drafts}
    position = {node: i for i, node in enumerate(drafts)}
    for node, draft in drafts.items():
        number = read.seq_nr(node)
        if draft.phase == "forward" and number is not None and node.op.startswith("call"):
            forward.setdefault(number, []).append(node)
    summed: dict[fx.Node, fx.Node] = {}  # accumulation → the forward tensor whose gradient it sums

    def read_by(gradient: fx.Node) -> set[fx.Node]:
        """The forward tensors that a gradient can be of: what the forward of its autograd node read. An addition hands
        its gradient on as it is, so what was added is among them too."""
        tensor = summed.get(gradient)
        start = tensor if tensor is not None else by_name.get(drafts[gradient].twin or "")
        if start is None:
            return set()
        group = forward.get(read.seq_nr(start) or -1, [start])
        inside = set(group)
        todo = [source for node in group for source in node.all_input_nodes if source not in inside]
        found = {tensor} if tensor is not None else set()
        while todo:
            source = todo.pop()
            if source not in found:
                found.add(source)
                if read.is_addition(source):
                    todo += source.all_input_nodes
        return found

    for node, draft in drafts.items():
        if "accumulation" not in draft.roles or draft.module_known:
            continue
        parts = [read_by(source) for source in node.all_input_nodes]
        common = set.intersection(*parts) if parts else set()
        if common:
            shape = _shape(node)
            tensor = max(common, key=lambda tensor: (_shape(tensor) == shape, position[tensor]))
            summed[node] = tensor
            draft.place_like(drafts[tensor])
            continue
        consumer = next((user for user in node.users if drafts[user].twin), None)
        if consumer is not None:
            draft.place_like(drafts[consumer])


def _shape(node: fx.Node) -> object:
    return getattr(read.value_of(node), "shape", None)


def _place_mutations(drafts: dict[fx.Node, _Draft]) -> None:
    """The final `copy_` into a buffer belongs to the module that owns the buffer, in the forward; it has no line of
    its own, so the line is that of the value it stores."""
    for node, draft in drafts.items():
        if "mutation" not in draft.roles or not node.args or not isinstance(node.args[0], fx.Node):
            continue
        target = drafts[node.args[0]]
        if "buffer" in target.roles or "parameter" in target.roles:
            draft.place(target.module, draft.module_type, draft.call)
        source = node.args[1] if len(node.args) > 1 else None
        if not draft.stack and isinstance(source, fx.Node):
            draft.stack, draft.line = drafts[source].stack, drafts[source].line


def _place_strays(drafts: dict[fx.Node, _Draft]) -> None:
    """A node that torch made without any record (a view, a cast, a pattern's replacement) goes to the nearest common
    ancestor of its neighbours in its own half, and takes the line of one of them: of what reads it sooner than of what it
    reads, for a pass makes a constant or a view for what comes after it."""
    for node, draft in drafts.items():
        if draft.module_known or node.op == "get_attr":
            continue
        near = [drafts[other] for other in (*node.all_input_nodes, *node.users)]
        near = [
            other for other in near if other.module_known and other.phase == draft.phase and other.node.op != "output"
        ]
        inner = [other for other in near if other.node.op != "placeholder"] or near
        if inner:
            draft.place(*_common(inner))
    without = [draft for draft in drafts.values() if not draft.stack and draft.node.op.startswith("call")]
    for turn, backwards in ((reversed(without), True), (without, False)):
        for draft in turn:
            near = [drafts[other] for other in (draft.node.users if backwards else draft.node.all_input_nodes)]
            known = next((other for other in near if other.line and other.phase == draft.phase), None)
            if not draft.stack and known is not None:
                draft.stack, draft.line = known.stack, known.line


def _common(drafts: list[_Draft]) -> tuple[str, str, int]:
    first = drafts[0]
    if all(draft.module == first.module for draft in drafts):
        return first.module, first.module_type, first.call
    common: list[str] = []
    for segments in zip(*(draft.module.split(".") for draft in drafts), strict=False):
        if len(set(segments)) > 1:
            break
        common.append(segments[0])
    return ".".join(common), "", 0

"""Inductor's own memory plan of one graph: which buffer owns which bytes, and from when to when.

Read from the wrapper's lines after Inductor's memory planning, where a buffer that takes over another's memory is a line of its
own. Bytes that a kernel allocates for itself (workspaces, copies in another layout) are in no plan.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch._inductor import ir
from torch._inductor.codegen.wrapper import (
    AllocateLine,
    ExternKernelAllocLine,
    FreeIfNotReusedLine,
    FreeLine,
    MultiOutputLine,
    PythonWrapperCodegen,
    ReinterpretLine,
    ReuseLine,
)
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V

from compiler.plan_timeline import Key, Plan, PlanEvent
from compiler.torch_compat.hooks import replaced

# Functions whose result is their first argument's memory, although their schema does not say so.
_VIEWS = {"reshape", "_unsafe_view", "_conj", "_neg_view"}
_ALIAS = re.compile(r"^(\w+) = reinterpret_tensor\((\w+),.*# alias")
_DELETED = re.compile(r"^del ([\w, ]+)$")


@contextmanager
def planned(told: Callable[[Plan], None]) -> Iterator[None]:
    """Tell the plan of every graph, until the context ends. The bodies of higher-order operators have none of their own."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def passes(self: PythonWrapperCodegen, is_inference: bool) -> Any:
            in_place = {id(line) for line in self.lines if isinstance(line, ReuseLine)}
            result = original(self, is_inference)
            if type(V.graph) is GraphLowering:
                told(_Reader(V.graph, in_place).read(self.lines))
            return result

        return passes

    with replaced(PythonWrapperCodegen, "run_wrapper_ir_passes", make):
        yield


class _Reader:
    """Names are bound to the memory they stand for; memory is released with its last name."""

    def __init__(self, graph: GraphLowering, in_place: set[int]) -> None:
        self._graph = graph
        self._in_place = in_place
        self._events: list[PlanEvent] = []
        self._bytes: dict[Key, int] = {}
        self._names: dict[str, list[Key]] = {}
        self._elements: dict[str, list[Key]] = {}
        self._references: Counter[Key] = Counter()
        for name in (*graph.graph_inputs, *graph.constants):
            self._bind(name, [(name, 0)])
        # They are not ours to release.
        self._given = set(self._references)

    def read(self, lines: Sequence[Any]) -> Plan:
        for line in lines:
            self._line(line)
        outputs = [self._names.get(name, []) for name in self._graph.get_output_names()]
        returned = {key for keys in outputs for key in keys}
        for name in list(self._names):
            if not any(key in returned for key in self._names[name]):
                self._unbind(name)
        inputs = self._graph.graph_inputs
        return Plan(
            graph="backward" if self._graph.is_backward else "inference" if self._graph.is_inference else "forward",
            events=tuple(self._events),
            inputs=tuple(name for name, value in inputs.items() if not isinstance(value, sympy.Expr)),
            outputs=tuple(next((key for key in keys if key not in self._given), None) for keys in outputs),
        )

    def _bind(self, name: str, keys: list[Key]) -> None:
        self._names[name] = list(keys)
        self._references.update(keys)

    def _unbind(self, name: str) -> None:
        for key in self._names.pop(name, ()):
            self._references[key] -= 1
            if not self._references[key]:
                self._events.append(PlanEvent(key, -self._bytes.get(key, 0), name))

    def _allocate(self, name: str, buffer: Any) -> list[Key]:
        key = (name, len(self._events))
        self._bytes[key] = self._size(buffer)
        self._events.append(PlanEvent(key, self._bytes[key], name))
        return [key]

    def _size(self, buffer: Any) -> int:
        """Bytes of a buffer's storage; symbolic sizes by their hint."""
        layout = buffer.get_output_spec() if hasattr(buffer, "get_output_spec") else None
        if not isinstance(layout, ir.Layout):
            return 0
        elements = self._graph.sizevars.optimization_hint(self._graph.get_allocation_storage_size(buffer), fallback=0)
        return int(elements) * int(layout.dtype.itemsize)

    def _line(self, line: Any) -> None:
        if isinstance(line, AllocateLine):
            name = line.node.get_name()
            self._bind(name, self._allocate(name, line.node))
        elif isinstance(line, ReuseLine):
            self._reuse(line.node.get_name(), line.reused_as.get_name(), line)
        elif isinstance(line, ReinterpretLine):
            self._bind(line.reused_as.get_name(), self._names.get(line.layout.view.get_name(), []))
        elif isinstance(line, FreeIfNotReusedLine):
            if not line.is_reused:
                self._unbind(line.node.get_name())
        elif isinstance(line, FreeLine):
            self._unbind(line.node.get_name())
        elif isinstance(line, ExternKernelAllocLine):
            self._extern(line.node)
        elif isinstance(line, MultiOutputLine):
            self._element(line)
        else:
            self._text(line if isinstance(line, str) else getattr(line, "line", None))

    def _reuse(self, old: str, new: str, line: ReuseLine) -> None:
        keys = self._names.get(old, [])
        how = "in_place" if id(line) in self._in_place else "reused"
        self._events += [PlanEvent(key, 0, new, how) for key in keys if key not in self._given]
        self._bind(new, keys)
        if line.delete_old and old not in self._graph.get_output_names():
            self._unbind(old)

    def _extern(self, node: Any) -> None:
        """A call that allocates its own result, or gives views of its arguments."""
        name = node.get_name()
        aliased = list(node.get_inputs_that_alias_output())
        overload = getattr(node, "op_overload", None)
        if not aliased and isinstance(overload, torch._ops.OpOverload):
            is_view = overload.namespace == "aten" and overload._schema.name.split("::")[1] in _VIEWS
            if overload.is_view or is_view:
                aliased = [source.get_name() for source in node.inputs[:1]]
        keys = [key for source in aliased for key in self._names.get(source, [])]
        results = getattr(node, "outputs", None) or []
        parts = results if isinstance(results, (list, tuple)) else [results]
        parts = [part for part in parts if isinstance(part, ir.Buffer)]
        if not isinstance(node.layout, ir.MultiOutputLayout):
            self._bind(name, keys if aliased else self._allocate(name, node))
            return
        for part in parts:
            own = keys if aliased else self._allocate(part.get_name(), part)
            self._elements[part.get_name()] = own
        self._bind(name, keys if aliased else [key for part in parts for key in self._elements[part.get_name()]])

    def _element(self, line: MultiOutputLine) -> None:
        keys = self._elements.get(line.result_name)
        if keys is None:
            keys = self._allocate(line.result_name, self._graph.try_get_buffer(line.result_name))
            if line.arg_name in self._names:
                self._names[line.arg_name] += keys
                self._references.update(keys)
        self._bind(line.result_name, keys)

    def _text(self, text: Any) -> None:
        if not isinstance(text, str):
            return
        if match := _ALIAS.match(text.strip()):
            self._bind(match[1], self._names.get(match[2], []))
        elif match := _DELETED.match(text.strip()):
            for name in match[1].split(","):
                self._unbind(name.strip())

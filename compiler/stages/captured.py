"""What Dynamo did, in sentences: of each break and skip, and of what in a captured graph surprises its author."""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch

from compiler.events import Finding, Severity
from compiler.ir.dynamo import GraphBreak, Recompile
from compiler.ir.graph import Graph
from compiler.text import Message, message
from compiler.torch_compat.breaks import own_name
from compiler.torch_compat.dynamo import items_captured, replaced_inputs

_LIMIT = re.compile(r"currently set to (\d+)")
_SENTENCE = re.compile(r"(?<=[.`])\s+(?=[A-Z])")


def sentence(found: GraphBreak, last: Recompile | None) -> Message:
    """What a break or a skip means for the user's function. `last` is the run's latest recompile."""
    params = {"function": own_name(found.function), "what": _what(found)}
    if found.kind == "skipped":
        return message("dynamo.mode_active", mode=found.context, function=params["function"])
    if found.kind == "recompile_limit":
        limit = _LIMIT.search(found.explanation)
        if limit is None or last is None or not last.source:
            return message("dynamo.recompile_limit", **params)
        values = {"source": last.source, "old": last.old, "new": last.new}
        return message("dynamo.recompile_limit_values", function=params["function"], limit=int(limit[1]), **values)
    if found.kind == "backend_failure":
        return message("dynamo.backend_failure", explanation=found.explanation, **params)
    cause = found.cause_type
    if found.kind == "rest_of_function":
        if cause:
            return message("dynamo.rest_of_function_after", cause=cause, **params)
        return message("dynamo.rest_of_function", **params)
    if found.kind == "whole_function":
        if cause:
            return message("dynamo.whole_function_after", cause=cause, **params)
        return message("dynamo.whole_function", **params)
    if found.library:
        return message("dynamo.break_in_library", library=found.library, inside=found.stack[-1].function, **params)
    return message("dynamo.break", **params)


def own_hint(found: GraphBreak) -> Message | None:
    """Where torch has no hint of its own."""
    return message("dynamo.mode_active_hint") if found.kind == "skipped" else None


def _what(found: GraphBreak) -> str:
    """Torch's name of the break, and the sentence of its explanation that names the operator or the function at hand."""
    kind = found.gb_type if found.gb_id else found.reason
    first = _SENTENCE.split(found.explanation.strip(), maxsplit=1)[0].rstrip(".")
    if found.kind != "break" or not first:
        return kind.rstrip(". ")
    return f"{kind.rstrip('.')} ({first})"


def noteworthy(module: torch.fx.GraphModule, graph: Graph, whole_graph: bool) -> Iterator[Finding]:
    """What is in a captured graph and is not what its author would expect."""
    lines = {node.name: node.line for node in graph.nodes}
    if whole_graph:
        for name in items_captured(module.graph):
            said = message("dynamo.item_captured")
            yield Finding(severity=Severity.NOTE, message=said, line=lines.get(name), entity=f"{graph.id}/{name}")
    for found in replaced_inputs(module.graph):
        said = message("dynamo.data_replaced", input=found.source, recorded=found.recorded, called=found.called)
        yield Finding(
            severity=Severity.WARNING,
            message=said,
            line=lines.get(found.node),
            entity=f"{graph.id}/{found.node}",
            hint=message("dynamo.data_replaced_hint"),
        )

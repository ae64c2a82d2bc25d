"""Dynamo's own objects, where they pass: graphs, guards, recompiles. Breaks and skips are in `breaks.py`.

Every hook first lets torch do its work, then looks; what it sees it gives to a `Listener` as `compiler.ir` values.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import torch
from torch._dynamo import convert_frame, exc, guards
from torch._dynamo.eval_frame import innermost_backend
from torch._dynamo.output_graph import OutputGraph

from compiler.ir.dynamo import Guard, Recompile
from compiler.ir.graph import StackFrame
from compiler.session import Sources
from compiler.torch_compat.compiles import Attempt, compile_name, current_attempt, current_compile
from compiler.torch_compat.fx import tensor_value

_TEXT_LIMIT = 80


class Listener(Protocol):
    """What is told of a compile. `graph` may give a callable back that then stands for what the backend would have made."""

    def graph(self, attempt: Attempt, module: torch.fx.GraphModule, backend: Any) -> Callable[..., Any] | None: ...

    def graph_compiled(self, attempt: Attempt) -> None: ...

    def guards(self, compile: str, guards: list[Guard], leaf_guards: int, tree: str) -> None: ...

    def recompiled(self, attempt: Attempt, reasons: list[str], rows: list[Recompile]) -> None: ...


def stack_frames(stack: Iterable[Any], sources: Sources) -> list[StackFrame]:
    """torch's traceback summaries, outermost first; file names as shown to the user."""
    return [
        StackFrame(
            file=sources.shown(frame.filename),
            line=frame.lineno or 0,
            function=frame.name,
            code=frame.line or "",
            user=sources.is_user(frame.filename),
        )
        for frame in stack
    ]


def snippet_line(stack: list[StackFrame], sources: Sources) -> int | None:
    return sources.line(tuple(stack))


def short(value: Any) -> str:
    """A value as a guard's reader wants it: numbers and short strings as they are, tensors by shape, the rest by type."""
    if isinstance(value, torch.Tensor):
        seen = tensor_value(value)
        shape = ", ".join(str(extent) if isinstance(extent, int) else extent.expr for extent in seen.shape)
        return f"Tensor[{shape}] {seen.dtype}"
    if isinstance(value, (bool, int, float, str, type(None), tuple)) and not isinstance(value, torch.Size):
        text = repr(value)
        if len(text) <= _TEXT_LIMIT:
            return text
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return f"<{type(value).__name__}>"


def is_soft(fault: BaseException) -> bool:
    """Whether torch answers an exception of Dynamo's by giving the frame to eager, unless the whole graph was asked for."""
    return isinstance(fault, (exc.Unsupported, exc.UserError))


def backend_name(backend: Any) -> str:
    """What the user named, or the name of the function that was given."""
    inner = innermost_backend(backend)
    name = getattr(inner, "compiler_name", None) or getattr(inner, "__name__", type(inner).__name__)
    return "inductor" if name == "compile_fx" else str(name)


def is_leaf(line: str) -> bool:
    """Whether a line of a guard tree is a guard, and not one of the managers that hold them."""
    _, mark, rest = line.partition("+- ")
    return bool(mark) and "GuardManager" not in rest.split(":", 1)[0]


class _Stacks:
    """Guards of one compile share their stacks: each is translated once. One without the user's frames keeps its innermost."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._known: dict[tuple[tuple[str, int | None], ...], list[StackFrame]] = {}

    def __call__(self, stack: Any) -> list[StackFrame]:
        if not stack:
            return []
        key = tuple((frame.filename, frame.lineno) for frame in stack)
        known = self._known.get(key)
        if known is None:
            mine = [frame for frame in stack if self._sources.is_user(frame.filename)]
            known = self._known[key] = stack_frames(mine or list(stack)[-1:], self._sources)
        return known


Guarded = Callable[[], contextlib.AbstractContextManager[None]]


class _GuardWatch:
    """Keeps the values that each compile's guards saw, to show them beside the new ones when a guard fails."""

    def __init__(self, listener: Listener, sources: Sources) -> None:
        self._listener = listener
        self._sources = sources
        self._values: dict[str, dict[str, str]] = {}
        self._lines: dict[str, dict[str, list[StackFrame]]] = {}
        self._rows: list[Recompile] | None = None

    def built(self, manager: Any, scope: dict[str, Any], builder: Any) -> None:
        """torch's own testing hook, after each successful build of a guard manager."""
        name = current_compile()
        attempt = current_attempt()
        if name is None:
            return
        began = time.perf_counter()
        stacks = _Stacks(self._sources)
        values: dict[str, str] = {}
        lines: dict[str, list[StackFrame]] = {}
        found = []
        for guard in sorted(builder.check_fn_manager.output_graph.guards):
            source = guard.name
            if source and source not in values:
                values[source] = _value_of(builder, guard)
            stack = stacks(guard.user_stack)
            if source and stack:
                lines.setdefault(source, stack)
            found.append(
                Guard(
                    type=guard.create_fn_name(),
                    source=source,
                    code=list(guard.code_list or ()),
                    value=values.get(source, ""),
                    line=snippet_line(stack, self._sources),
                    stack=stack,
                )
            )
        self._values[name] = values
        self._lines[name] = lines
        tree = str(manager)
        self._listener.guards(name, found, sum(map(is_leaf, tree.splitlines())), tree)
        if attempt is not None:
            attempt.own += time.perf_counter() - began

    def collect(self) -> list[Recompile]:
        rows, self._rows = self._rows or [], None
        return rows

    def expect(self) -> None:
        self._rows = []

    def failed(self, manager: Any, f_locals: dict[str, Any], compile_id: Any, reason: str) -> None:
        """One cache entry did not fit: which guard, and both values."""
        if self._rows is None:
            return
        entry = compile_name(compile_id)
        scope = {"L": f_locals, "G": manager.global_scope["G"], **manager.closure_vars}
        info = manager.check_verbose(f_locals)
        part = _failing_part(info.verbose_code_parts, manager.global_scope, scope) or reason
        stored = self._values.get(entry, {})
        source = max((name for name in stored if name and name in part), key=len, default="")
        stack = stack_frames(info.user_stack or (), self._sources)
        line = snippet_line(stack, self._sources)
        if line is None and source:
            line = snippet_line(self._lines.get(entry, {}).get(source, []), self._sources)
        self._rows.append(
            Recompile(
                compile=current_compile() or "",
                entry=entry,
                guard=part.split("  #", 1)[0].strip(),
                source=source,
                old=stored.get(source, ""),
                new=_evaluate(source, manager.global_scope, scope) if source else "",
                line=line,
                text=reason,
            )
        )


def _value_of(builder: Any, guard: Any) -> str:
    try:
        return short(builder.get(guard))
    except Exception as error:  # noqa: BLE001 - not every guarded name is an expression that can be evaluated
        return f"<{type(error).__name__}>"


def _evaluate(source: str, global_scope: dict[str, Any], scope: dict[str, Any]) -> str:
    try:
        return short(eval(source, dict(global_scope), scope))
    except Exception as error:  # noqa: BLE001 - the new value may lack what the old one had; that is the answer
        return f"<{type(error).__name__}>"


def _failing_part(parts: list[str], global_scope: dict[str, Any], scope: dict[str, Any]) -> str:
    """One part is the reason itself; of several, the first that does not hold."""
    if len(parts) == 1:
        return parts[0]
    for part in parts:
        try:
            held = eval(part, dict(global_scope), scope)
        except Exception:  # noqa: BLE001 - torch, too, passes over parts that cannot be evaluated alone
            continue
        if held is False or isinstance(held, str):
            return held if isinstance(held, str) else part
    return ""


@contextlib.contextmanager
def watching(listener: Listener, sources: Sources, guarded: Guarded) -> Iterator[None]:
    """While it lasts, `listener` is told of every graph that Dynamo gives to whichever backend, of guards, of recompiles.

    `guarded()` is entered around our own work in a hook, so that a fault of ours never reaches the compile."""
    watch = _GuardWatch(listener, sources)
    call_user_compiler = OutputGraph.call_user_compiler
    fail_reason = guards.get_guard_fail_reason_helper
    recompilation = convert_frame.get_and_maybe_log_recompilation_reasons
    testing_hook = guards.guard_manager_testing_hook_fn

    def on_graph(self: OutputGraph, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        attempt = current_attempt()
        if attempt is None:
            return call_user_compiler(self, gm, example_inputs)
        attempt.graphs += 1
        instead: Callable[..., Any] | None = None
        with guarded():
            instead = listener.graph(attempt, gm, self.compiler_fn)
        compiled = call_user_compiler(self, gm, example_inputs) if instead is None else instead
        with guarded():
            listener.graph_compiled(attempt)
        return compiled

    def on_guard_failure(manager: Any, f_locals: dict[str, Any], compile_id: Any, backend: Any) -> str:
        reason: str = fail_reason(manager, f_locals, compile_id, backend)
        with guarded():
            watch.failed(manager, f_locals, compile_id, reason)
        return reason

    def on_guards(manager: Any, scope: dict[str, Any], builder: Any) -> None:
        with guarded():
            watch.built(manager, scope, builder)

    def on_recompile(*args: Any, **kwargs: Any) -> list[str]:
        attempt = current_attempt()
        if attempt is None:
            unseen: list[str] = recompilation(*args, **kwargs)
            return unseen
        reasons: list[str] = []
        watch.expect()
        try:
            reasons = recompilation(*args, **kwargs)
            return reasons
        finally:
            attempt.reasons = reasons
            with guarded():
                listener.recompiled(attempt, reasons, watch.collect())

    OutputGraph.call_user_compiler = on_graph
    guards.get_guard_fail_reason_helper = on_guard_failure
    convert_frame.get_and_maybe_log_recompilation_reasons = on_recompile
    guards.guard_manager_testing_hook_fn = on_guards
    try:
        yield
    finally:
        OutputGraph.call_user_compiler = call_user_compiler
        guards.get_guard_fail_reason_helper = fail_reason
        convert_frame.get_and_maybe_log_recompilation_reasons = recompilation
        guards.guard_manager_testing_hook_fn = testing_hook

"""Dynamo's own objects, where they pass: graphs, guards, recompiles. Breaks and skips are in `breaks.py`.

Every hook first lets torch do its work, then looks; what it sees it gives to a `Listener` as `compiler.ir` values.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Protocol

import torch
from torch._dynamo import convert_frame, exc, external_utils, guards
from torch._dynamo.eval_frame import innermost_backend
from torch._dynamo.output_graph import OutputGraph
from torch._guards import TracingContext
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from compiler.ir.dynamo import Guard, Recompile
from compiler.ir.graph import StackFrame
from compiler.session import Sources
from compiler.torch_compat.compiles import Attempt, compile_name, current_attempt, current_compile
from compiler.torch_compat.fx import tensor_value

_TEXT_LIMIT = 80
_HOOKS = "EMPTY_NN_MODULE_HOOKS_DICT"
_GLOBAL = "GLOBAL_STATE changed: "
_MISMATCH = re.compile(
    r"(requires_grad|dtype|rank|size|stride|device|dispatch key set) mismatch(?: at index (\d+))?"
    r"\. expected (?:requires_grad=)?(.*?)(?:, actual (.*))?$"
)


class Listener(Protocol):
    """What is told of a compile. `graph` may give a callable back that then stands for what the backend would have made."""

    def graph(self, attempt: Attempt, module: torch.fx.GraphModule, backend: Any) -> Callable[..., Any] | None: ...

    def graph_compiled(self, attempt: Attempt) -> None: ...

    def guards(self, compile: str, guards: list[Guard], leaf_guards: int, tree: str) -> None: ...

    def recompiled(self, attempt: Attempt, reasons: list[str], rows: list[Recompile]) -> None: ...

    def specialised(self, attempt: Attempt, found: Specialisation) -> None: ...

    def unguarded(self, found: ChangedHooks) -> None: ...


@dataclass(frozen=True)
class Specialisation:
    """A size (or number) that was an expression in this compile and became a constant. `line` is the snippet's line that
    made it one, `code` the text of the line, or of the library's under it."""

    source: str
    value: str
    line: int | None
    code: str


@dataclass(frozen=True)
class ChangedHooks:
    """A module's dictionary of hooks that was empty when a compile read it, and is not any more, though no guard looks at it:
    `source` is torch's expression of it, `line` the first line of the hook's function, where that is the snippet's."""

    compile: str
    source: str
    count: int
    line: int | None


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


def items_captured(graph: torch.fx.Graph) -> list[str]:
    """Nodes that take a number out of a tensor, in a graph where only the wish for one whole graph allows it."""
    if convert_frame.config.capture_scalar_outputs:
        return []
    return [node.name for node in graph.nodes if node.op == "call_method" and node.target == "item"]


@dataclass(frozen=True)
class ReplacedInput:
    """An input of a graph whose storage the graph replaces (`x.data = …`), at `node`: its shape as the graph records it, and
    as it was when the function was called."""

    node: str
    source: str
    recorded: str
    called: str


def replaced_inputs(graph: torch.fx.Graph) -> list[ReplacedInput]:
    found = []
    for node in graph.nodes:
        given = node.args[0] if node.args else None
        if getattr(node.target, "__name__", node.target) != "set_" or getattr(given, "op", None) != "placeholder":
            continue
        assert isinstance(given, torch.fx.Node)
        recorded, argument = given.meta.get("example_value"), given.meta.get("grapharg")
        called = getattr(argument, "example", None)
        if isinstance(recorded, torch.Tensor) and isinstance(called, torch.Tensor) and recorded.shape != called.shape:
            source = argument.source.name if argument.source is not None else given.name
            found.append(ReplacedInput(node.name, source, str(list(recorded.shape)), str(list(called.shape))))
    return found


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
        self._states: dict[str, dict[str, str]] = {}
        self._hooks: dict[str, tuple[str, Any]] = {}  # source → the compile that read it last, and the dictionary
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
            if guard.create_fn_name() == _HOOKS and guards.config.skip_nnmodule_hook_guards:
                self._hooks[source] = (name, builder.get(guard))
            stack = stacks(guard.user_stack)
            if source and stack:
                lines.setdefault(source, stack)
            found.append(
                Guard(
                    type=guard.create_fn_name(),
                    source=source,
                    code=[self._sources.plain(code) for code in guard.code_list or ()],
                    value=values.get(source, ""),
                    line=snippet_line(stack, self._sources),
                    stack=stack,
                )
            )
        self._values[name] = values
        self._states[name] = _global_state()
        self._lines[name] = lines
        tree = self._sources.plain(str(manager))
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
        old = stored.get(source, "")
        new = _evaluate(source, manager.global_scope, scope) if source else ""
        mismatch = _MISMATCH.search(part)
        if mismatch:
            source, old, new = _mismatch(source, mismatch)
        elif (extent := _extent(source, part, old)) is not None:
            source, old = extent
            new = _evaluate(source, manager.global_scope, scope)
        elif part.startswith(_GLOBAL):
            source, old, new = _changed_state(part, self._states.get(entry, {}))
        self._rows.append(
            Recompile(
                compile=current_compile() or "",
                entry=entry,
                guard=self._sources.plain(part.split("  #", 1)[0].strip()),
                source=source,
                old=old,
                new=new,
                line=line if line is not None else calling_line(self._sources),
                text=self._sources.plain(reason),
            )
        )

    def changed_hooks(self) -> list[ChangedHooks]:
        """What was put into the hook dictionaries that a compile found empty, and that none was made for since."""
        found = []
        for source, (id_, hooks) in self._hooks.items():
            if len(hooks):
                code = getattr(next(iter(hooks.values())), "__code__", None)
                line = code.co_firstlineno if code is not None and code.co_filename == self._sources.main else None
                found.append(ChangedHooks(compile=id_, source=source, count=len(hooks), line=line))
        return found


def _extent(source: str, part: str, tensor: str) -> tuple[str, str] | None:
    """Of a condition on a tensor's size: its expression, and what it was, read off the tensor as it was shown."""
    found = re.search(re.escape(source) + r"\.size\(\)\[(\d+)\]", part) if source else None
    shape = re.match(r"Tensor\[(.*)\]", tensor)
    if found is None or shape is None:
        return None
    return found[0], shape[1].split(", ")[int(found[1])]


def _mismatch(source: str, found: re.Match[str]) -> tuple[str, str, str]:
    """What torch's text about a tensor says of its one property: (its expression, what it was, what it is)."""
    what, index, old, new = found.groups()
    if what == "requires_grad":
        was = old == "1"
        return f"{source}.requires_grad", str(was), str(not was)
    name = {"rank": "dim()", "size": f"size()[{index}]", "stride": f"stride()[{index}]"}.get(
        what, what.replace(" ", "_")
    )
    return f"{source}.{name}", old.strip(), (new or "").strip()


def _global_state() -> dict[str, str]:
    """What GLOBAL_STATE guards, by torch's names."""
    return {
        "grad_mode": str(torch.is_grad_enabled()),
        "torch_function": str(torch._C._is_torch_function_enabled()),
        "deterministic_algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "deterministic_algorithms_warn_only": str(torch.is_deterministic_algorithms_warn_only_enabled()),
        "num_threads": str(torch.get_num_threads()),
        "default_dtype": str(torch.get_default_dtype()),
    }


def _changed_state(part: str, stored: dict[str, str]) -> tuple[str, str, str]:
    now = _global_state()
    names = [name for name in part.removeprefix(_GLOBAL).split() if name in stored]
    return ", ".join(names), ", ".join(stored[name] for name in names), ", ".join(now[name] for name in names)


def calling_line(sources: Sources) -> int | None:
    """The line at which the snippet is now, that is, which made the call."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != sources.main:
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


def is_wrapper(code: CodeType) -> bool:
    """Whether this is the frame that torch puts around a module of its own, so that there is one to compile."""
    return bool(code.co_filename == external_utils.__file__)


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


def _specialised(env: ShapeEnv, symbol: Any, value: str, sources: Sources) -> Iterator[Specialisation]:
    """Sizes of inputs have a source; those that a graph makes itself have none."""
    for source in env.var_to_sources.get(symbol, ()):
        whole = env.specialization_stacks.get(source) or TracingContext.extract_stack()
        stack = stack_frames(whole or (), sources)
        yield Specialisation(
            source=source.name,
            value=value,
            line=snippet_line(stack, sources),
            code=stack[-1].code.strip() if stack else "",
        )


@contextlib.contextmanager
def watching(listener: Listener, sources: Sources, guarded: Guarded) -> Iterator[None]:
    """While it lasts, `listener` is told of every graph that Dynamo gives to whichever backend, of guards, of recompiles.

    `guarded()` is entered around our own work in a hook, so that a fault of ours never reaches the compile."""
    watch = _GuardWatch(listener, sources)
    call_user_compiler = OutputGraph.call_user_compiler
    fail_reason = guards.get_guard_fail_reason_helper
    recompilation = convert_frame.get_and_maybe_log_recompilation_reasons
    testing_hook = guards.guard_manager_testing_hook_fn
    set_replacement = ShapeEnv._set_replacement

    def on_replacement(self: ShapeEnv, symbol: Any, target: Any, reason: str) -> None:
        before = self.replacements.get(symbol)
        set_replacement(self, symbol, target, reason)
        attempt = current_attempt()
        if attempt is not None and before != target and target.is_number and self.replacements.get(symbol) == target:
            with guarded():
                for found in _specialised(self, symbol, str(target), sources):
                    listener.specialised(attempt, found)

    def on_graph(self: OutputGraph, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        attempt = current_attempt()
        if attempt is None:
            return call_user_compiler(self, gm, example_inputs)
        attempt.graphs += 1
        attempt.whole_graph = bool(self.root_tx is not None and self.root_tx.one_graph)
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

    # Beside a guard torch names the first frame that is not in this file of its own.
    on_replacement.__code__ = on_replacement.__code__.replace(co_filename=symbolic_shapes.__file__)
    OutputGraph.call_user_compiler = on_graph
    guards.get_guard_fail_reason_helper = on_guard_failure
    convert_frame.get_and_maybe_log_recompilation_reasons = on_recompile
    guards.guard_manager_testing_hook_fn = on_guards
    ShapeEnv._set_replacement = on_replacement
    try:
        yield
    finally:
        ShapeEnv._set_replacement = set_replacement
        with guarded():
            for hooks in watch.changed_hooks():
                listener.unguarded(hooks)
        OutputGraph.call_user_compiler = call_user_compiler
        guards.get_guard_fail_reason_helper = fail_reason
        convert_frame.get_and_maybe_log_recompilation_reasons = recompilation
        guards.guard_manager_testing_hook_fn = testing_hook

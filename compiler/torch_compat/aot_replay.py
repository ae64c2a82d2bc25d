"""AOTAutograd's trace once more, one transform at a time.

While torch compiles, only references are kept. When the run is over, torch's own function traces again with what it was
given then: as it was, without decompositions, and without functionalization. Nothing of a compile is touched by that: a
second trace inside it would leave marks on sizes that depend on data.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch._functorch._aot_autograd.graph_compile as graph_compile
import torch._functorch.config as functorch_config
import torch.fx as fx
from torch._decomp.decompositions_for_rng import PhiloxStateTracker
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.utils import _disable_saved_tensors_hooks_during_tracing, detect_fake_mode, preserve_rng_state
from torch._functorch._aot_autograd.schemas import SubclassCreationMeta
from torch._guards import TracingContext, tracing

from compiler.torch_compat.aot import Kind, grad_fn_names
from compiler.torch_compat.aot_record import Record, recording
from compiler.torch_compat.fx import argument_text, target_text, value_of
from compiler.torch_compat.hooks import replaced

Replay = Literal["decomposed", "functionalized", "traced"]

# In this order: without functionalization, a trace may change the metadata of its inputs for those that follow.
REPLAYS: tuple[Replay, ...] = ("decomposed", "functionalized", "traced")


@dataclass(frozen=True)
class Held:
    """What AOTAutograd's trace of one graph was given, and the normal form of what it made. `metadata` is as it was before
    the trace, which adds to it; `original` is torch's function."""

    compile: str
    kind: Kind
    original: Callable[..., Any]
    flat_fn: Any
    args: list[Any]
    descriptors: list[Any]
    config: Any
    metadata: Any
    context: Any
    settings: dict[str, Any]
    gradients: bool
    autocast: torch.dtype | None
    real: tuple[Any, ...]


@dataclass(frozen=True)
class Traced:
    """One replay: its graph, what was recorded on the way, the names of its autograd nodes by number, and its seconds."""

    module: fx.GraphModule
    record: Record
    grad_fns: dict[int, str]
    seconds: float


@contextlib.contextmanager
def holding(
    compile_of: Callable[[], str | None],
    around: Callable[[str], contextlib.AbstractContextManager[Any]],
    keep: Callable[[str, Kind, int, Held | None], None],
    limit: int,
) -> Iterator[None]:
    """`keep(compile, kind, nodes, held)` after each trace of a graph, within `around(compile)`, as all of our own work here.
    A graph of more than `limit` nodes is not held."""

    def as_kind(kind: Kind) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *args, **kwargs: trace(kind, original, *args, **kwargs)

        return make

    def trace(kind: Kind, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        compile_id = compile_of()
        if compile_id is None:
            return run(*args, **kwargs)
        before: Any = None
        with around(compile_id):
            before = _copied(kwargs["fw_metadata"])
            flat_args = _fresh(args[1], before)
        result = run(*args, **kwargs)
        if before is None:
            return result
        with around(compile_id):
            graph = result[0].graph
            held = None
            if len(graph.nodes) <= limit:
                held = Held(
                    compile=compile_id,
                    kind=kind,
                    original=_ORIGINALS[kind],
                    flat_fn=args[0],
                    args=flat_args,
                    descriptors=list(args[2]),
                    config=args[3],
                    metadata=before,
                    context=TracingContext.try_get(),
                    settings=functorch_config.get_config_copy(),
                    gradients=torch.is_grad_enabled(),
                    autocast=torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None,
                    real=normal_form(graph),
                )
            keep(compile_id, kind, len(graph.nodes), held)
        return result

    with (
        replaced(graph_compile, "aot_dispatch_autograd_graph", as_kind("joint")),
        replaced(graph_compile, "aot_dispatch_base_graph", as_kind("inference")),
    ):
        yield


_ORIGINALS: dict[Kind, Callable[..., Any]] = {
    "joint": graph_compile.aot_dispatch_autograd_graph,
    "inference": graph_compile.aot_dispatch_base_graph,
}


def replay(held: Held, which: Replay) -> Traced:
    """Trace again, with all transforms up to `which`. Raises what torch raises. What the user's code prints or warns of in it
    was said once already, and is dropped."""
    record = Record()
    grad_fns: dict[int, str] = {}
    changes: dict[str, Any] = {"enable_log": False}
    if which == "decomposed":
        changes["decompositions"] = record.decompositions(held.config.decompositions or {})
    else:
        changes["decompositions"] = {}
    if which == "traced":
        changes["disable_functionalization"] = True
    config = dataclasses.replace(held.config, **changes)
    begin = time.perf_counter()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(_surroundings(held))
        stack.enter_context(grad_fn_names(grad_fns))
        stack.enter_context(recording(record))
        module = held.original(
            held.flat_fn, _fresh(held.args, held.metadata), held.descriptors, config, fw_metadata=_copied(held.metadata)
        )[0]
    record.finish(module.graph)
    return Traced(module, record, grad_fns, time.perf_counter() - begin)


def _fresh(args: list[Any], metadata: Any) -> list[Any]:
    """The arguments of a trace. One whose sizes or storage the traced program sets (`x.t_()`, `x.set_(y)`) is changed by each
    trace: an alias of it takes its place."""
    changed = [info.mutates_metadata for info in metadata.input_info]
    return [
        arg.detach().requires_grad_(arg.requires_grad) if changes and isinstance(arg, torch.Tensor) else arg
        for arg, changes in zip(args, changed, strict=True)
    ]


@contextlib.contextmanager
def _surroundings(held: Held) -> Iterator[None]:
    """What AOTAutograd has around its own trace, and no new guard or symbol in the sizes of the compile."""
    fake_mode = detect_fake_mode(held.args)
    with contextlib.ExitStack() as stack:
        stack.enter_context(functorch_config.patch(held.settings))
        stack.enter_context(tracing(held.context))
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        stack.enter_context(torch.set_grad_enabled(held.gradients))
        if held.autocast is not None:
            stack.enter_context(torch.autocast("cpu", dtype=held.autocast, cache_enabled=False))
        stack.enter_context(preserve_rng_state())
        if fake_mode is not None:
            stack.enter_context(fake_mode)
            if fake_mode.shape_env is not None:
                stack.enter_context(fake_mode.shape_env.suppress_guards())
                stack.enter_context(fake_mode.shape_env.ignore_fresh_unbacked_symbols())
                stack.enter_context(enable_python_dispatcher())
        stack.enter_context(PhiloxStateTracker())
        stack.enter_context(_disable_saved_tensors_hooks_during_tracing())
        yield


def _copied(metadata: Any) -> Any:
    """A trace adds to its metadata, and a finished compile empties that of subclasses: neither reaches a copy."""
    copied = copy.copy(metadata)
    for name, value in vars(metadata).items():
        if isinstance(value, list):
            setattr(copied, name, [_copied_subclass(item) for item in value])
        elif isinstance(value, (dict, set)):
            setattr(copied, name, value.copy())
    return copied


def _copied_subclass(value: Any) -> Any:
    if not isinstance(value, SubclassCreationMeta):
        return value
    copied = copy.copy(value)
    copied.attrs = {name: _copied_subclass(inner) for name, inner in value.attrs.items()}
    return copied


# --- are two graphs the same


def normal_form(graph: fx.Graph) -> tuple[Any, ...]:
    """A graph without names: equal for two graphs of the same operators, arguments and values. Nested graphs are part of it."""
    places = {node: f"%{i}" for i, node in enumerate(graph.nodes)}
    rows: list[Any] = []
    for node in graph.nodes:
        if node.op == "get_attr":
            rows.append((node.op, _attribute(graph, str(node.target)), value_of(node)))
            continue
        target = "" if node.op in ("placeholder", "output") else target_text(node)
        arguments = "" if node.op == "placeholder" else _arguments(node, places)
        rows.append((node.op, target, arguments, value_of(node)))
    return tuple(rows)


def _attribute(graph: fx.Graph, path: str) -> Any:
    found: Any = graph.owning_module
    for name in path.split("."):
        found = getattr(found, name, None)
    return normal_form(found.graph) if isinstance(found, fx.GraphModule) else type(found).__name__


def _arguments(node: fx.Node, places: dict[fx.Node, str]) -> str:
    def text(arg: Any) -> str:
        if isinstance(arg, fx.Node):
            return places[arg]
        if isinstance(arg, (list, tuple)):
            return "[" + ", ".join(map(text, arg)) + "]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{key}: {text(value)}" for key, value in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"{text(arg.start)}:{text(arg.stop)}:{text(arg.step)}"
        return argument_text(arg)

    return text(node.args) + text(node.kwargs)


def first_difference(real: tuple[Any, ...], again: tuple[Any, ...]) -> str:
    """Where two normal forms part, as `place: real | again`; "" when they are equal."""
    for place, (ours, theirs) in enumerate(zip(real, again, strict=False)):
        if ours != theirs:
            return f"%{place}: {_row(ours)} | {_row(theirs)}"
    return "" if len(real) == len(again) else f"{len(real)} | {len(again)}"


def _row(row: tuple[Any, ...]) -> str:
    *words, value = row
    shown = " ".join(str(word) for word in words if isinstance(word, str) and word)
    return f"{shown} {value}" if value is not None else shown

"""Inductor's graph passes, one step at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch._inductor.compile_fx as compile_fx
import torch._inductor.fx_passes.joint_graph as joint_graph
import torch._inductor.fx_passes.post_grad as post_grad
import torch._inductor.fx_passes.pre_grad as pre_grad
import torch.fx as fx
from torch.fx.passes.graph_transform_observer import GraphTransformObserver

from compiler.torch_compat.fx import argument_text
from compiler.torch_compat.hooks import Lap, replaced

_Snapshot = list[tuple[fx.Node, str, Any, Any, Any]]


def snapshot(graph: fx.Graph) -> _Snapshot:
    """The graph's nodes as they are now. FX replaces a node's arguments and never changes them in place."""
    return [(node, node.name, node.target, node.args, node.kwargs) for node in graph.nodes]


def same(before: _Snapshot, after: _Snapshot) -> bool:
    """Whether two snapshots of one graph print alike. Arguments are compared as text where they are not the very same,
    since comparing symbolic sizes would add guards."""
    if len(before) != len(after):
        return False
    return all(
        old[0] is new[0]
        and old[1] == new[1]
        and old[2] is new[2]
        and (old[3] is new[3] or argument_text(old[3]) == argument_text(new[3]))
        and (old[4] is new[4] or argument_text(old[4]) == argument_text(new[4]))
        for old, new in zip(before, after, strict=True)
    )


@dataclass
class Recorder:
    """What happens to one graph. `on_step(name, changed, seconds, graph)` is called after each pass, the graph still as
    the pass left it. `module` is torch's GraphModule while its passes run."""

    module: fx.GraphModule
    enclosing: str
    on_step: Callable[[str, bool, float | None, fx.Graph], None]
    last: _Snapshot = field(init=False)

    def __post_init__(self) -> None:
        self.last = snapshot(self.module.graph)

    def run(self, name: str, apply: Callable[[], Any]) -> Any:
        self.settle()
        lap = Lap()
        result = apply()
        seconds = lap.seconds()
        self._compare(name, seconds, report_unchanged=True)
        return result

    def settle(self) -> None:
        """What changed since the last step was done by the enclosing function itself."""
        self._compare(self.enclosing, None, report_unchanged=False)

    def _compare(self, name: str, seconds: float | None, report_unchanged: bool) -> None:
        now = snapshot(self.module.graph)
        changed = not same(self.last, now)
        self.last = now
        if changed or report_unchanged:
            self.on_step(name, changed, seconds, self.module.graph)


class Watch:
    """The recorder of the graph whose passes are running, if any: passes over subgraphs are not recorded."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.depth = 0

    @contextmanager
    def recording(self, recorder: Recorder) -> Iterator[None]:
        self.recorder = recorder
        try:
            yield
            recorder.settle()
        finally:
            self.recorder = None

    def step(self, name: str, graph: Any, apply: Callable[[], Any]) -> Any:
        recorder = self.recorder
        module = recorder.module if recorder is not None else None
        if recorder is None or (graph is not module and graph is not module.graph):  # type: ignore[union-attr]
            return apply()
        return recorder.run(name, apply)


@contextmanager
def watching_passes(watch: Watch) -> Iterator[None]:
    """Every application of a pass to the recorded graph goes through `watch.step`."""

    def observed(original: Callable[..., Any]) -> Callable[..., Any]:
        def apply(self: Any, pass_fn: Any) -> Any:
            return watch.step(str(self.passname), self.gm, lambda: original(self, pass_fn))

        return apply

    def named(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            return lambda graph, *args, **kwargs: watch.step(name, graph, lambda: original(graph, *args, **kwargs))

        return make

    with ExitStack() as stack:
        enter = stack.enter_context
        enter(replaced(GraphTransformObserver, "apply_graph_pass", observed))
        enter(replaced(GraphTransformObserver, "apply_gm_pass", observed))
        for name in ("canonicalize_aten_ir_passes", "replace_random_passes"):
            enter(replaced(joint_graph, name, named(name)))
        enter(replaced(joint_graph.early_patterns, "apply", named("early_patterns")))
        for module in (joint_graph, post_grad, pre_grad):
            enter(replaced(module, "stable_topological_sort", named("stable_topological_sort")))
        yield


@contextmanager
def around_pre_grad(handle: Callable[[fx.GraphModule, Callable[[], Any]], Any], watch: Watch) -> Iterator[None]:
    """`handle(module, run)` around all pre-grad passes of one of Dynamo's graphs; subgraphs are left alone."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def passes(gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
            return _outermost(watch, gm, lambda: original(gm, *args, **kwargs), handle)

        return passes

    with replaced(compile_fx, "_recursive_pre_grad_passes", make):
        yield


@contextmanager
def around_joint(handle: Callable[[fx.GraphModule, Callable[[], Any]], Any], watch: Watch) -> Iterator[None]:
    """The same around the joint passes, of a joint or an inference graph."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def passes(gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
            return _outermost(watch, gm, lambda: original(gm, *args, **kwargs), handle)

        return passes

    with replaced(compile_fx, "_recursive_joint_graph_passes", make):
        yield


@contextmanager
def around_post_grad(handle: Callable[[fx.GraphModule, str, Callable[[], Any]], Any], watch: Watch) -> Iterator[None]:
    """`handle(module, graph, run)` around the post-grad passes; graph is forward, backward or inference."""
    kinds: list[str] = []

    def around_codegen(original: Callable[..., Any]) -> Callable[..., Any]:
        def codegen_and_compile(self: Any, gm: Any, inputs: Any, to_check: Any, graph_kwargs: Any) -> Any:
            backward, inference = graph_kwargs.get("is_backward"), graph_kwargs.get("is_inference")
            kinds.append("backward" if backward else "inference" if inference else "forward")
            try:
                return original(self, gm, inputs, to_check, graph_kwargs)
            finally:
                kinds.pop()

        return codegen_and_compile

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def passes(gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
            run = lambda: original(gm, *args, **kwargs)  # noqa: E731
            return _outermost(watch, gm, run, lambda module, apply: handle(module, kinds[-1], apply))

        return passes

    with (
        replaced(compile_fx._InProcessFxCompile, "codegen_and_compile", around_codegen),
        replaced(compile_fx, "_recursive_post_grad_passes", make),
    ):
        yield


def _outermost(
    watch: Watch, gm: fx.GraphModule, run: Callable[[], Any], handle: Callable[[fx.GraphModule, Callable[[], Any]], Any]
) -> Any:
    watch.depth += 1
    try:
        return handle(gm, run) if watch.depth == 1 else run()
    finally:
        watch.depth -= 1

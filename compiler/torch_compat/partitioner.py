"""What the min-cut partitioner looks at and decides: its flow network, its bans and its cut."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import networkx
import torch
import torch._functorch.config as functorch_config
import torch._functorch.partitioners as partitioners
import torch._inductor.config as inductor_config
import torch.fx as fx

from compiler.ir.partition import NetworkEdges, NetworkNodes, NetworkPayload
from compiler.torch_compat.hooks import replaced

_CANNOT_RECOMPUTE = "cannot recompute"
# The two heuristics that ban without a reason in the network name the banned node in a log record instead.
_LOGGED = {"used above/below fusible": (3, "used far apart"), "too long": (0, "long fusible chain")}


@dataclass(frozen=True)
class Cut:
    """One solution of the flow network. `capacity` in bytes, weighted as the partitioner weights it; infinity means that the
    node cannot be cut there. `reasons` are torch's texts on the edges of each node, without those of the data flow."""

    saved: tuple[str, ...]
    banned: frozenset[str]
    capacity: dict[str, float]
    reasons: dict[str, list[str]]
    nodes: int
    edges: int
    value: float
    options: dict[str, bool]
    network: Any = field(repr=False, compare=False)
    source_side: frozenset[str] = field(repr=False, compare=False)


@dataclass
class Observation:
    """What one call of the partitioner gave. `cut` is the solution that was taken, None when no network was solved."""

    solved: bool = False
    memory_budget: float | None = None
    cut: Cut | None = None
    cuts: list[tuple[Any, Cut]] = field(default_factory=list)


@contextmanager
def observing(current: Callable[[], Observation | None]) -> Iterator[None]:
    """Fill `current()` while a partitioner runs; with None, nothing is looked at. The partitioner's arguments, results
    and network are left as they are."""
    network: list[tuple[Any, float, tuple[set[str], set[str]]]] = []
    logged: dict[str, str] = {}

    def around_minimum_cut(original: Callable[..., Any]) -> Callable[..., Any]:
        def minimum_cut(graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(graph, *args, **kwargs)
            if current() is not None:
                network.append((graph, *result))
            return result

        return minimum_cut

    def around_solve(original: Callable[..., Any]) -> Callable[..., Any]:
        def solve(joint_graph: Any, node_info: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
            network.clear()
            logged.clear()
            result = original(joint_graph, node_info, options, *args, **kwargs)
            observation = current()
            if observation is not None and network:
                saved, banned = result
                cut = _read(network[-1], saved, banned, dict(logged), dataclasses.asdict(options))
                observation.cuts.append((saved, cut))
            return result

        return solve

    def around_choose(original: Callable[..., Any]) -> Callable[..., Any]:
        def choose(joint_graph: Any, node_info: Any, memory_budget: float = 1) -> Any:
            chosen = original(joint_graph, node_info, memory_budget=memory_budget)
            observation = current()
            if observation is not None:
                observation.solved = True
                observation.memory_budget = memory_budget
                observation.cut = next((cut for saved, cut in reversed(observation.cuts) if saved is chosen), None)
            return chosen

        return choose

    def around_info(original: Callable[..., Any]) -> Callable[..., Any]:
        def info(text: Any, *args: Any, **kwargs: Any) -> Any:
            for start, (position, reason) in _LOGGED.items():
                if isinstance(text, str) and text.startswith(start) and position < len(args):
                    logged[str(args[position])] = reason
            return original(text, *args, **kwargs)

        return info

    with ExitStack() as stack:
        stack.enter_context(replaced(networkx, "minimum_cut", around_minimum_cut))
        stack.enter_context(replaced(partitioners, "solve_min_cut", around_solve))
        stack.enter_context(replaced(partitioners, "choose_saved_values_set", around_choose))
        stack.enter_context(replaced(partitioners.log, "info", around_info))
        yield


def _read(
    solved: tuple[Any, float, tuple[set[str], set[str]]],
    saved: Any,
    banned: Any,
    logged: dict[str, str],
    options: dict[str, bool],
) -> Cut:
    graph, value, (source_side, _) = solved
    capacity: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for source, target, data in graph.edges(data=True):
        reason = data.get("reason", "")
        if source == "source":
            name = target.removesuffix("_in")
            if reason == _CANNOT_RECOMPUTE and name in logged:
                reason = f"{_CANNOT_RECOMPUTE}: {logged[name]}"
        elif target == "sink":
            name = source.removesuffix("_in") if source.endswith("_in") else source.removesuffix("_out")
        elif source.removesuffix("_in") == target.removesuffix("_out"):
            name = source.removesuffix("_in")
            capacity[name] = float(data["capacity"])
        else:
            continue
        if reason:
            reasons.setdefault(name, []).append(reason)
    return Cut(
        saved=tuple(node.name for node in saved),
        banned=frozenset(node.name for node in banned),
        capacity=capacity,
        reasons=reasons,
        nodes=graph.number_of_nodes(),
        edges=graph.number_of_edges(),
        value=float(value),
        options=options,
        network=graph,
        source_side=frozenset(source_side),
    )


def network(cut: Cut, id: str, most: int) -> NetworkPayload:
    """The flow network of a solution, its cut first, and no more than `most` edges."""
    graph, near = cut.network, cut.source_side
    names = list(graph.nodes)
    index = {name: at for at, name in enumerate(names)}
    strings = {"": 0}
    edges = sorted(graph.edges(data=True), key=lambda edge: not (edge[0] in near and edge[1] not in near))[:most]
    return NetworkPayload(
        id=id,
        nodes=NetworkNodes(name=names, source_side=[name in near for name in names]),
        edges=NetworkEdges(
            source=[index[source] for source, _, _ in edges],
            target=[index[target] for _, target, _ in edges],
            capacity=[finite(float(data["capacity"])) for _, _, data in edges],
            reason=[strings.setdefault(data.get("reason", ""), len(strings)) for _, _, data in edges],
            cut=[source in near and target not in near for source, target, _ in edges],
        ),
        strings=list(strings),
        edges_in_all=graph.number_of_edges(),
        value=finite(cut.value),
    )


@dataclass(frozen=True)
class Mark:
    """What a checkpoint wrote on a node."""

    policy: str
    region: int | None


def marks(joint: fx.Graph) -> dict[str, Mark]:
    """Nodes of a joint graph that lie in a checkpointed region, before the partitioner adds marks of its own."""
    found: dict[str, Mark] = {}
    numbers: dict[int, int] = {}  # torch counts regions over the life of its process
    for node in joint.nodes:
        policy, region = node.meta.get("recompute"), node.meta.get("ac_graph_id")
        if policy is not None:
            number = None if region is None else numbers.setdefault(region, len(numbers) + 1)
            found[node.name] = Mark(getattr(policy, "name", str(policy)), number)
    return found


def heavy(graph: fx.Graph) -> set[str]:
    """Nodes that torch counts as compute-intensive."""
    types = partitioners.get_default_op_list()
    return {node.name for node in graph.nodes if node.op == "call_function" and types.is_compute_intensive(node)}


def draws_afresh(backward: fx.Graph) -> set[str]:
    """Nodes of a backward that draw random numbers themselves, or a seed for some: not those that are given the forward's."""
    found = set()
    for node in backward.nodes:
        tags = getattr(node.target, "tags", ())
        if node.op == "call_function" and (
            torch.Tag.nondeterministic_seeded in tags or "inductor_seed" in str(node.target)
        ):
            found.add(node.name)
    return found


def finite(capacity: float | None) -> float | None:
    """None for a capacity without bound: torch writes it as infinity, or as a large number for symbolic floats."""
    return None if capacity is None or math.isinf(capacity) or capacity >= partitioners.INT_INF else capacity


def custom_partitioner() -> str | None:
    """The class of the partitioner that the user set in Inductor's config, if any."""
    custom = inductor_config.custom_partitioner_fn
    return None if custom is None else type(custom).__name__


def settings() -> dict[str, bool | int | float | str | None]:
    """The options of `torch._functorch.config` that steer the partitioner."""
    names = (
        "activation_memory_budget",
        "aggressive_recomputation",
        "recompute_views",
        "treat_parameters_as_free_to_save",
        "max_dist_from_bw",
        "cse",
    )
    return {name: getattr(functorch_config, name) for name in names}


def kept(forward: fx.Graph, backward: fx.Graph) -> list[tuple[str, bool, bool]]:
    """The backward's placeholders that are no tangents: (name, whether it is a tensor, whether it is a forward input)."""
    inputs = {node.name for node in forward.nodes if node.op == "placeholder"}
    return [
        (node.name, isinstance(node.meta.get("val"), torch.Tensor), node.name in inputs)
        for node in backward.nodes
        if node.op == "placeholder" and "tangents" not in node.name
    ]

"""hop_cond: the model's joint graph has 20 nodes as traced; the reference's 21 are those of a branch's, traced within it."""

import runpy
from typing import Any
from unittest import mock

import torch
from torch._functorch._aot_autograd import graph_compile
from torch._inductor import compile_fx

hops, passes = graph_compile.run_joint_graph_passes_on_hops, compile_fx._recursive_joint_graph_passes
seen: list[tuple[int, int]] = []  # nodes, and bodies of higher-order operators
look = lambda graph: seen.append((len(graph.graph.nodes), sum(n.op == "get_attr" for n in graph.graph.nodes)))  # noqa: E731
around: Any = lambda original: lambda graph, *args, **kwargs: (look(graph), original(graph, *args, **kwargs))[1]  # noqa: E731
traced = mock.patch.object(graph_compile, "run_joint_graph_passes_on_hops", around(hops))
with traced, mock.patch.object(compile_fx, "_recursive_joint_graph_passes", around(passes)):
    snippet = runpy.run_path("tests/corpus/models/hop_cond.py")
    torch.compile(snippet["model"])(*snippet["inputs"])
assert seen[:2] == [(20, 4), (20, 4)], seen
assert [one for one in seen if one[0] == 21] == [(21, 0)], seen

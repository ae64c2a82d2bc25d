"""hop_cond: the model's joint graph has 20 nodes as traced; the reference's 21 are those of a branch's, traced within it."""

import runpy
from typing import Any

import torch
from torch._functorch._aot_autograd import graph_compile
from torch._inductor import compile_fx

seen: list[tuple[str, int, int]] = []
for module, name in ((graph_compile, "run_joint_graph_passes_on_hops"), (compile_fx, "_recursive_joint_graph_passes")):

    def looking(graph: Any, *args: Any, original: Any = getattr(module, name), name: str = name, **kwargs: Any) -> Any:
        seen.append((name, len(graph.graph.nodes), sum(node.op == "get_attr" for node in graph.graph.nodes)))
        return original(graph, *args, **kwargs)

    setattr(module, name, looking)
snippet = runpy.run_path("tests/corpus/models/hop_cond.py")
torch.compile(snippet["model"])(*snippet["inputs"])
assert seen[:2] == [(name, 20, 4) for name, _, _ in seen[:2]] and [one[1:] for one in seen if one[1] == 21] == [
    (21, 0)
], seen

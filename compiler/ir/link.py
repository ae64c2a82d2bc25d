"""The provenance map: edges between entities of neighbouring stages.

line → dynamo → joint → (joint_passes) → forward | backward → post_grad → scheduler node → kernel → code line.
A link is many-to-many. Whoever shows it takes the closure. Columnar.

Ids (`c` is a compile such as `0_0`, `g` one of forward, backward, inference):

    line/18                         a line of the snippet
    c/dynamo/dynamo/linear_2        an FX node of Dynamo's graph
    c/joint/joint/addmm_1           of the joint graph (c/joint/inference/… when there is no backward)
    c/joint_passes/joint/addmm_1    after the joint passes
    c/partition/g/addmm_1           of the forward or backward graph
    c/post_grad/g/addmm_1           after the post-grad passes
    c/schedule/g/op7                a scheduler node before fusion
    c/fusion/g/op7_op8              a scheduler node after fusion (Inductor's own name)
    c/codegen/g/cpp_fused_gelu_5    a kernel, or an extern call: c/codegen/g/extern_kernels.addmm#3 (3rd in the wrapper)
    c/codegen/g/@412                line 412 of the generated code
"""

from __future__ import annotations

from typing import Literal

from compiler.text import Frozen


class LinkColumns(Frozen):
    """All are indices into `strings`. `kind` is "lowered" for "became", "line" for a source line, "code" for a line of
    generated code; `evidence` names where torch keeps the relation, e.g. "stack_trace", "from_node", "origins"."""

    source: list[int]
    target: list[int]
    kind: list[int]
    evidence: list[int]


class LinksPayload(Frozen):
    format: Literal["links/1"] = "links/1"
    strings: list[str]
    links: LinkColumns

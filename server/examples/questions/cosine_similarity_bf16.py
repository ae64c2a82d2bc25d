"""Why is cosine similarity in bfloat16 outside the usual tolerance?

Eager rounds to bfloat16 after each operator; the one kernel of the compiled code computes in between in
float32. The execution shows by how much the two differ.

#stage=execute
"""

# pytorch/pytorch#170684
# cosine_similarity in bfloat16 is outside default tolerances under Inductor
import torch


def sim(a, b):
    return torch.nn.functional.cosine_similarity(a, b, dim=-1)


torch.manual_seed(5)
model = sim
inputs = (torch.randn(6, 8, 12, dtype=torch.bfloat16), torch.randn(6, 8, 12, dtype=torch.bfloat16))

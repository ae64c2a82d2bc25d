"""Why are gradients wrong with a memory budget below 1 and dropout?

The seed itself is drawn again in the backward, so its dropout mask is not the forward's.

#stage=partition&compile=0/0&line=10
"""

# pytorch/pytorch#190758
# activation_memory_budget below 1 recomputes dropout with fresh randomness: silent wrong gradients
import torch
import torch.nn.functional as F

config = {"functorch": {"activation_memory_budget": 0.0}}


def f(x):
    return F.dropout(x * 1.5, 0.5, True)


model = f
inputs = (torch.ones(256, requires_grad=True),)


def scenario(fn):
    torch.manual_seed(7)
    x = torch.ones(256, requires_grad=True)
    y = fn(x)
    y.sum().backward()
    return {"mask_mismatches": int(((y != 0) != (x.grad != 0)).sum())}

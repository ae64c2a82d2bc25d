"""Why does assigning `.data` fail with a size error about a custom operator?

Line 8 replaces the storage of an input: the graph records the input with its new shape, and is called with
the old one.

#stage=dynamo&compile=0/0&line=8
"""

# pytorch/pytorch#94773
# Assigning .data inside a compiled function after taking a view
import torch


def reseat(x):
    v = x[:]
    x.data = torch.zeros(2, 2)
    return v + 1


model = reseat
inputs = (torch.ones(2, 3),)


def scenario(fn):
    x = torch.ones(2, 3)
    y = fn(x)
    return {"ret": y.tolist(), "x_after": list(x.shape)}

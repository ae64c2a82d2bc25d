"""Why does indexing with a boolean mask break my graph?

The shape of `aten.nonzero` depends on the data (GB0036); torch's hint names the setting that captures it.

#stage=dynamo&tab=breaks&line=8
"""

# pytorch/pytorch#114220
# Boolean mask indexing breaks the graph
import torch


def f(x):
    y = x.sin()
    z = y[y > 0]
    return z.exp().sum()


model = f
inputs = (torch.randn(10, requires_grad=True),)

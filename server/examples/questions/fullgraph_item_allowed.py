"""Why does `fullgraph=True` accept `.item()`, which is called a graph break elsewhere?

With `fullgraph=True` torch captures the number into the graph; without, line 9 would break it.

#stage=dynamo&compile=0/0&line=9
"""

# pytorch/pytorch#196198
# fullgraph=True accepts .item() although the log calls it a graph break
import torch

compile_kwargs = {"fullgraph": True}


def f(x):
    return x * x.sum().item() + 1


model = f
inputs = (torch.tensor([1.0, 2.0], requires_grad=True),)

"""Why is nothing compiled, without a word in the log?

`.item()` in line 10 breaks the graph in a loop, where it cannot be resumed (GB7000): all of `f` is given to
eager, for good.

#stage=dynamo&tab=breaks&line=10
"""

# pytorch/pytorch#119186
# A break inside a for loop: nothing is compiled and the default log says nothing
import torch


def f(x):
    best = 0.0
    for i in range(3):
        y = (x * (i + 1)).sin()
        if y.sum().item() > best:
            best = y.sum().item()
    return x.cos() * best


model = f
inputs = (torch.rand(4),)

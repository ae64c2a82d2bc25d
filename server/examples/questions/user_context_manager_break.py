"""Why does a break inside a `with` block cost the whole function?

Torch cannot resume inside the context manager (GB0066); its hint says to move the `with` outside.

#stage=dynamo&tab=breaks&line=18
"""

# pytorch/pytorch#150477
# A graph break inside a user-defined context manager skips the whole frame
import torch


class Timer:
    def __enter__(self):
        return self

    def __exit__(self, *a):
        return False


def f(x):
    y = x.sin()
    with Timer():
        z = y.cos()
        torch._dynamo.graph_break()
        z = z + 1
    return z * 2


model = f
inputs = (torch.randn(3),)

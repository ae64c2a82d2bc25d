"""Why is a function that could be compiled never compiled?

One call with `bad=True` broke in the loop of line 9; torch then skips the whole function in every later call,
whatever its arguments.

#stage=dynamo&tab=breaks&line=9
"""

# pytorch/pytorch#144820
# Once a call makes dynamo skip a frame, later good calls are never compiled
import torch


def f(x, bad):
    if bad:
        for _ in range(1):
            torch._dynamo.graph_break()
    return x + 1 if torch.compiler.is_compiling() else x - 1


model = f
inputs = (torch.zeros(2), True)


def scenario(fn):
    a = [fn(torch.zeros(2), True)[0].item(), fn(torch.zeros(2), False)[0].item()]
    torch._dynamo.reset()
    b = [fn(torch.zeros(2), False)[0].item(), fn(torch.zeros(2), True)[0].item()]
    return {"bad_then_good": a, "good_then_bad": b}

"""Why does my backward hook not run?

It was registered after the first call; the dictionary of hooks was empty when it was compiled, and no guard
looks at it.

#stage=dynamo&compile=0/0&line=20
"""

# pytorch/pytorch#115750, #117265
# A full backward hook added after the first compiled call
import torch
import torch.nn as nn

net = nn.Linear(2, 2, bias=False)
with torch.no_grad():
    net.weight.copy_(torch.eye(2))
model = net
inputs = (torch.ones(1, 2),)


def scenario(fn):
    def gx():
        x = torch.ones(1, 2, requires_grad=True)
        fn(x).sum().backward()
        return x.grad.tolist()

    before = gx()
    net.register_full_backward_hook(lambda m, gi, go: tuple(g * 5 for g in gi))
    return {"before": before, "after": gx()}

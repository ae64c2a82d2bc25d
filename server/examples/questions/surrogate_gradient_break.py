"""Why is there no backward graph for my spiking network?

The `backward` of its autograd function calls `.item()` in line 16; that breaks in the forward's loop, so all
of `forward` runs in eager.

#stage=dynamo&tab=breaks&line=16
"""

# pytorch/pytorch#160757
# Spiking-network surrogate autograd.Function: an unsupported backward breaks the forward graph
import torch
import torch.nn as nn


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        if g.abs().max().item() > 100:
            g = g.clamp(-100, 100)
        return g / (1 + v.abs()) ** 2


class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        mem = torch.zeros(x.shape[1], 4)
        out = []
        for t in range(x.shape[0]):
            mem = 0.9 * mem + self.fc(x[t])
            s = Spike.apply(mem - 0.1)
            mem = mem - s
            out.append(s)
        return torch.stack(out)


model = Leaky()
inputs = (torch.randn(3, 2, 4),)

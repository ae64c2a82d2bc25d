"""Why can I call `backward` for both losses in eager, and not compiled?

All outputs of a compiled graph share one backward, which frees what it saved when the first loss asks for it.

#stage=partition&line=28
"""

# pytorch/pytorch#91542
# GAN step: a detached discriminator pass frees the generator graph
import torch
import torch.nn as nn

G = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
Dn = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.G, self.D = G, Dn

    def forward(self, z):
        fake = self.G(z)
        return self.D(fake.detach()).mean(), self.D(fake).mean()


model = Pair()
inputs = (torch.randn(3, 2),)


def scenario(fn):
    try:
        d, g = fn(inputs[0])
        d.backward()
        g.backward()
        return {"ok": True, "grad": round(sum(p.grad.abs().sum().item() for p in G.parameters()), 4)}
    except RuntimeError as e:
        return {"ok": False, "error": str(e)[:150]}

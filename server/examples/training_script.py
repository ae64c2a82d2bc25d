"""A training script

An ordinary script with its own loop and optimizer. Every torch.compile in it is explored where it is called.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model)
    x = torch.randn(64, 10)
    y = x[:, :1] * 2 - x[:, 1:2]
    for step in range(3):
        optimizer.zero_grad()
        error = F.mse_loss(compiled(x), y)
        error.backward()
        optimizer.step()
        print(f"step {step}: loss {error.item():.4f}")


if __name__ == "__main__":
    main()

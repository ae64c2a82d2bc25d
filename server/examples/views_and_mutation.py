"""Views and in-place updates

A buffer is written through a view. AOTAutograd turns the writes into pure operators and keeps one `copy_` at the end.
"""

import torch
import torch.nn as nn


class Running(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.register_buffer("total", torch.zeros(4, width))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        row = self.total[1]
        row.add_(x.sum(0).detach())
        y = x * self.scale
        y[:, 0].mul_(2)
        return y.relu_() + self.total.mean(0)


model = Running()
inputs = (torch.randn(6, 8),)

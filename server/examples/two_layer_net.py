"""Two-layer net

The smallest model worth compiling: two linear layers and a ReLU. Every stage fits on the screen.
"""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.first = nn.Linear(8, hidden)
        self.second = nn.Linear(hidden, 4)

    def forward(self, x):
        h = torch.relu(self.first(x))
        return self.second(h)


model = Net()
inputs = (torch.randn(32, 8),)

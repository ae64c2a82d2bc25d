"""Where the graph breaks

A print and a Python branch on a tensor's value. Each cuts the graph; the dynamo stage says where, why and what to do.
"""

import torch
import torch.nn as nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(16, 1)
        self.left = nn.Linear(16, 16)
        self.right = nn.Linear(16, 16)

    def forward(self, x):
        s = torch.sigmoid(self.score(x)).mean()
        print("mean score", s.item())
        if s > 0.5:
            return torch.tanh(self.left(x))
        return torch.relu(self.right(x)) * s


model = Gate()
inputs = (torch.randn(8, 16),)

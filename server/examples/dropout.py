"""Dropout in training

Random masks inside the graph: Inductor draws them from a seed that the forward saves, so that the backward sees the same mask.
"""

import torch
import torch.nn as nn

model = nn.Sequential(
    nn.Linear(32, 64),
    nn.GELU(),
    nn.Dropout(0.2),
    nn.Linear(64, 32),
    nn.Dropout(0.1),
)
inputs = (torch.randn(16, 32, requires_grad=True),)
rng = True

"""Dynamic shapes

Four calls, three batch sizes. The second size fails a guard and recompiles with a symbolic batch; the third fits that.
"""

import torch
import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(12, 24)
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        return self.head(h) / x.shape[0]


model = Classifier()
inputs = (torch.randn(4, 12),)
calls = [(torch.randn(n, 12),) for n in (4, 6, 4, 9)]

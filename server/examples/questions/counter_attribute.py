"""Why does my module compile again on each of its first calls?

`self.seen` in line 14 is guarded by its value; after 8 versions torch gives up and the module runs in eager
(GB0039).

#stage=dynamo&tab=recompiles&line=14
"""

# pytorch/pytorch#128319
# A step counter kept as an int attribute makes the module recompile on its first calls
import torch
import torch.nn as nn


class Warmup(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        self.seen += 1
        return self.fc(x) * min(1.0, self.seen / 10)


model = Warmup()
inputs = (torch.randn(2, 4),)
calls = [inputs] * 10

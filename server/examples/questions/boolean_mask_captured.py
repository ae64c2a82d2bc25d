"""Why does the graph break in a batch norm over masked rows, though dynamic output shapes are captured?

Inside `nn/modules/batchnorm.py`, called from line 17: batch norm must know whether there is one row, which
depends on the data.

#stage=dynamo&tab=breaks&line=17
"""

# pytorch/pytorch#194166, #99609
# Masked BatchNorm write-back with dynamic-output ops captured
import torch
import torch.nn as nn

config = {"dynamo": {"capture_dynamic_output_shape_ops": True}}
compile_kwargs = {"dynamic": True}


class MaskedNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(4)

    def forward(self, h, m):
        out = h * 1
        out[m] = self.bn(h[m])
        return out


model = MaskedNorm()
inputs = (torch.randn(10, 4, requires_grad=True), torch.arange(10) % 3 > 0)

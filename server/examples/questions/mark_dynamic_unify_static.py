"""Why is the dimension that I marked dynamic a constant, without any comparison in my code?

Line 7 adds a tensor whose size is fixed at 6.

#stage=dynamo&compile=0/0&line=7
"""

# pytorch/pytorch#102814, #145587
# A marked-dynamic batch is added to an unmarked tensor of the same size and becomes constant
import torch


def residual(x, bias):
    return torch.relu(x) + bias


x, b = torch.randn(6, 3), torch.randn(6, 3)
torch._dynamo.mark_dynamic(x, 0)
model = residual
inputs = (x, b)

"""Which line made my dynamic size a constant?

Line 8 compares it with 6.

#stage=dynamo&compile=0/0&line=8
"""

# pytorch/pytorch#136002
# mark_dynamic fails with a constraint violation and does not name the line that specialised
import torch


def fold(x):
    h = x * 3
    if h.size(0) == 6:
        h = h + 1
    return h.view(2, -1).sum(0)


x = torch.randn(6)
torch._dynamo.mark_dynamic(x, 0)
model = fold
inputs = (x,)

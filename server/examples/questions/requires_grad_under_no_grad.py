"""Why does `requires_grad` make it compile again, even under `no_grad`?

It is a property that each tensor's guard checks: `a` and `b` went from False to True, then `grad_mode` did.

#stage=dynamo&tab=recompiles&line=7
"""

# pytorch/pytorch#131975
# Toggling requires_grad recompiles even under no_grad
import torch


def f(a, b):
    return (a * b).relu()


model = f
inputs = (torch.randn(4), torch.randn(4))


def scenario(fn):
    a, b = torch.randn(4), torch.randn(4)
    with torch.no_grad():
        fn(a, b)
        fn(a.requires_grad_(), b)
        fn(a, b.requires_grad_())
    fn(a, b)
    return {"calls": 4}

"""How many graph breaks do I have? `explain()` and the log disagree.

One cause, `print` in line 7 (GB0059), which struck five times; two graphs are compiled.

#stage=dynamo&tab=breaks&line=7
"""

# pytorch/pytorch#113443
# explain() and the counters give different numbers of graph breaks
import torch


def log_stat(t):
    print("stat", t.shape)


def inner(t):
    log_stat(t)
    return t.sin()


def f(x):
    log_stat(x)
    y = inner(x)
    log_stat(y)
    return y * 2


model = f
inputs = (torch.randn(3),)

"""What can I do about a break in `time` or `uuid`?

Three breaks: `time.perf_counter` in lines 12 and 16, `os.urandom` in `uuid.py` from line 14, each with the
function's name and torch's advice.

#stage=dynamo&tab=breaks&line=14
"""

# pytorch/pytorch#138004
# A stdlib call (time, uuid) in forward breaks; can the user act on the message?
import time
import uuid

import torch

rng = True


def f(x):
    t0 = time.perf_counter()
    y = x.sin()
    tag = uuid.uuid4().hex
    y = y + len(tag)
    return y, time.perf_counter() - t0 > 0


model = f
inputs = (torch.randn(3),)

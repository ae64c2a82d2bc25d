"""Why is complex NumPy arithmetic not faster when compiled?

Inductor generates no code for complex numbers: 22 scheduler nodes run as kernels of torch's own, as in eager.

#stage=schedule&compile=0/0&line=9
"""

# pytorch/pytorch#105267
# Complex NumPy arithmetic under compile falls back to eager kernels
import numpy as np
import torch


def mandel(z, c):
    for _ in range(3):
        z = z ** 2 + c
    return np.abs(z)


model = mandel
inputs = (np.zeros(4, dtype=np.complex64), np.array([0.1, 0.2 + 0.1j, -0.5, 0.3j], dtype=np.complex64))


def scenario(fn):
    return {"abs": [round(float(v), 5) for v in fn(*inputs)]}

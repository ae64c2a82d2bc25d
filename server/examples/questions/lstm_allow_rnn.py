"""Why does an LSTM fail at run time, after every graph was made?

The forward is to save an output of `mkldnn_rnn_layer` that this operator does not make when it runs.

#stage=partition&compile=0/0&line=11
"""

# pytorch/pytorch#185163 (pull request), #158007
# allow_rnn=True with an LSTM whose weights need gradients
import torch
import torch.nn as nn

config = {"dynamo": {"allow_rnn": True}}
rnn = nn.LSTM(3, 4, batch_first=True)


def run(x):
    return rnn(x)[0]


model = run
inputs = (torch.randn(2, 3, 3),)

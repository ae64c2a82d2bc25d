"""A decoder like Llama's, 32 layers: rotary embeddings, grouped-query attention, RMSNorm and SwiGLU written out. Narrow."""

import torch
import torch.nn as nn

DIM, HEADS, GROUPS, HIDDEN, LAYERS, VOCAB, TOKENS = 64, 4, 2, 128, 32, 256, 16
HEAD = DIM // HEADS


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def turned(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(DIM, HEADS * HEAD, bias=False)
        self.k_proj = nn.Linear(DIM, GROUPS * HEAD, bias=False)
        self.v_proj = nn.Linear(DIM, GROUPS * HEAD, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD, DIM, bias=False)

    def forward(self, x, cos, sin, mask):
        b, t, _ = x.shape
        q = self.q_proj(x).view(b, t, HEADS, HEAD).transpose(1, 2)
        k = self.k_proj(x).view(b, t, GROUPS, HEAD).transpose(1, 2)
        v = self.v_proj(x).view(b, t, GROUPS, HEAD).transpose(1, 2)
        q = q * cos + turned(q) * sin
        k = k * cos + turned(k) * sin
        k = k[:, :, None].expand(b, GROUPS, HEADS // GROUPS, t, HEAD).reshape(b, HEADS, t, HEAD)
        v = v[:, :, None].expand(b, GROUPS, HEADS // GROUPS, t, HEAD).reshape(b, HEADS, t, HEAD)
        scores = (q @ k.transpose(-2, -1)) * HEAD**-0.5 + mask
        probabilities = nn.functional.softmax(scores.float(), dim=-1).type_as(q)
        return self.o_proj((probabilities @ v).transpose(1, 2).reshape(b, t, HEADS * HEAD))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(DIM, HIDDEN, bias=False)
        self.up_proj = nn.Linear(DIM, HIDDEN, bias=False)
        self.down_proj = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(DIM), RMSNorm(DIM)
        self.self_attn, self.mlp = Attention(), MLP()

    def forward(self, x, cos, sin, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = RMSNorm(DIM)
        self.lm_head = nn.Linear(DIM, VOCAB, bias=False)
        frequency = 10000.0 ** (-torch.arange(0, HEAD, 2) / HEAD)
        angle = torch.outer(torch.arange(TOKENS), frequency).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("mask", torch.full((TOKENS, TOKENS), float("-inf")).triu(1))

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.mask)
        return self.lm_head(self.norm(x))


model = Llama()
inputs = (torch.randint(0, VOCAB, (1, TOKENS)),)
targets = torch.randint(0, VOCAB, (1, TOKENS))


def loss(logits):
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

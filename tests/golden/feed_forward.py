#!/usr/bin/env python3
"""A feed-forward block with its gradients by PyTorch in float64: feed_forward.py > feed_forward.json

The block that tests/program builds, written with PyTorch's own modules and differentiated by its autograd. Every input is a float32 number.
"""
import json
import sys

import torch

torch.manual_seed(20261128)
ROWS, HIDDEN, INNER, EPS = 3, 6, 10, 1e-6


def draw(*shape, deviation=1.0):
    return (torch.randn(shape, dtype=torch.float32) * deviation).double().requires_grad_()


x, upstream = draw(ROWS, HIDDEN), torch.randn(ROWS, HIDDEN).double()
weights = {'ffn.norm.weight': draw(HIDDEN), 'ffn.gate_proj.weight': draw(INNER, HIDDEN, deviation=0.3),
           'ffn.up_proj.weight': draw(INNER, HIDDEN, deviation=0.3), 'ffn.down_proj.weight': draw(HIDDEN, INNER, deviation=0.3)}
norm, gate, up, down = weights.values()
n = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * norm
y = x + torch.nn.functional.linear(torch.nn.functional.silu(torch.nn.functional.linear(n, gate)) * torch.nn.functional.linear(n, up), down)
y.backward(upstream)
values = lambda t: [repr(v) for v in t.detach().flatten().tolist()]
json.dump({'made_by': f'torch {torch.__version__}', 'rows': ROWS, 'hidden': HIDDEN, 'inner': INNER, 'upstream': values(upstream), 'y': values(y),
           'leaves': {name: {'value': values(t), 'gradient': values(t.grad)} for name, t in {'x': x, **weights}.items()}}, sys.stdout, indent=0)
print()

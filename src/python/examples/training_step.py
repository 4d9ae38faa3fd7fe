"""Audits one training step of a small model in PyTorch: each known call, forward and backward, is held to its bounds."""
import torch

import assay

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Embedding(101, 64), torch.nn.Linear(64, 150), torch.nn.SiLU(), torch.nn.Linear(150, 101), torch.nn.Softmax(-1))
ids = torch.randint(101, (4, 32))

with assay.trace(model) as traced:
    model(ids).square().mean().backward()
print(traced.check())

#!/usr/bin/env python3
"""Times PyTorch eager on the layers of assay_program_bench, forward and backward, all weights trained: one JSON line
a layer and type, medians of CUDA events; peak_mib is what the allocator held at most.

    assay_program_bench cuda && tests/bench/torch_layer.py
"""
import json
import statistics
import sys

import torch
import torch.nn.functional as F

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
SHAPES = [("H 896", 896, 4864, 14, 2, 64, True), ("H 4096", 4096, 14336, 32, 8, 128, False)]
torch.backends.cuda.matmul.allow_tf32 = False


class Layer(torch.nn.Module):
    def __init__(self, hidden, intermediate, heads, kv_heads, head_dim, bias):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        linear = torch.nn.Linear
        self.q = linear(hidden, heads * head_dim, bias=bias)
        self.k, self.v = (linear(hidden, kv_heads * head_dim, bias=bias) for _ in range(2))
        self.o = linear(heads * head_dim, hidden, bias=False)
        self.gate, self.up = (linear(hidden, intermediate, bias=False) for _ in range(2))
        self.down = linear(intermediate, hidden, bias=False)
        self.norm1, self.norm2 = (torch.nn.Parameter(torch.ones(hidden)) for _ in range(2))
        angles = torch.outer(torch.arange(ROWS), 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim))
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1)[:, None])
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1)[:, None])

    def rotate(self, x):
        half = x.shape[-1] // 2
        return x * self.cos + torch.cat([-x[..., half:], x[..., :half]], -1) * self.sin

    def forward(self, x):
        n = F.rms_norm(x, x.shape[-1:], self.norm1, 1e-6)
        q = self.rotate(self.q(n).view(ROWS, self.heads, self.head_dim))
        k = self.rotate(self.k(n).view(ROWS, self.kv_heads, self.head_dim))
        v = self.v(n).view(ROWS, self.kv_heads, self.head_dim)
        q, k, v = (t.transpose(0, 1)[None] for t in (q, k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(a[0].transpose(0, 1).reshape(ROWS, -1))
        n = F.rms_norm(x, x.shape[-1:], self.norm2, 1e-6)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


for name, *shape in SHAPES:
    for dtype in (torch.float32, torch.bfloat16):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        layer = Layer(*shape).to("cuda", dtype)
        x = torch.randn(ROWS, shape[0], device="cuda", dtype=dtype, requires_grad=True)
        upstream = torch.randn_like(x)

        def step():
            layer(x).backward(upstream)

        for _ in range(3):
            step()
        times = []
        for _ in range(11):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            step()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        print(json.dumps({"torch": torch.__version__, "layer": name, "dtype": str(dtype).split(".")[1], "rows": ROWS,
                          "ms": round(statistics.median(times), 3),
                          "peak_mib": round(torch.cuda.max_memory_allocated() / 2**20, 1)}), flush=True)
        del layer, x, upstream

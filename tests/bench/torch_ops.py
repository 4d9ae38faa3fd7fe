#!/usr/bin/env python3
"""Times PyTorch on the shapes of assay_cuda_ops_bench: one JSON line an operation, medians of CUDA events.

    assay_cuda_ops_bench && tests/bench/torch_ops.py
"""
import json
import math
import statistics

import torch
import torch.nn.functional as F

DEVICE = "cuda"


def milliseconds(f):
    f()
    torch.cuda.synchronize()

    def once(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeats):
            f()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / repeats

    repeats = min(max(int(5 / once(1)), 1), 100)
    return statistics.median(once(repeats) for _ in range(11))


def show(name, f, nbytes=0.0, operations=0.0):
    ms = milliseconds(f)
    row = {"torch": name, "ms": round(ms, 4)}
    if operations:
        row["tflops"] = round(operations / ms * 1e-9, 2)
    else:
        row["gbytes_per_s"] = round(nbytes / ms * 1e-6, 1)
        row["of_copy"] = round(nbytes / ms * 1e-6 / COPY, 3)
    print(json.dumps(row), flush=True)


def copy_bandwidth():
    x = torch.empty(1 << 27, device=DEVICE)
    y = torch.empty_like(x)
    return 2 * x.numel() * 4 / milliseconds(lambda: y.copy_(x)) * 1e-6


torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
COPY = copy_bandwidth()
print(json.dumps({"torch": torch.__version__, "copy_gbytes_per_s": round(COPY, 1)}), flush=True)
x = torch.randn(16384, 4096, device=DEVICE)
w = torch.randn(4096, device=DEVICE)
matrix = x.numel() * 4
show("rms_norm", lambda: F.rms_norm(x, (4096,), w, 1e-6), 2 * matrix)
show("softmax", lambda: F.softmax(x, -1), 2 * matrix)
gate, up = torch.randn(8192, 8192, device=DEVICE), torch.randn(8192, 8192, device=DEVICE)
show("silu_mul", lambda: F.silu(gate) * up, 3 * gate.numel() * 4)
logits = torch.randn(4096, 32000, device=DEVICE)
targets = torch.randint(32000, (4096,), device=DEVICE)
show("cross_entropy", lambda: F.cross_entropy(logits, targets), logits.numel() * 4)
p = torch.nn.Parameter(torch.randn(1 << 26, device=DEVICE))
p.grad = torch.randn_like(p)
adamw = torch.optim.AdamW([p], fused=True)
show("adamw fused", adamw.step, 7 * p.numel() * 4)
del gate, up, logits, p, adamw
pairs = 4096.0 * 4096 * 128 * 32
for dtype in (torch.float32, torch.bfloat16):
    q = torch.randn(1, 32, 4096, 128, device=DEVICE, dtype=dtype, requires_grad=True)
    k = torch.randn(1, 8, 4096, 128, device=DEVICE, dtype=dtype, requires_grad=True)
    v = torch.randn(1, 8, 4096, 128, device=DEVICE, dtype=dtype, requires_grad=True)
    dy = torch.randn(1, 32, 4096, 128, device=DEVICE, dtype=dtype)

    def forward(causal=False):
        return F.scaled_dot_product_attention(q, k, v, scale=1 / math.sqrt(128), enable_gqa=True, is_causal=causal)

    with torch.no_grad():
        show(f"sdpa {dtype}", forward, operations=4 * pairs)
        show(f"sdpa causal {dtype}", lambda: forward(True), operations=2 * pairs)
    y = forward()
    show(f"sdpa backward {dtype}", lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True), operations=10 * pairs)

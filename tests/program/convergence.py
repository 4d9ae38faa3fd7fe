#!/usr/bin/env python3
"""200 updates of a classifier of languages by `assay train` and by PyTorch, eager, on the same weights and samples: convergence.py ASSAY [SVG]

Draws both losses, and how far each is from the same run of PyTorch in float64: rounding grows from update to update. Holds SVG to what a new run
draws, to half a pixel and twice as far as PyTorch's float32 was from float64 up to there; with ASSAY_RECORD=1 writes it. Exits with 77 and
the reason where torch or the fortunes are missing. The model here is of torch alone: no line of it is Assay's.
"""
import csv
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import languages

try:
    import torch
except ImportError:
    print("skipped: torch is not here (ci/setup installs it)")
    sys.exit(77)

torch.set_num_threads(1)
UPDATES, BATCH, LENGTH, LR, DECAY, CLIP, SEED = 200, 16, 64, 0.003, 0.01, 1.0, 5
MODEL = {"model_type": "qwen2", "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
         "vocab_size": 256, "rope_theta": 10000.0, "rms_norm_eps": 1e-6}
WIDTH, HEIGHT, LEFT, MOST = 640, 150, 60, 2.0
H, HEADS, KV, D, EPS = MODEL["hidden_size"], 4, 2, MODEL["hidden_size"] // 4, MODEL["rms_norm_eps"]


def scramble(x):
    """splitmix64, by which Assay shuffles."""
    x = (x + 0x9e3779b97f4a7c15) % 2**64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 % 2**64
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb % 2**64
    return x ^ (x >> 31)


def shuffled(count, seed, epoch):
    order, state = list(range(count)), scramble(scramble(seed) ^ epoch)
    for left in range(count, 1, -1):
        state = scramble(state)
        order[left - 1], order[state % left] = order[state % left], order[left - 1]
    return order


def tensors(file):
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = {name: of for name, of in json.loads(data[8:8 + size]).items() if name != "__metadata__"}
    return {name: torch.frombuffer(bytearray(data[8 + size + of["data_offsets"][0]:8 + size + of["data_offsets"][1]]), dtype=torch.float32).reshape(of["shape"]).clone()
            for name, of in header.items()}


def train(assay, folder, lr):
    (folder / "train.yaml").write_text(f"""model: {{config: ., weights: random}}
classifier: {{labels: [{', '.join(languages.PACKAGES)}]}}
corpus: {{train: few.jsonl, length: {LENGTH}}}
training: {{epochs: 1, batch: {BATCH}, lr: {lr}, weight_decay: {DECAY}, clip: {CLIP}, seed: {SEED}}}
output: out{lr}
""")
    subprocess.run([assay, "train", folder / "train.yaml", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    rows = list(csv.DictReader((folder / f"out{lr}/curve.csv").open()))
    return [float(r["loss"]) for r in rows], folder / f"out{lr}/model/model.safetensors"


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weight


def rotated(x):
    """Of [batch, places, heads, D]: halves, by the angles of their place."""
    angles = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * MODEL["rope_theta"]**(-torch.arange(0, D, 2, dtype=x.dtype) / D)
    cos, sin = angles.cos()[None, :, None], angles.sin()[None, :, None]
    a, b = x[..., :D // 2], x[..., D // 2:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def logits(w, ids, lengths):
    x = w["model.embed_tokens.weight"][ids]
    batch, places = ids.shape
    mask = torch.full((places, places), -math.inf).triu(1) + torch.where(torch.arange(places)[None] < lengths[:, None], 0, -math.inf)[:, None, None]
    for layer in range(MODEL["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        h = norm(x, w[at + "input_layernorm.weight"])
        q, k, v = (h @ w[f"{at}self_attn.{p}_proj.weight"].T + w[f"{at}self_attn.{p}_proj.bias"] for p in "qkv")
        q, k, v = rotated(q.view(batch, places, HEADS, D)), rotated(k.view(batch, places, KV, D)), v.view(batch, places, KV, D)
        k, v = (t.repeat_interleave(HEADS // KV, 2) for t in (k, v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(D) + mask
        x = x + torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).reshape(batch, places, HEADS * D) @ w[at + "self_attn.o_proj.weight"].T
        h = norm(x, w[at + "post_attention_layernorm.weight"])
        x = x + (torch.nn.functional.silu(h @ w[at + "mlp.gate_proj.weight"].T) * (h @ w[at + "mlp.up_proj.weight"].T)) @ w[at + "mlp.down_proj.weight"].T
    x = norm(x, w["model.norm.weight"])
    real = (torch.arange(places)[None] < lengths[:, None]).to(x.dtype)[..., None]
    return (x * real).sum(1) / lengths[:, None] @ w["classifier.weight"] + w["classifier.bias"]


def by_torch(w, samples, dtype):
    """The losses of an epoch, in which all of `w` trains."""
    w = {name: tensor.detach().to(dtype, copy=True).requires_grad_(True) for name, tensor in w.items()}
    optimizer = torch.optim.AdamW(w.values(), lr=LR, weight_decay=DECAY)
    losses = []
    torch.set_default_dtype(dtype)
    for at in range(0, len(samples), BATCH):
        batch = samples[at:at + BATCH]
        lengths = torch.tensor([len(text) for text, _ in batch])
        ids = torch.zeros(len(batch), LENGTH, dtype=torch.long)
        for i, (text, _) in enumerate(batch):
            ids[i, :len(text)] = torch.tensor(list(text))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(logits(w, ids, lengths), torch.tensor([label for _, label in batch]))
        loss.backward()
        total = torch.sqrt(sum(t.grad.pow(2).sum() for t in w.values()))
        for t in w.values():
            t.grad.mul_(min(1.0, CLIP / total.item()))
        optimizer.step()
        losses.append(loss.item())
    return losses


def drawn(ours, theirs, exact):
    """A page of two panels in SVG: losses of both, and how far each is from float64, by powers of ten."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="400" font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="#fff"/>']
    x = lambda i: LEFT + (WIDTH - LEFT - 10) * i / (UPDATES - 1)
    line = lambda points, color, wide=1.5, of="grid": out.append(f'<polyline class="{of}" fill="none" stroke="{color}" stroke-width="{wide}" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
    text = lambda a, b, words, anchor="end": out.append(f'<text x="{a}" y="{b:.1f}" text-anchor="{anchor}" fill="#444">{words}</text>')
    y = lambda v: 30 + HEIGHT * (1 - v / MOST)
    for v in (0, MOST / 2, MOST):
        line([(LEFT, y(v)), (WIDTH - 10, y(v))], "#ddd", 1), text(LEFT - 6, y(v) + 4, f"{v:g}")
    line([(x(i), y(v)) for i, v in enumerate(theirs)], "#cc3311", 4, "torch"), line([(x(i), y(v)) for i, v in enumerate(ours)], "#222222", 1, "assay")
    text(LEFT, 20, f"loss of {UPDATES} updates: PyTorch {torch.__version__.split('a')[0]} (red, wide) and assay train (black), float32", "start")
    top, low, high = 230, -9, -1
    y = lambda v: top + HEIGHT * (high - min(high, max(low, math.log10(max(v, 1e-300))))) / (high - low)
    for power in range(low, high + 1, 2):
        line([(LEFT, y(10.0**power)), (WIDTH - 10, y(10.0**power))], "#ddd", 1), text(LEFT - 6, y(10.0**power) + 4, f"1e{power}")
    for losses, color in ((theirs, "#cc3311"), (ours, "#222222")):
        line([(x(i), y(abs(a - b) / b)) for i, (a, b) in enumerate(zip(losses, exact))], color, 1)
    text(LEFT, top - 8, "relative difference of each from PyTorch in float64", "start")
    text(LEFT, top + HEIGHT + 16, "update 1", "start"), text(WIDTH - 10, top + HEIGHT + 16, f"{UPDATES}")
    return "\n".join([*out, "</svg>", ""])


def heights(svg, of):
    return [float(pair.split(",")[1]) for pair in re.search(rf'class="{of}"[^>]*points="([^"]*)"', svg)[1].split()]


assay = pathlib.Path(sys.argv[1]).resolve()
with tempfile.TemporaryDirectory(prefix="assay-convergence-") as made:
    folder = pathlib.Path(made)
    languages.make(folder)
    (folder / "config.json").write_text(json.dumps(MODEL))
    lines = (folder / "train.jsonl").read_text().splitlines()
    few = [lines[i] for i in shuffled(len(lines), 1, 0)[:UPDATES * BATCH]]
    (folder / "few.jsonl").write_text("\n".join(few) + "\n")
    weights = tensors(train(assay, folder, 0)[1])
    ours = train(assay, folder, LR)[0]
labels = list(languages.PACKAGES)
corpus = [(json.loads(line)["text"].encode()[:LENGTH], labels.index(json.loads(line)["label"])) for line in few]
epoch = [corpus[i] for i in shuffled(len(corpus), SEED, 0)]
theirs, exact = by_torch(weights, epoch, torch.float32), by_torch(weights, epoch, torch.float64)
apart = [[abs(a - b) / b for a, b in zip(losses, exact)] for losses in (ours, theirs)]
print(f"loss: from {ours[0]:.4f} to {sum(ours[-20:]) / 20:.4f}, PyTorch from {theirs[0]:.4f} to {sum(theirs[-20:]) / 20:.4f}")
print(f"relative difference from float64: {apart[0][0]:.1e} at first, {max(apart[0]):.1e} at most; PyTorch {apart[1][0]:.1e} and {max(apart[1]):.1e}")
svg, failed = drawn(ours, theirs, exact), False
if len(sys.argv) > 2:
    file = pathlib.Path(sys.argv[2])
    if "ASSAY_RECORD" in os.environ:
        file.write_text(svg)
    kept, now, most = heights(file.read_text(), "assay"), heights(svg, "assay"), 0.0
    for i in range(UPDATES):
        most = max(most, abs(theirs[i] - exact[i]))
        if abs(kept[i] - now[i]) > 0.5 + 2 * most * HEIGHT / MOST:
            print(f"FAILED: update {i + 1}: {file} shows another loss, {abs(kept[i] - now[i]):.1f} pixels off; ASSAY_RECORD=1 draws it anew")
            failed = True
            break
sys.exit(failed)

#!/usr/bin/env python3
"""Times decoding of one sequence at a context of 1024 tokens (small: 128) by `assay run` and by PyTorch: a JSON line each.

    tests/bench/decode_speed.py build/release/bin/assay [--backend cuda|vulkan|cpu] [--shape llama3-8b|qwen2-0.5b|small]
                                [--weights f32|bf16|q4_k|...]

`share` is the part of a token's time in which a copy would read weights and caches once. A table of which a row is read is
left out; copy_gbytes_per_s is that of a copy of 1 GiB by PyTorch, on `copied_on`. Assay's time is that of the program, with
the choice of a token on the host; device_ms is one submission by the device's clock. Weights are random, by the program's
seed; those in q4_k are a GGUF file in TMPDIR, as packing takes minutes. PyTorch's decoder is written here. It is greedy, and
multiplies q, k and v at once, as gate and up: on a GPU bfloat16 and one CUDA graph a token, on the CPU float32.
Exit code 1: the run of Assay has failed.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

SHAPES = {  # model_type, hidden, intermediate, heads, kv_heads, head_dim, layers, vocabulary, tied, theta, eps
    "llama3-8b": ("llama", 4096, 14336, 32, 8, 128, 32, 128256, False, 500000.0, 1e-5),
    "qwen2-0.5b": ("qwen2", 896, 4864, 14, 2, 64, 24, 151936, True, 1000000.0, 1e-6),
    "small": ("llama", 256, 512, 4, 2, 64, 2, 512, False, 10000.0, 1e-5)}
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("assay", type=lambda path: pathlib.Path(path).resolve())
parser.add_argument("--backend", choices=("cuda", "vulkan", "cpu"), default="cuda")
parser.add_argument("--shape", choices=SHAPES, default="llama3-8b")
parser.add_argument("--weights", default="q4_k", help="f32, q4_k, or another format that the program has")
options = parser.parse_args()
TYPE, H, I, HEADS, KV, D, LAYERS, VOCABULARY, TIED, THETA, EPS = SHAPES[options.shape]
BIAS, CONTEXT, TIMED = TYPE == "qwen2", 128 if options.shape == "small" else 1024, 16 if options.shape == "small" else 64
if options.weights == "q4_k" and H % 256 > 0:
    parser.error("q4_k packs 256 values of a row: give --weights f32")
GPU = options.backend != "cpu" and torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"


def show(row, seconds, nbytes, copy, **rest):
    print(json.dumps({**row, "shape": options.shape, "context": CONTEXT, "ms": round(seconds * 1e3, 4), "tokens_per_s": round(1 / seconds, 1),
                      "mbytes": round(nbytes / 1e6, 1), "share": round(nbytes / copy / seconds, 3), **rest}), flush=True)


def gguf(path):
    """Matrices in Q4_K, of random codes whose values lie around 0; the table in F32, in which the program holds it."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    q4_k = b"".join(struct.pack("<ee", 1e-4, 7.5e-4) + os.urandom(140) for _ in range(1 << 14))
    values = torch.randn(1 << 20).mul_(0.02).numpy().tobytes()
    one = struct.pack("<f", 1) * H
    tensors = [("token_embd", (H, VOCABULARY), 0, values), ("output_norm", (H,), 0, one), *([] if TIED else [("output", (H, VOCABULARY), 12, q4_k)])]
    for n in range(LAYERS):
        for name, columns, rows in (("attn_q", H, HEADS * D), ("attn_k", H, KV * D), ("attn_v", H, KV * D), ("attn_output", HEADS * D, H),
                                    ("ffn_gate", H, I), ("ffn_up", H, I), ("ffn_down", I, H)):
            tensors.append((f"blk.{n}.{name}", (columns, rows), 12, q4_k))
        tensors += [(f"blk.{n}.{name}", (H,), 0, one) for name in ("attn_norm", "ffn_norm")]
    keys = [text("general.architecture") + struct.pack("<I", 8) + text(TYPE)]
    for name, value in (("block_count", LAYERS), ("embedding_length", H), ("feed_forward_length", I), ("attention.head_count", HEADS),
                        ("attention.head_count_kv", KV), ("attention.layer_norm_rms_epsilon", EPS), ("rope.freq_base", THETA)):
        keys.append(text(f"{TYPE}.{name}") + struct.pack(*(("<If", 6, value) if isinstance(value, float) else ("<II", 4, value))))
    header, pieces, at = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys), [], 0
    for name, shape, kind, pool in tensors:
        size = math.prod(shape) // 256 * 144 if kind else math.prod(shape) * 4  # a multiple of 32, to which the format aligns
        header += text(name + ".weight") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, at)
        pieces.append((pool, size))
        at += size
    with path.open("wb") as file:
        file.write(header + bytes(-len(header) % 32))
        for pool, size in pieces:
            for begin in range(0, size, len(pool)):
                file.write(pool[:size - begin])


def assay(folder):
    """Tokens from CONTEXT - TIMED / 2 on: those that are timed have CONTEXT behind them in the mean."""
    packed = options.weights == "q4_k"
    model, source = folder / ("model.gguf" if packed else "config.json"), [] if packed else ["--random"]
    if packed:
        gguf(model)
    else:
        model.write_text(json.dumps({
            "model_type": TYPE, "hidden_size": H, "intermediate_size": I, "num_attention_heads": HEADS, "num_key_value_heads": KV, "vocab_size": VOCABULARY,
            "head_dim": D, "num_hidden_layers": LAYERS, "rope_theta": THETA, "rms_norm_eps": EPS, "tie_word_embeddings": TIED}))
    prompt = ",".join(str(7 * n % VOCABULARY) for n in range(CONTEXT - TIMED // 2))
    done = subprocess.run([options.assay, "run", model, "--tokens", prompt, "--count", str(TIMED + 1), "--backend", options.backend,
                           "--weights", options.weights, "--profile", "--json", *source], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"assay run: exit {done.returncode}")
    made = json.loads(done.stdout)
    places = CONTEXT + TIMED // 2 + 2  # tokens that are taken, and a place more
    table = 0 if TIED else VOCABULARY * H * (2 if options.weights in ("f16", "bf16") else 4)
    return made, made["decode_seconds"] / TIMED, made["memory"]["weights"] - table + made["memory"]["caches"] * CONTEXT / places


def seconds_of(f, repeats=16):
    """The median of groups of runs, by the device's clock where it has one."""
    def once():
        if GPU:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
        start = time.perf_counter()
        for _ in range(repeats):
            f()
        if not GPU:
            return (time.perf_counter() - start) / repeats
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / repeats

    once()
    return statistics.median(once() for _ in range(7))


def copy_bandwidth():
    x = torch.ones(1 << 28, device=DEVICE)
    y = torch.ones_like(x)
    return 2 * x.numel() * 4 / seconds_of(lambda: y.copy_(x), 16 if GPU else 1)


def pytorch():
    """Returns a step of the decoder, the last of CONTEXT tokens, which it chooses anew; and the bytes that it reads."""
    dtype = torch.bfloat16 if GPU else torch.float32

    def normal(*shape):
        return torch.randn(*shape, device=DEVICE, dtype=dtype).mul_(0.02)

    table, last = normal(VOCABULARY, H), torch.ones(H, device=DEVICE, dtype=dtype)
    head = table if TIED else normal(VOCABULARY, H)
    layers = [(torch.ones_like(last), normal((HEADS + 2 * KV) * D, H), normal((HEADS + 2 * KV) * D) if BIAS else None, normal(H, HEADS * D),
               torch.ones_like(last), normal(2 * I, H), normal(H, I), normal(KV, CONTEXT, D), normal(KV, CONTEXT, D)) for _ in range(LAYERS)]
    angles = (CONTEXT - 1) * THETA ** (-torch.arange(0, D, 2, device=DEVICE) / D)
    cos, sin = torch.cat([angles.cos()] * 2).to(dtype), torch.cat([-angles.sin(), angles.sin()]).to(dtype)
    token = torch.zeros(1, device=DEVICE, dtype=torch.long)
    norm = F.rms_norm if hasattr(F, "rms_norm") else lambda x, _, w, eps: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w
    attention = F.scaled_dot_product_attention if hasattr(F, "scaled_dot_product_attention") else \
        lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) * D ** -0.5, -1) @ v

    def step():
        x = table[token]
        for norm1, qkv, bias, o, norm2, gate_up, down, keys, values in layers:
            qk, v = F.linear(norm(x, (H,), norm1, EPS), qkv, bias).view(-1, D).split((HEADS + KV, KV))
            q, k = torch.addcmul(qk * cos, qk.roll(D // 2, -1), sin).split((HEADS, KV))  # rotated
            keys[:, -1], values[:, -1] = k, v
            y = attention(q.view(1, KV, HEADS // KV, D), keys[None], values[None])  # heads that share keys are rows
            x.addmm_(y.reshape(1, -1), o.t())
            gate, up = F.linear(norm(x, (H,), norm2, EPS), gate_up).chunk(2, -1)
            x.addmm_(F.silu(gate) * up, down.t())
        token.copy_(F.linear(norm(x, (H,), last, EPS), head).argmax(-1))

    nbytes = sum(t.numel() * t.element_size() for layer in layers for t in layer if t is not None) + head.numel() * head.element_size()
    return step, nbytes, str(dtype).split(".")[1]


with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
    made, seconds, nbytes = assay(pathlib.Path(folder))
with torch.no_grad():
    copy = copy_bandwidth()
    if GPU:
        torch.cuda.empty_cache()
    show({"assay": made["device"], "weights": options.weights}, seconds, nbytes, copy, copy_gbytes_per_s=round(copy / 1e9, 1), copied_on=DEVICE,
         device_ms=round(made["profile"]["seconds_in_one_submission"] * 1e3, 4))
    step, nbytes, dtype = pytorch()
    if GPU:
        step()  # libraries prepare themselves before the capture
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        step = graph.replay
    show({"torch": torch.__version__, "device": torch.cuda.get_device_name() if GPU else "cpu", "weights": dtype, "graph": GPU}, seconds_of(step), nbytes, copy)

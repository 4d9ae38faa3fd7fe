#!/usr/bin/env python3
"""Runs RMS norms of NumPy on the calls of `assay cases rmsnorm --out FOLDER`, and saves their results there:

    recorded_numpy.py FOLDER [eps_outside|short_mean]        the second argument plants a fault
"""
import json
import pathlib
import struct
import sys

import numpy as np

TYPES = {"F32": np.float32, "F16": np.float16, "I32": np.int32, "U8": np.uint8}


def load(file):
    """The tensors of a safetensors file, by name."""
    data = file.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, info in json.loads(data[8:8 + length]).items():
        begin, end = (8 + length + offset for offset in info["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], TYPES[info["dtype"]]).reshape(info["shape"])
    return tensors


def save(file, tensors):
    header, parts, at = {}, [], 0
    for name, array in tensors.items():
        kind = next(kind for kind, dtype in TYPES.items() if dtype == array.dtype)
        parts.append(np.ascontiguousarray(array).tobytes())
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def rms_norm(x, weight, eps, fault):
    count = x.shape[1]
    squares = np.square(x[:, :count - 1] if fault == "short_mean" and count > 4096 else x)
    mean = squares.sum(axis=1, dtype=np.float32) / np.float32(count)
    eps = np.float32(eps)
    rrms = 1 / (np.sqrt(mean) + eps) if fault == "eps_outside" else 1 / np.sqrt(mean + eps)
    return x * rrms[:, None] * weight, rrms


folder, fault = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
cases = json.loads((folder / "cases.json").read_text())
np.seterr(all="ignore")  # some cases overflow, or hold NaN
for file in cases["files"]:
    results_file = folder / file.replace("cases", "results")
    if results_file.exists():
        continue  # of an earlier round
    inputs, results = load(folder / file), {}
    for call in cases["calls"]:
        if call["file"] == file:
            own = {name: inputs[f"{call['id']}.{name}"] for name in call["inputs"]}
            y, rrms = rms_norm(own["x"], own["weight"], call["params"]["eps"], fault)
            results[f"{call['id']}.y"], results[f"{call['id']}.rrms"] = y, rrms
    save(results_file, results)

#!/usr/bin/env python3
"""Writes weights.safetensors with the reference implementation (pip install safetensors; made with 0.5.3)."""
import pathlib
import struct

import safetensors

here = pathlib.Path(__file__).parent
bits = [0x3F800000, 0xC0490FDB, 0x00000001, 0x80000000, 0x7F7FFFFF, 0x33D6BF95]
tensors = {
    "model.norm.weight": {"dtype": "float32", "shape": [2, 3], "data": struct.pack("<6I", *bits)},
    "lm_head.weight": {"dtype": "float16", "shape": [3], "data": struct.pack("<3H", 0x3C00, 0xFBFF, 0x0001)},
    "layer.0.bias": {"dtype": "bfloat16", "shape": [2], "data": struct.pack("<2H", 0x3F80, 0xC049)},
    "scalar": {"dtype": "float32", "shape": [], "data": struct.pack("<f", 0.5)},
    "empty": {"dtype": "float32", "shape": [0, 3], "data": b""},
    "ids": {"dtype": "int64", "shape": [1], "data": struct.pack("<q", 7)},
}
(here / "weights.safetensors").write_bytes(safetensors.serialize(tensors, {"format": "pt"}))
print("safetensors", safetensors.__version__)

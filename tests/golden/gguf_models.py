#!/usr/bin/env python3
"""Writes golden models in GGUF: python3 -P tests/golden/gguf_models.py FOLDER, with torch, transformers and gguf (PyPI).

llama.gguf has a layer with matrices in Q4_K, BF16 and F16 and tensors in F32; qwen2.gguf one with biases and tied
embeddings. Random bytes stand for codes, so that nobody's quantizer counts. gguf writes them, and transformers reads
them and computes the logits of IDS in float64: `logits` in FOLDER/gguf.safetensors, by file.
"""
import importlib.metadata
import pathlib
import sys

import gguf
import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
random = np.random.default_rng(20261129)


def q4_k(rows: int, columns: int) -> np.ndarray:
    """Blocks of random codes whose values lie within about 0.1."""
    blocks = random.integers(0, 256, (rows * columns // 256, 144), dtype=np.uint8)
    blocks[:, 0:2] = np.float16(random.uniform(1e-4, 2e-4, (len(blocks), 1))).view(np.uint8)
    blocks[:, 2:4] = np.float16(random.uniform(5e-4, 1e-3, (len(blocks), 1))).view(np.uint8)
    return blocks.reshape(rows, -1)


def write(path: pathlib.Path, arch: str, hidden: int, intermediate: int, heads: int, kv: int, d: int, vocabulary: int) -> None:
    w = gguf.GGUFWriter(path, arch)
    w.add_name(arch), w.add_block_count(1), w.add_context_length(64), w.add_embedding_length(hidden), w.add_feed_forward_length(intermediate)
    w.add_head_count(heads), w.add_head_count_kv(kv), w.add_layer_norm_rms_eps(1e-5), w.add_rope_freq_base(10000.0)
    w.add_rope_dimension_count(d), w.add_vocab_size(vocabulary), w.add_key_length(d), w.add_value_length(d)
    w.add_tokenizer_model('llama'), w.add_token_list([f'<{i}>' for i in range(vocabulary)])
    w.add_token_scores([0.0] * vocabulary), w.add_token_types([1] * vocabulary)
    normal = lambda *shape: random.normal(0, 0.05, shape).astype(np.float32)

    def matrix(name: str, rows: int, columns: int, kind: str) -> None:
        if kind == 'Q4_K':
            w.add_tensor(name, q4_k(rows, columns), raw_dtype=gguf.GGMLQuantizationType.Q4_K)
        elif kind == 'BF16':
            bits = (torch.tensor(normal(rows, columns)).bfloat16().view(torch.int16).numpy()).view(np.uint8)
            w.add_tensor(name, bits.reshape(rows, -1), raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            w.add_tensor(name, normal(rows, columns).astype(np.float16 if kind == 'F16' else np.float32))

    packed = 'Q4_K' if hidden % 256 == 0 else 'F32'
    matrix('token_embd.weight', vocabulary, hidden, packed)
    w.add_tensor('output_norm.weight', 1 + normal(hidden))
    if arch == 'llama':
        matrix('output.weight', vocabulary, hidden, packed)
    for name, rows, columns, kind in (('attn_q', heads * d, hidden, packed), ('attn_k', kv * d, hidden, packed),
                                      ('attn_v', kv * d, hidden, packed), ('attn_output', hidden, heads * d, 'BF16'),
                                      ('ffn_gate', intermediate, hidden, packed), ('ffn_up', intermediate, hidden, packed),
                                      ('ffn_down', hidden, intermediate, 'F16')):
        matrix(f'blk.0.{name}.weight', rows, columns, kind)
        if arch == 'qwen2' and name in ('attn_q', 'attn_k', 'attn_v'):
            w.add_tensor(f'blk.0.{name}.bias', normal(rows))
    for name in ('attn_norm', 'ffn_norm'):
        w.add_tensor(f'blk.0.{name}.weight', 1 + normal(hidden))
    w.write_header_to_file(), w.write_kv_data_to_file(), w.write_tensors_to_file(), w.close()


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    write(folder / 'llama.gguf', 'llama', 256, 16, 2, 1, 16, 16)
    write(folder / 'qwen2.gguf', 'qwen2', 24, 20, 3, 1, 8, 16)
    logits = {}
    read = {arch: transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=f'{arch}.gguf', torch_dtype=torch.float32)
            for arch in ('llama', 'qwen2')}
    # transformers norms and rotates in float32 whatever the model's type is, so float32 means float64 from here on.
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    for arch, single in read.items():
        model = type(single)(single.config).double().eval()
        model.load_state_dict(single.double().state_dict())
        with torch.no_grad():
            logits[arch] = model(torch.tensor([IDS])).logits[0].numpy()
        assert logits[arch].dtype == np.float64
    save_file(logits, folder / 'gguf.safetensors', {'ids': str(IDS), 'torch': torch.__version__,
                                                    'transformers': transformers.__version__, 'gguf': importlib.metadata.version('gguf')})


main()

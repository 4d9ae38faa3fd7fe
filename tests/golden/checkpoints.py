#!/usr/bin/env python3
"""Checkpoints as transformers saves them: python3 -P checkpoints.py FOLDER, in tests/golden. Without torch it writes config.5.json of each alone.

Qwen2 with a tied head in one file of float32, Qwen3 in shards of bfloat16, and Llama with every bias in float16. Elements are fractions that every type holds: of a
tensor the i-th is ((crc32(NAME) + 37 i) % 255 - 127) / 64.
"""
import pathlib
import sys
import zlib

import transformers

FAMILIES = {
    'Qwen2': ('float32', '1GB', {'tie_word_embeddings': True, 'hidden_size': 8, 'num_key_value_heads': 2}, 1000000.0),
    'Qwen3': ('bfloat16', '1KB', {'tie_word_embeddings': False, 'hidden_size': 10, 'num_key_value_heads': 1, 'head_dim': 6}, 5000000.0),
    'Llama': ('float16', '1GB', {'tie_word_embeddings': False, 'hidden_size': 8, 'num_key_value_heads': 4, 'attention_bias': True, 'mlp_bias': True}, 500000.0),
}
version = int(transformers.__version__.split('.')[0])
for family, (dtype, shard, special, theta) in FAMILIES.items():
    folder = pathlib.Path(sys.argv[1]) / family.lower()
    folder.mkdir(parents=True, exist_ok=True)
    rope = {'rope_theta': theta} if version < 5 else {'rope_parameters': {'rope_type': 'default', 'rope_theta': theta}}
    config = getattr(transformers, family + 'Config')(intermediate_size=6, num_attention_heads=4, num_hidden_layers=2, vocab_size=11, rms_norm_eps=3e-5, **special, **rope)
    if version >= 5:
        config.to_json_file(folder / 'config.5.json')
        continue
    import torch
    model = getattr(transformers, family + 'ForCausalLM')(config).to(getattr(torch, dtype))
    for name, parameter in model.named_parameters():
        parameter.data = (((zlib.crc32(name.encode()) + 37 * torch.arange(parameter.numel())) % 255 - 127) / 64).to(parameter.dtype).reshape(parameter.shape)
    model.save_pretrained(folder, max_shard_size=shard)
    (folder / 'generation_config.json').unlink(missing_ok=True)
print('transformers', transformers.__version__)

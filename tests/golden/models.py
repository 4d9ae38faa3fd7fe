#!/usr/bin/env python3
"""Whole models by transformers and peft in float64, with all gradients: models.py > models.safetensors

Llama, Qwen2 and Qwen3 with random weights, with and without LoRA, as their classes compute them. transformers forms norms, angles and softmax in float32 whatever a
model's type is, so float32 means float64 while this runs. Operands are float32 numbers. The metadata of the file has the configuration of each model, and the
versions. A tensor is NAME/PARAMETER, NAME/PARAMETER.gradient, NAME/ids, NAME/targets, NAME/upstream or NAME/y (the loss of each token).
"""
import json
import struct
import sys

import torch

single = torch.float32
torch.float32 = torch.float = torch.float64
torch.Tensor.float = torch.Tensor.double
torch.set_default_dtype(torch.float64)

import peft
import transformers

torch.manual_seed(20261129)

SMALL = {'hidden': 12, 'intermediate': 20, 'heads': 4, 'kv_heads': 2, 'head_dim': 4, 'layers': 2, 'vocabulary': 11, 'theta': 10000.0, 'eps': 1e-6, 'qkv_bias': False,
         'qk_norm': False, 'tied_head': False, 'rank': 3, 'alpha': 12.0, 'adapters': [], 's': 6}
EVERY = ['q', 'k', 'v', 'o', 'gate', 'up', 'down']
CASES = {
    'llama': ('Llama', SMALL | {'eps': 1e-5, 'theta': 500000.0}),
    'llama_every_lora': ('Llama', SMALL | {'kv_heads': 4, 'head_dim': 6, 'layers': 1, 'adapters': EVERY}),
    'qwen2': ('Qwen2', SMALL | {'kv_heads': 1, 'head_dim': 3 * 2, 'hidden': 24, 'theta': 1e6, 'qkv_bias': True, 'tied_head': True, 'layers': 1}),
    'qwen2_lora': ('Qwen2', SMALL | {'hidden': 16, 'theta': 1e6, 'qkv_bias': True, 'adapters': ['q', 'v'], 's': 5}),
    'qwen3': ('Qwen3', SMALL | {'hidden': 10, 'head_dim': 6, 'theta': 1e6, 'qk_norm': True}),
    'qwen3_every_lora': ('Qwen3', SMALL | {'head_dim': 2, 'theta': 1e6, 'qk_norm': True, 'tied_head': True, 'layers': 1, 'adapters': EVERY, 's': 1}),
}


def built(family, c):
    config = getattr(transformers, family + 'Config')(
        hidden_size=c['hidden'], intermediate_size=c['intermediate'], num_attention_heads=c['heads'], num_key_value_heads=c['kv_heads'], head_dim=c['head_dim'],
        num_hidden_layers=c['layers'], vocab_size=c['vocabulary'], rope_theta=c['theta'], rope_parameters={'rope_type': 'default', 'rope_theta': c['theta']},
        rms_norm_eps=c['eps'], tie_word_embeddings=c['tied_head'], attn_implementation='eager', use_cache=False)
    model = getattr(transformers, family + 'ForCausalLM')(config).double().eval()
    if c['adapters']:
        targets = [f'{p}_proj' for p in c['adapters']]
        model = peft.get_peft_model(model, peft.LoraConfig(r=c['rank'], lora_alpha=c['alpha'], target_modules=targets, lora_dropout=0.0)).double().eval()
    leaves = {}
    for name, parameter in model.named_parameters():
        name = name.removeprefix('base_model.model.').replace('.base_layer', '').replace('.default', '')
        drawn = torch.randn(parameter.shape)
        if name.endswith('norm.weight'):
            drawn = 1 + 0.25 * drawn
        elif name.endswith('.bias'):
            drawn = 0.3 * drawn
        elif name != 'model.embed_tokens.weight':
            drawn = 0.1 * drawn
        parameter.data = drawn.to(single).double()
        parameter.requires_grad_()
        leaves[name] = parameter
    return model, leaves


def case(name, family, c, tensors):
    model, leaves = built(family, c)
    ids, targets = (torch.randint(c['vocabulary'], (c['s'],)) for _ in range(2))
    logits = model(input_ids=ids[None]).logits[0]
    assert logits.dtype == torch.float64
    y = torch.nn.functional.cross_entropy(logits, targets, reduction='none')
    upstream = torch.randn(y.shape).to(single).double()
    y.backward(upstream)
    rotary = [m for n, m in model.named_modules() if n.endswith('rotary_emb')]
    assert rotary and all(m.inv_freq.dtype == torch.float64 for m in rotary)
    made = {'ids': ids, 'targets': targets, 'upstream': upstream, 'y': y}
    for leaf, parameter in leaves.items():
        made[leaf], made[leaf + '.gradient'] = parameter, parameter.grad
    for key, tensor in made.items():
        tensors[f'{name}/{key}'] = tensor.detach().double().contiguous()
    print(f"{name}: {len(leaves)} leaves, loss {y.mean().item():.6f}", file=sys.stderr)


tensors, header, data = {}, {}, b''
for name, (family, c) in CASES.items():
    case(name, family, c, tensors)
# Written by hand: the library's table of types is wrong while float32 means float64.
for name, tensor in sorted(tensors.items()):
    text = struct.pack(f'<{tensor.numel()}d', *tensor.flatten().tolist())
    header[name] = {'dtype': 'F64', 'shape': list(tensor.shape), 'data_offsets': [len(data), len(data) + len(text)]}
    data += text
header['__metadata__'] = {'made_by': f'torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__}'} | {
    name: json.dumps(c) for name, (_, c) in CASES.items()}
text = json.dumps(header, sort_keys=True).encode()
text += b' ' * (-len(text) % 8)
sys.stdout.buffer.write(struct.pack('<Q', len(text)) + text + data)

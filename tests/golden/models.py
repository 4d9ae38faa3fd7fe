#!/usr/bin/env python3
"""Whole models by transformers and peft in float64, with all gradients: python3 -P models.py models > models.safetensors, and so variants and bf16

Llama, Qwen2 and Qwen3 with random weights, with and without LoRA, as their classes compute them. transformers forms norms, angles and softmax in float32 whatever a
model's type is, so float32 means float64 while this runs. Operands are float32 numbers. The metadata of the file has the configuration of each model, and the
versions. A tensor is NAME/PARAMETER, NAME/PARAMETER.gradient, NAME/ids, NAME/targets, NAME/upstream or NAME/y (the loss of each token, or of each sequence that is
classified). Variants: batches with padding, encoders, every bias, biases beside norms of heads, other sets of adapters, and classifiers by the mean of the tokens. bf16: models in bfloat16 as they are loaded, forward only; NAME/y is the logits.
"""
import json
import struct
import sys

import torch

single, working = torch.float32, torch.bfloat16
if sys.argv[1] != 'bf16':
    torch.float32 = torch.float = working = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)

import peft
import transformers

torch.manual_seed(20261129)

SMALL = {'hidden': 12, 'intermediate': 20, 'heads': 4, 'kv_heads': 2, 'head_dim': 4, 'layers': 2, 'vocabulary': 11, 'theta': 10000.0, 'eps': 1e-6, 'qkv_bias': False,
         'qk_norm': False, 'tied_head': False, 'rank': 3, 'alpha': 12.0, 'adapters': [], 's': 6}
TINY = SMALL | {'hidden': 8, 'intermediate': 6, 'head_dim': 2, 'vocabulary': 7, 'layers': 1, 'rank': 2, 's': 5}
EVERY = ['q', 'k', 'v', 'o', 'gate', 'up', 'down']
CASES = {
    'llama': ('Llama', SMALL | {'eps': 1e-5, 'theta': 500000.0}),
    'llama_every_lora': ('Llama', SMALL | {'kv_heads': 4, 'head_dim': 6, 'layers': 1, 'adapters': EVERY}),
    'qwen2': ('Qwen2', SMALL | {'kv_heads': 1, 'head_dim': 3 * 2, 'hidden': 24, 'theta': 1e6, 'qkv_bias': True, 'tied_head': True, 'layers': 1}),
    'qwen2_lora': ('Qwen2', SMALL | {'hidden': 16, 'theta': 1e6, 'qkv_bias': True, 'adapters': ['q', 'v'], 's': 5}),
    'qwen3': ('Qwen3', SMALL | {'hidden': 10, 'head_dim': 6, 'theta': 1e6, 'qk_norm': True}),
    'qwen3_every_lora': ('Qwen3', SMALL | {'head_dim': 2, 'theta': 1e6, 'qk_norm': True, 'tied_head': True, 'layers': 1, 'adapters': EVERY, 's': 1}),
}
# Of a batch each sequence has one token fewer than that before it, and padding behind.
VARIANTS = {
    'padded_batch': ('Llama', TINY | {'batch': 3, 'length': 4, 'layers': 2}),
    'encoder': ('Llama', TINY | {'causal': False, 'batch': 2, 'length': 4}),
    'every_bias': ('Llama', TINY | {'biases': EVERY, 'kv_heads': 4}),
    'bias_and_qk_norm': ('Qwen3', TINY | {'biases': ['q', 'k', 'v', 'o'], 'qk_norm': True, 'kv_heads': 1, 'theta': 1e6}),
    'lora_on_k_o_down': ('Qwen3', TINY | {'qk_norm': True, 'adapters': ['k', 'o', 'down'], 'tied_head': True}),
    'lora_on_gate': ('Qwen2', TINY | {'biases': ['q', 'k', 'v'], 'adapters': ['gate'], 'batch': 2, 'length': 5}),
    'classifier': ('Qwen2', TINY | {'biases': ['q', 'k', 'v'], 'classes': 3, 'batch': 3, 'length': 5, 'adapters': ['q', 'v', 'up']}),
    'multi_label_encoder': ('Qwen3', TINY | {'qk_norm': True, 'classes': 3, 'multi_label': True, 'batch': 2, 'length': 4, 'causal': False}),
}


class Classifier(torch.nn.Module):
    def __init__(self, causal, c):
        super().__init__()
        self.model, self.classifier = causal.model, torch.nn.Linear(c['hidden'], c['classes'])

    def forward(self, lengths, **inputs):
        hidden = self.model(**inputs).last_hidden_state
        return self.classifier(torch.stack([h[:n].mean(0) for h, n in zip(hidden, lengths)]))


def built(family, c):
    biases = c.get('biases', [])
    config = getattr(transformers, family + 'Config')(
        hidden_size=c['hidden'], intermediate_size=c['intermediate'], num_attention_heads=c['heads'], num_key_value_heads=c['kv_heads'], head_dim=c['head_dim'],
        num_hidden_layers=c['layers'], vocab_size=c['vocabulary'], rope_theta=c['theta'], rope_parameters={'rope_type': 'default', 'rope_theta': c['theta']},
        rms_norm_eps=c['eps'], tie_word_embeddings=c['tied_head'], attn_implementation='eager', use_cache=False,
        **({'attention_bias': 'o' in biases} if family != 'Qwen2' else {}), **({'mlp_bias': 'up' in biases} if family == 'Llama' else {}))
    model = getattr(transformers, family + 'ForCausalLM')._from_config(config, dtype=working).eval()
    if 'classes' in c:
        model = Classifier(model, c)
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
        parameter.data = drawn.to(single).to(working)
        parameter.requires_grad_()
        leaves[name] = parameter
    if 'biases' in c:
        assert {f'{p}_proj' for p in biases} == {name.split('.')[-2] for name in leaves if name.endswith('_proj.bias')}, leaves.keys()
    return model, leaves


def losses(model, ids, targets, weights, c):
    batch, s = ids.shape
    lengths = [max(1, c.get('length', s) - b) for b in range(batch)]
    real = torch.arange(s) < torch.tensor(lengths)[:, None]
    mask = real.long()
    if not c.get('causal', True):
        mask = torch.zeros(batch, 1, s, s).masked_fill(~real[:, None, None, :], torch.finfo(torch.float64).min)
    inputs = {'input_ids': ids, 'attention_mask': mask, 'position_ids': torch.arange(s).expand(batch, s)}
    if 'classes' not in c:
        logits = model(**inputs).logits
        assert logits.dtype == torch.float64
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets, weight=weights, reduction='none')
    logits = model(lengths, **inputs)
    assert logits.dtype == torch.float64
    if c.get('multi_label'):
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, pos_weight=weights, reduction='none').mean(-1)
    return torch.nn.functional.cross_entropy(logits, targets, weight=weights, reduction='none')


def variant(name, family, c, tensors):
    model, leaves = built(family, c)
    ids = torch.randint(c['vocabulary'], (c.get('batch', 1), c['s']))
    kinds = c.get('classes', c['vocabulary'])
    targets = torch.randint(2, (len(ids), kinds)).double() if c.get('multi_label') else torch.randint(kinds, (len(ids),) if 'classes' in c else (ids.numel(),))
    weights = (1 + 0.5 * torch.rand(kinds)).to(single).double()
    y = losses(model, ids, targets, weights, c)
    upstream = torch.randn(y.shape).to(single).double()
    y.backward(upstream)
    made = {'ids': ids, 'targets': targets, 'class weights': weights, 'upstream': upstream, 'y': y}
    for leaf, parameter in leaves.items():
        transposed = leaf == 'classifier.weight'  # [hidden, classes] in Assay
        made[leaf], made[leaf + '.gradient'] = (t.T if transposed else t for t in (parameter, parameter.grad))
    for key, tensor in made.items():
        tensors[f'{name}/{key}'] = tensor.detach().double().contiguous()
    print(f"{name}: {len(leaves)} leaves, loss {y.mean().item():.6f}", file=sys.stderr)


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


@torch.no_grad()
def bf16(name, family, c, tensors):
    model, leaves = built(family, c)
    assert all(b.dtype == single for n, b in model.named_buffers() if n.endswith('inv_freq'))  # as from_pretrained leaves them
    ids = torch.randint(c['vocabulary'], (c['s'],))
    logits = model(input_ids=ids[None]).logits[0]
    assert logits.dtype == torch.bfloat16
    for key, tensor in (leaves | {'ids': ids, 'y': logits}).items():
        tensors[f'{name}/{key}'] = tensor.double().contiguous()
    print(f'{name}: logits up to {logits.abs().max().item():.3f}', file=sys.stderr)


tensors, header, data = {}, {}, b''
make, cases = {'models': (case, CASES), 'variants': (variant, VARIANTS), 'bf16': (bf16, {name: CASES[name] for name in ('llama', 'qwen2', 'qwen3')})}[sys.argv[1]]
for name, (family, c) in cases.items():
    make(name, family, c, tensors)
# Written by hand: the library's table of types is wrong while float32 means float64.
for name, tensor in sorted(tensors.items()):
    text = struct.pack(f'<{tensor.numel()}d', *tensor.flatten().tolist())
    header[name] = {'dtype': 'F64', 'shape': list(tensor.shape), 'data_offsets': [len(data), len(data) + len(text)]}
    data += text
header['__metadata__'] = {'made_by': f'torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__}'} | {
    name: json.dumps(c) for name, (_, c) in cases.items()}
text = json.dumps(header, sort_keys=True).encode()
text += b' ' * (-len(text) % 8)
sys.stdout.buffer.write(struct.pack('<Q', len(text)) + text + data)

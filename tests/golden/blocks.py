#!/usr/bin/env python3
"""Decoder layers and a small model with their gradients by PyTorch in float64: blocks.py > blocks.json

The blocks that tests/program builds, in plain PyTorch by the equations of Llama, Qwen2 and Qwen3 as their publishers' code has them (rotary embedding by
rotate_half, heads repeated for groups, LoRA as peft adds it), differentiated by autograd. Every operand is a float32 number, written with nine digits; results
have seventeen.
"""
import json
import math

import torch
from torch.nn.functional import embedding, linear, log_softmax, silu

torch.manual_seed(20261128)

SMALL = {'hidden': 6, 'intermediate': 10, 'heads': 4, 'kv_heads': 2, 'head_dim': 2, 'layers': 1, 'vocabulary': 1, 'theta': 10000.0, 'eps': 1e-6, 'qkv_bias': False,
         'qk_norm': False, 'tied_head': False, 'rank': 2, 'alpha': 8.0, 'adapters': [], 's': 3}
PROJECTIONS = {'q': 'self_attn.q_proj', 'k': 'self_attn.k_proj', 'v': 'self_attn.v_proj', 'o': 'self_attn.o_proj', 'gate': 'mlp.gate_proj', 'up': 'mlp.up_proj',
               'down': 'mlp.down_proj'}
CASES = {
    'llama': SMALL | {'kv_heads': 4, 'eps': 1e-5},
    'qwen2': SMALL | {'heads': 3, 'kv_heads': 1, 'head_dim': 4, 'theta': 1e6, 'qkv_bias': True},
    'qwen3': SMALL | {'hidden': 5, 'head_dim': 6, 'theta': 1e6, 'qk_norm': True, 's': 4},
    'qwen2_lora': SMALL | {'qkv_bias': True, 'adapters': list(PROJECTIONS)},
    'qwen3_model': SMALL | {'hidden': 4, 'intermediate': 5, 'layers': 2, 'vocabulary': 7, 'qk_norm': True, 'tied_head': True, 'adapters': ['q', 'v']},
    'llama_model': SMALL | {'hidden': 4, 'intermediate': 5, 'head_dim': 4, 'heads': 2, 'kv_heads': 1, 'vocabulary': 6, 's': 1},
}


class Model:
    def __init__(self, c):
        self.c, self.leaves = c, {}

    def leaf(self, name, *shape):
        if name not in self.leaves:
            drawn = torch.randn(shape, dtype=torch.float32)
            if name.endswith('norm.weight'):
                drawn = 1 + 0.25 * drawn
            elif name.endswith('.bias'):
                drawn = 0.3 * drawn
            elif name not in ('x', 'model.embed_tokens.weight'):
                drawn = 0.1 * drawn
            self.leaves[name] = torch.tensor([float(f'{v:.9g}') for v in drawn.flatten().tolist()]).float().double().reshape(shape).requires_grad_()
        return self.leaves[name]

    def norm(self, name, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.c['eps']) * self.leaf(name + '.weight', x.shape[-1])

    def project(self, prefix, which, x, out):
        name, c = prefix + PROJECTIONS[which], self.c
        y = linear(x, self.leaf(name + '.weight', out, x.shape[-1]), self.leaf(name + '.bias', out) if c['qkv_bias'] and which in 'qkv' else None)
        if which in c['adapters']:
            a, b = self.leaf(name + '.lora_A.weight', c['rank'], x.shape[-1]), self.leaf(name + '.lora_B.weight', out, c['rank'])
            y = y + linear(linear(x, a), b) * (c['alpha'] / c['rank'])
        return y

    def rotate(self, x):
        """x [heads, s, d]."""
        d = self.c['head_dim']
        inv_freq = 1.0 / (self.c['theta'] ** (torch.arange(0, d, 2, dtype=torch.float64) / d))
        freqs = torch.outer(torch.arange(x.shape[1], dtype=torch.float64), inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        half = torch.cat((-x[..., d // 2:], x[..., :d // 2]), dim=-1)
        return x * emb.cos() + half * emb.sin()

    def attention(self, prefix, x):
        c, s, d = self.c, x.shape[0], self.c['head_dim']
        heads = lambda which, n: self.project(prefix, which, x, n * d).view(s, n, d)
        q, k, v = heads('q', c['heads']), heads('k', c['kv_heads']), heads('v', c['kv_heads'])
        if c['qk_norm']:
            q, k = self.norm(prefix + 'self_attn.q_norm', q), self.norm(prefix + 'self_attn.k_norm', k)
        q, k, v = self.rotate(q.transpose(0, 1)), self.rotate(k.transpose(0, 1)), v.transpose(0, 1)
        k, v = (t.repeat_interleave(c['heads'] // c['kv_heads'], dim=0) for t in (k, v))
        mask = torch.full((s, s), float('-inf'), dtype=torch.float64).triu(1)
        weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(d) + mask, dim=-1)
        return self.project(prefix, 'o', (weights @ v).transpose(0, 1).reshape(s, -1), c['hidden'])

    def layer(self, prefix, x):
        x = x + self.attention(prefix, self.norm(prefix + 'input_layernorm', x))
        n, inner = self.norm(prefix + 'post_attention_layernorm', x), self.c['intermediate']
        return x + self.project(prefix, 'down', silu(self.project(prefix, 'gate', n, inner)) * self.project(prefix, 'up', n, inner), self.c['hidden'])

    def losses(self, ids, targets):
        c = self.c
        table = self.leaf('model.embed_tokens.weight', c['vocabulary'], c['hidden'])
        x = embedding(ids, table)
        for n in range(c['layers']):
            x = self.layer(f'model.layers.{n}.', x)
        head = table if c['tied_head'] else self.leaf('lm_head.weight', c['vocabulary'], c['hidden'])
        return -log_softmax(linear(self.norm('model.norm', x), head), -1)[torch.arange(len(ids)), targets]


def case(c):
    model, result = Model(c), {'config': c}
    if c['vocabulary'] > 1:
        for name in ('ids', 'targets'):
            result[name] = torch.randint(c['vocabulary'], (c['s'],)).tolist()
        y = model.losses(torch.tensor(result['ids']), torch.tensor(result['targets']))
    else:
        y = model.layer('', model.leaf('x', c['s'], c['hidden']))
    result['upstream'] = [float(f'{v:.9g}') for v in torch.randn(y.shape).flatten().tolist()]
    y.backward(torch.tensor(result['upstream']).float().double().reshape(y.shape))
    return result | {'y': y.flatten().tolist(), 'leaves': {name: {'value': [float(f'{v:.9g}') for v in t.flatten().tolist()], 'gradient': t.grad.flatten().tolist()}
                                                           for name, t in model.leaves.items()}}


made = [f'"{name}":\n{json.dumps(case(c))}'.replace('}, "', '},\n"') for name, c in CASES.items()]
print('{"made_by": "torch ' + torch.__version__ + '",\n' + ',\n'.join(made) + '}')

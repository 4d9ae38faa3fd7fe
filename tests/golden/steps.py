#!/usr/bin/env python3
"""Five steps of small Qwen2 classifiers with LoRA by transformers, peft and torch.optim.AdamW in float64: python3 -P steps.py > steps.json

A base in float32, and one in NF4 whose weights are decoded here. The head is a linear layer on the mean of the hidden states; batches are padded on the right and
masked. Gradients of two micro-batches of different size add up, are divided by the number of samples, and are clipped by their norm (without the 1e-6 that
torch.nn.utils.clip_grad_norm_ adds to it). transformers forms norms, angles and softmax in float32 whatever a model's type is, so float32 means float64 while this
runs. Operands are float32 numbers, written with nine digits; results have seventeen. Each step begins with what the one before gave, rounded to float32, so that no
rounding grows from step to step. Of each step: the losses of the samples, the norm, every tensor that trains, AdamW's means of all of them in float32.
"""
import json
import sys

import torch

single = torch.float32
torch.float32 = torch.float = torch.float64
torch.Tensor.float = torch.Tensor.double
torch.set_default_dtype(torch.float64)

import peft
import transformers

torch.manual_seed(20261130)

SMALL = {'hidden': 6, 'intermediate': 6, 'heads': 2, 'kv_heads': 1, 'head_dim': 4, 'layers': 1, 'vocabulary': 11, 'theta': 10000.0, 'eps': 1e-6, 'rank': 2, 'alpha': 8.0,
         'classes': 3, 'length': 5, 'lr': 0.01, 'weight_decay': 0.1, 'max_norm': 0.25, 'adam_eps': 1e-3}
CASES = {
    'float32': SMALL | {'adapters': ['q', 'k', 'v', 'o', 'gate', 'up', 'down'], 'norms': False, 'multi_label': False, 'weights': 'f32'},
    'nf4': SMALL | {'layers': 2, 'adapters': ['q', 'v'], 'norms': True, 'multi_label': True, 'weights': 'nf4', 'max_norm': 0.0},
}
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534,
       0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]


def rounded(tensor):
    """A float32 number is what its nine digits say."""
    return tensor.to(single).double()


def packed(shape):
    """Codes, two a byte, a scale for each row, and the weight, float32 numbers; rows have at most 64 elements and fill a block of 32 bytes."""
    rows, columns = shape
    codes, scales = torch.randint(16, (rows, 64)), rounded(0.2 + 0.2 * torch.rand(rows))
    return (codes[:, 0::2] * 16 + codes[:, 1::2]).flatten().tolist(), scales.tolist(), rounded(torch.tensor(NF4)[codes[:, :columns]] * scales[:, None])


def nine(tensor):
    return [float(f'{v:.9g}') for v in tensor.detach().flatten().tolist()]


def case(c):
    config = transformers.Qwen2Config(
        hidden_size=c['hidden'], intermediate_size=c['intermediate'], num_attention_heads=c['heads'], num_key_value_heads=c['kv_heads'], head_dim=c['head_dim'],
        num_hidden_layers=c['layers'], vocab_size=c['vocabulary'], rope_theta=c['theta'], rms_norm_eps=c['eps'], attn_implementation='eager', use_cache=False)
    base = transformers.Qwen2Model(config).double()
    assert base.layers[0].self_attn.q_proj.weight.shape == (c['heads'] * c['head_dim'], c['hidden'])
    model = peft.get_peft_model(base, peft.LoraConfig(r=c['rank'], lora_alpha=c['alpha'], target_modules=[f'{p}_proj' for p in c['adapters']],
                                                      lora_dropout=0.0)).double().eval()
    head = torch.nn.Linear(c['hidden'], c['classes']).double()
    made, trained = {'config': c, 'parameters': {}}, {}
    for name, parameter in [*model.named_parameters(), ('classifier.weight', head.weight), ('classifier.bias', head.bias)]:
        name = name.replace('base_model.model.', 'model.').replace('.base_layer', '').replace('.default', '')
        trains = 'lora_' in name or name.startswith('classifier.') or (c['norms'] and name.endswith('norm.weight'))
        drawn = torch.randn(parameter.shape)
        if name.endswith('norm.weight'):
            drawn = 1 + 0.25 * drawn
        elif name.endswith('.bias'):
            drawn = 0.3 * drawn
        elif name != 'model.embed_tokens.weight':
            drawn = 0.2 * drawn
        if c['weights'] == 'nf4' and name.endswith('_proj.weight'):
            codes, scales, drawn = packed(parameter.shape)
            made['parameters'][name] = codes
            made['parameters'][name + '.absmax'] = scales
        else:
            drawn = rounded(drawn)
            # The head is [hidden, classes] here.
            made['parameters'][name] = nine(drawn.T if name == 'classifier.weight' else drawn)
        parameter.data = drawn
        parameter.requires_grad_(trains)
        if trains:
            trained[name] = parameter
    weights = rounded(0.5 + torch.rand(c['classes']))
    made['class weights'] = nine(weights)
    lr, beta1, beta2, eps, decay = rounded(torch.tensor([c['lr'], 0.9, 0.999, c['adam_eps'], c['weight_decay']])).tolist()
    adamw = torch.optim.AdamW(trained.values(), lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay)
    made['steps'] = []
    for _ in range(5):
        step = {'batches': [], 'losses': []}
        adamw.zero_grad()
        for count in (3, 2):
            lengths = [int(torch.randint(1, c['length'] + 1, ())) for _ in range(count)]
            ids, mask = torch.randint(c['vocabulary'], (count, c['length'])), torch.zeros(count, c['length'], dtype=torch.long)
            for i, length in enumerate(lengths):
                ids[i, length:], mask[i, :length] = 0, 1
            labels = torch.randint(c['classes'], (count,))
            several = torch.randint(2, (count, c['classes'])).double()
            hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
            assert hidden.dtype == torch.float64
            logits = head((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))
            if c['multi_label']:
                losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, several, pos_weight=weights, reduction='none').mean(-1)
            else:
                losses = torch.nn.functional.cross_entropy(logits, labels, weight=weights, reduction='none')
            losses.sum().backward()
            step['batches'].append([{'tokens': ids[i, :lengths[i]].tolist(), 'label': int(labels[i]), 'labels': several[i].int().tolist()} for i in range(count)])
            step['losses'] += losses.tolist()
        for parameter in trained.values():
            parameter.grad /= 5
        norm = torch.linalg.vector_norm(torch.cat([p.grad.flatten() for p in trained.values()]))
        if 0 < c['max_norm'] < norm:
            for parameter in trained.values():
                parameter.grad *= c['max_norm'] / norm
        adamw.step()
        step['norm'] = norm.item()
        own = lambda name, tensor: (tensor.T if name == 'classifier.weight' else tensor).detach()
        step['trained'] = {name: own(name, p).flatten().tolist() for name, p in trained.items()}
        for mean, key in (('m', 'exp_avg'), ('v', 'exp_avg_sq')):
            step[mean] = {}
            for name, parameter in trained.items():
                state = adamw.state[parameter]
                state[key] = rounded(state[key])
                step[mean][name] = nine(own(name, state[key]))
        for parameter in trained.values():
            parameter.data = rounded(parameter.data)
        made['steps'].append(step)
    print(f"{len(trained)} tensors train, norms {[s['norm'] for s in made['steps']]}", file=sys.stderr)
    return made


rows = [f'"{name}":\n' + json.dumps(case(c), separators=(',', ':')).replace('],"', '],\n"') for name, c in CASES.items()]
print(f'{{"made_by":"torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__}",\n' + ',\n'.join(rows) + '}')

"""Kernels of liger-kernel, as published, as kernels of contracts: what gpu.py judges."""
import torch
from liger_kernel.ops import rms_norm as liger_rms_norm
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.rope import LigerRopeFunction
from liger_kernel.ops.softmax import LigerSoftmaxFunction
from liger_kernel.ops.swiglu import swiglu_backward as liger_swiglu_backward
from liger_kernel.ops.swiglu import swiglu_forward


def rms_norm(x, weight, eps):
    if not len(x):
        return torch.empty_like(x), torch.empty(0, device=x.device)
    y, _, rrms, *_ = liger_rms_norm.rms_norm_forward(x.contiguous(), weight, eps, 0.0, "gemma", None)
    return y, rrms


def rms_norm_backward(x, weight, rrms, dy):
    if not len(x):
        return torch.empty_like(x), torch.zeros_like(weight)
    block, warps = liger_rms_norm.calculate_settings(x.shape[1])
    return liger_rms_norm.rms_norm_backward(dy.contiguous(), x.contiguous(), weight, rrms.contiguous(), 0.0, 1, block, warps, False, None)


def swiglu(gate, up):
    return swiglu_forward(gate.contiguous(), up.contiguous())[2] if len(gate) else torch.empty_like(gate)


def swiglu_backward(gate, up, dy):
    return liger_swiglu_backward(gate.contiguous().clone(), up.contiguous().clone(), dy.contiguous()) if len(gate) else (gate.clone(), up.clone())


def softmax(x):
    return LigerSoftmaxFunction.apply(x) if len(x) else torch.empty_like(x)


def cross_entropy(logits, targets, weights, reduction):
    logits, targets = logits.float(), targets.long()
    one = lambda how: LigerCrossEntropyFunction.apply(logits.clone(), targets, weights, -100, 0.0, 0.0, how)[0]
    return one("none"), one(("mean", "sum")[reduction - 1])[None]


def rope(x, positions, theta, float32_angle):
    rows, _, d = x.shape
    if not x.numel():
        return torch.empty_like(x)
    frequencies = theta ** (-2 * torch.arange(d // 2, dtype=torch.float64, device=x.device) / d)
    angles = (positions.float()[:, None] * frequencies.float()).double() if float32_angle else positions.double()[:, None] * frequencies
    cos, sin = (torch.cat([t, t], 1).float()[None] for t in (angles.cos(), angles.sin()))
    q = x.contiguous().clone().transpose(0, 1)[None]
    return LigerRopeFunction.apply(q, torch.zeros_like(q[:, :1]), cos, sin)[0][0].transpose(0, 1)

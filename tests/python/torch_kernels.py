"""Operations of PyTorch as kernels of contracts: what gpu.py judges."""
import assay
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

aten = torch.ops.aten


def rms_norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[1],), weight, eps)


def rms_norm_backward(x, weight, rrms, dy):
    return aten._fused_rms_norm_backward(dy.contiguous(), x.contiguous(), [x.shape[1]], rrms[:, None].contiguous(), weight, [True, True])


def softmax(x):
    """A row of nothing but -inf is NaN."""
    return F.softmax(x, -1)


def safe_softmax(x):
    """The softmax of scaled_dot_product_attention: a row of nothing but -inf is zeros."""
    return aten._safe_softmax(x, -1)


def softmax_backward(y, dy):
    return aten._softmax_backward_data(dy, y, 1, y.dtype)


def silu(x):
    return F.silu(x)


def silu_backward(x, dy):
    return aten.silu_backward(dy, x)


def matmul(a, b):
    return a @ b


def cross_entropy(logits, targets, weights, reduction):
    logits, targets = logits.float(), targets.long()
    loss = F.cross_entropy(logits, targets, weights, reduction="none")
    return loss, F.cross_entropy(logits, targets, weights, reduction=("mean", "sum")[reduction - 1])[None]


def cross_entropy_backward(logits, targets, weights, logsumexp, normalizer, dloss, dtotal):
    """The backward pass of log_softmax, which cross_entropy takes."""
    upstream = torch.zeros(logits.shape, device=logits.device)
    targets = targets.long()[:, None]
    upstream.scatter_(1, targets, -(weights[targets] * (dloss + dtotal / normalizer)[:, None]))
    return aten._log_softmax_backward_data(upstream, logits.float() - logsumexp[:, None], 1, torch.float32).to(logits.dtype)


def adamw(p, m, v, g, lr, beta1, beta2, eps, weight_decay, step):
    steps = torch.tensor(float(step), device=p.device)
    aten._fused_adamw_([p], [g], [m], [v], [], [steps], lr=lr, beta1=beta1, beta2=beta2, weight_decay=weight_decay, eps=eps, amsgrad=False, maximize=False)


def _attention(backend):
    def attention(q, k, v, scale, causal):
        q, k, v = _places(q, k, v)
        grouped = q.shape[1] != k.shape[1]
        if grouped and backend == SDPBackend.EFFICIENT_ATTENTION:
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
            grouped = False
        try:
            with sdpa_kernel(backend):
                y = F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal), scale=scale, enable_gqa=grouped)
        except RuntimeError as error:
            if "No available kernel" in str(error):
                raise assay.Refused("no kernel of this back end takes the call") from None
            raise
        return y.transpose(1, 2)
    return attention


attention_math = _attention(SDPBackend.MATH)
attention_flash = _attention(SDPBackend.FLASH_ATTENTION)
attention_efficient = _attention(SDPBackend.EFFICIENT_ATTENTION)
attention_cudnn = _attention(SDPBackend.CUDNN_ATTENTION)


def _places(*tensors):
    return [x.transpose(1, 2).contiguous() for x in tensors]


def attention_backward_flash(q, k, v, y, logsumexp, dy, scale, causal, s, t):
    q, k, v, y, dy = _places(q, k, v, y, dy)
    state = torch.zeros(2, dtype=torch.uint64, device=q.device)
    found = aten._scaled_dot_product_flash_attention_backward(dy, q, k, v, y, logsumexp.contiguous(), None, None, s, t, 0.0, bool(causal), state,
                                                              torch.empty(0, dtype=torch.uint64, device=q.device), scale=scale)
    return tuple(x.transpose(1, 2) for x in found)


def attention_backward_efficient(q, k, v, y, logsumexp, dy, scale, causal, s):
    q, k, v, y, dy = _places(q, k, v, y, dy)
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    saved = F.pad(logsumexp, (0, -s % 32), value=float("inf"))  # rows in multiples of 32
    state = torch.zeros((), dtype=torch.int64, device=q.device)
    dq, dk, dv, _ = aten._scaled_dot_product_efficient_attention_backward(dy, q, k, v, None, y, saved, state, state, 0.0, [True, True, True, False],
                                                                          bool(causal), scale=scale)
    dk, dv = (x.unflatten(1, (-1, group)).float().sum(2).to(q.dtype) for x in (dk, dv))
    return tuple(x.transpose(1, 2) for x in (dq, dk, dv))


def attention_backward_cudnn(q, k, v, y, logsumexp, dy, scale, causal, s, t):
    q, k, v, y, dy = _places(q, k, v, y, dy)
    state = torch.zeros((), dtype=torch.int64, device=q.device)
    found = aten._scaled_dot_product_cudnn_attention_backward(dy, q, k, v, y, logsumexp[..., None].contiguous(), state, state, None, None, None, s, t, 0.0,
                                                              bool(causal), scale=scale)
    return tuple(x.transpose(1, 2) for x in found)

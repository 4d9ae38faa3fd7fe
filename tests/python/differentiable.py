"""Differentiable functions of trace_test.py: right ones and, from `wrong_` on, planted wrong gradients."""
import torch


def softmax(x):
    return torch.softmax(x, -1)


def composed_softmax(x):
    e = torch.exp(x - x.max(-1, keepdim=True).values.detach())
    return e / e.sum(-1, keepdim=True)


def rmsnorm(x, weight, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def silu(x):
    return torch.nn.functional.silu(x)


def matmul(a, b):
    return a @ b


def cross_entropy(logits, targets, weights, reduction):
    logits, row = logits.float(), torch.arange(len(targets))
    loss = weights[targets.long()] * (torch.logsumexp(logits, 1) - logits[row, targets.long()])
    return loss, loss.sum()[None] / (weights[targets.long()].sum() if reduction == 1 else 1)


def embedding(table, ids):
    return torch.nn.functional.embedding(ids.long(), table)


class _Function(torch.autograd.Function):
    """softmax by its formula, with a factor on the projection."""

    @staticmethod
    def forward(ctx, x, factor):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        ctx.factor = factor
        return y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensors
        return y * (dy - ctx.factor * (y * dy).sum(-1, keepdim=True)), None


def by_formula(x):
    return _Function.apply(x, 1.0)


def wrong_projection(x):
    return _Function.apply(x, 0.0)


def wrong_by_a_little(x):
    return _Function.apply(x, 1.0 + 2.0 ** -10)


def wrong_sum_in_bfloat16(x, weight, eps):
    """Both parts of the gradient of x are rounded to its format before they are added."""
    return (x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def wrong_detached(x, weight, eps):
    """The root mean square takes no part in the gradient."""
    rrms = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps).detach()
    return (x * rrms * weight).to(x.dtype)


def wrong_weight(x, weight, eps):
    return (rmsnorm(x, weight.detach(), eps) + 0 * weight.sum()).to(x.dtype)


def wrong_hook(a, b):
    """Halves the gradient of b."""
    return a @ (b + (b - b.detach()) * -0.5)


def wrong_mean(logits, targets, weights, reduction):
    """The gradient of the mean over rows, where the weighted mean is asked for."""
    loss, total = cross_entropy(logits, targets, weights, reduction)
    return loss, total.detach() + (loss.mean() - loss.mean().detach()) if reduction == 1 else total


def wrong_values(x):
    return x.detach()


def raises(x):
    raise ArithmeticError("out of ideas")

"""Kernels in Triton in the usual style. triton_faults.py makes them wrong."""
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["x_stride", "y_stride", "n"])
def softmax_kernel(x_ptr, y_ptr, x_stride, y_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    places = tl.arange(0, BLOCK)
    x_row, y_row = x_ptr + row * x_stride, y_ptr + row * y_stride
    largest, total = -float("inf"), 0.0
    for begin in range(0, n, BLOCK):
        x = tl.load(x_row + begin + places, mask=begin + places < n, other=-float("inf")).to(tl.float32)
        grown = tl.maximum(largest, tl.max(x, axis=0))
        shift = tl.where(grown == -float("inf"), 0.0, grown)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), axis=0)
        largest = grown
    shift = tl.where(largest == -float("inf"), 0.0, largest)
    total = tl.where(total == 0, 1.0, total)
    for begin in range(0, n, BLOCK):
        x = tl.load(x_row + begin + places, mask=begin + places < n, other=-float("inf")).to(tl.float32)
        tl.store(y_row + begin + places, tl.exp(x - shift) / total, mask=begin + places < n)


def softmax(x: torch.Tensor, y):
    rows, n = x.shape
    softmax_kernel[(rows,)](x, y, x.stride(0), y.stride(0), n, BLOCK=1024)


@triton.jit(do_not_specialize=["x_stride", "y_stride", "n"])
def rmsnorm_kernel(x_ptr, weight_ptr, y_ptr, rrms_ptr, x_stride, y_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    places = tl.arange(0, BLOCK)
    x_row, y_row = x_ptr + row * x_stride, y_ptr + row * y_stride
    squares = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, n, BLOCK):
        x = tl.load(x_row + begin + places, mask=begin + places < n, other=0.0).to(tl.float32)
        squares += x * x
    rrms = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(rrms_ptr + row, rrms)
    for begin in range(0, n, BLOCK):
        x = tl.load(x_row + begin + places, mask=begin + places < n, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + begin + places, mask=begin + places < n, other=0.0)
        tl.store(y_row + begin + places, x * rrms * weight, mask=begin + places < n)


def rmsnorm(x: torch.Tensor, weight, y, rrms, eps):
    rows, n = x.shape
    rmsnorm_kernel[(rows,)](x, weight, y, rrms, x.stride(0), y.stride(0), n, eps, BLOCK=1024)


@triton.jit(do_not_specialize=["m", "n", "k", "a_stride", "b_stride", "c_stride"])
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, a_stride, b_stride, c_stride, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    terms = tl.arange(0, BLOCK_K)
    c = tl.zeros([BLOCK, BLOCK], tl.float32)
    for begin in range(0, k, BLOCK_K):
        inner = begin + terms
        a = tl.load(a_ptr + rows[:, None].to(tl.int64) * a_stride + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(b_ptr + inner[:, None].to(tl.int64) * b_stride + columns[None, :], mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0)
        c = tl.dot(a, b, c, input_precision="ieee")
    tl.store(c_ptr + rows[:, None].to(tl.int64) * c_stride + columns[None, :], c, mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul(a: torch.Tensor, b, c):
    (m, k), n = a.shape, b.shape[1]
    if m * n:
        matmul_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), BLOCK=32, BLOCK_K=32)


@triton.jit(do_not_specialize=["q_batch", "q_row", "q_head", "k_batch", "k_row", "k_head", "v_batch", "v_row", "v_head", "y_batch", "y_row", "y_head", "lse_batch",
                              "lse_head", "s", "group", "heads", "d"])
def attention_kernel(q_ptr, k_ptr, v_ptr, y_ptr, lse_ptr, lengths_ptr, starts_ptr, q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head,
                     y_batch, y_row, y_head, lse_batch, lse_head, s, group, heads, d, scale, causal: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    batch, head = (tl.program_id(1) // heads).to(tl.int64), (tl.program_id(1) % heads).to(tl.int64)
    length, start = tl.load(lengths_ptr + batch), tl.load(starts_ptr + batch)
    queries = (tl.program_id(0) * BLOCK_S + tl.arange(0, BLOCK_S)).to(tl.int64)
    features, places = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_T)
    q = tl.load(q_ptr + batch * q_batch + queries[:, None] * q_row + head * q_head + features[None, :],
                mask=(queries[:, None] < s) & (features[None, :] < d), other=0.0)
    k_begin, v_begin = k_ptr + batch * k_batch + head // group * k_head, v_ptr + batch * v_batch + head // group * v_head
    largest = tl.full([BLOCK_S], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_S], tl.float32)
    y = tl.zeros([BLOCK_S, BLOCK_D], tl.float32)
    for begin in range(0, length, BLOCK_T):
        keys = (begin + places).to(tl.int64)
        present = (keys[:, None] < length) & (features[None, :] < d)
        k = tl.load(k_begin + keys[:, None] * k_row + features[None, :], mask=present, other=0.0)
        v = tl.load(v_begin + keys[:, None] * v_row + features[None, :], mask=present, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (keys[None, :] < length) & (queries[:, None] < s)
        if causal:
            visible = visible & (keys[None, :] <= start + queries[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        grown = tl.maximum(largest, tl.max(scores, axis=1))
        shift = tl.where(grown == -float("inf"), 0.0, grown)
        rescaled = tl.exp(largest - shift)
        weights = tl.exp(scores - shift[:, None])
        total = total * rescaled + tl.sum(weights, axis=1)
        y = y * rescaled[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        largest = grown
    empty = total == 0
    y = y / tl.where(empty, 1.0, total)[:, None]
    tl.store(y_ptr + batch * y_batch + queries[:, None] * y_row + head * y_head + features[None, :], y, mask=(queries[:, None] < s) & (features[None, :] < d))
    lse = tl.where(empty, -float("inf"), largest + tl.log(tl.where(empty, 1.0, total)))
    tl.store(lse_ptr + batch * lse_batch + head * lse_head + queries, lse, mask=queries < s)


def attention(q: torch.Tensor, k, v, lengths, starts, y, logsumexp, scale, causal):
    batch, s, heads, d = q.shape
    if q.numel():
        attention_kernel[(triton.cdiv(s, 32), batch * heads)](
            q, k, v, y, logsumexp, lengths, starts, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *y.stride()[:3], *logsumexp.stride()[:2], s, heads // k.shape[2], heads,
            d, scale,
            causal=bool(causal), BLOCK_S=32, BLOCK_T=32, BLOCK_D=max(16, triton.next_power_of_2(d)))


@triton.jit(do_not_specialize=["stride", "n"])
def cross_entropy_kernel(logits_ptr, targets_ptr, weights_ptr, loss_ptr, lse_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    places = tl.arange(0, BLOCK)
    largest, total = -float("inf"), 0.0
    for begin in range(0, n, BLOCK):
        x = tl.load(logits_ptr + row * stride + begin + places, mask=begin + places < n, other=-float("inf")).to(tl.float32)
        grown = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - grown) + tl.sum(tl.exp(x - grown), axis=0)
        largest = grown
    target = tl.load(targets_ptr + row)
    logit = tl.load(logits_ptr + row * stride + target).to(tl.float32)
    tl.store(loss_ptr + row, tl.load(weights_ptr + target) * ((largest - logit) + tl.log(total)))
    tl.store(lse_ptr + row, largest + tl.log(total))


def cross_entropy(logits: torch.Tensor, targets, weights, loss, total, logsumexp, normalizer, reduction):
    rows, n = logits.shape
    cross_entropy_kernel[(rows,)](logits, targets, weights, loss, logsumexp, logits.stride(0), n, BLOCK=1024)
    normalizer.copy_(weights[targets.long()].sum() if reduction == 1 else torch.ones(()))
    total.copy_(loss.sum() / normalizer)


@triton.jit(do_not_specialize=["gate_stride", "up_stride", "y_stride", "n"])
def silu_mul_kernel(gate_ptr, up_ptr, y_ptr, gate_stride, up_stride, y_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + row * gate_stride + columns, mask=columns < n, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + columns, mask=columns < n, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * y_stride + columns, gate / (1.0 + tl.exp(-gate)) * up, mask=columns < n)


def silu_mul(gate: torch.Tensor, up, y):
    rows, n = gate.shape
    if rows:
        silu_mul_kernel[(rows, triton.cdiv(n, 512))](gate, up, y, gate.stride(0), up.stride(0), y.stride(0), n, BLOCK=512)


@triton.jit(do_not_specialize=["x_row", "x_head", "y_row", "y_head", "d"])
def rope_kernel(x_ptr, y_ptr, cos_ptr, sin_ptr, x_row, x_head, y_row, y_head, d, interleaved: tl.constexpr, BLOCK: tl.constexpr):
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    pair = tl.arange(0, BLOCK)
    half = d // 2
    first = pair * 2 if interleaved else pair
    second = first + 1 if interleaved else pair + half
    cos = tl.load(cos_ptr + row * half + pair, mask=pair < half, other=0.0)
    sin = tl.load(sin_ptr + row * half + pair, mask=pair < half, other=0.0)
    x1 = tl.load(x_ptr + row * x_row + head * x_head + first, mask=pair < half, other=0.0).to(tl.float32)
    x2 = tl.load(x_ptr + row * x_row + head * x_head + second, mask=pair < half, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * y_row + head * y_head + first, x1 * cos - x2 * sin, mask=pair < half)
    tl.store(y_ptr + row * y_row + head * y_head + second, x2 * cos + x1 * sin, mask=pair < half)


def rope(x: torch.Tensor, positions, y, theta, interleaved, float32_angle):
    rows, heads, d = x.shape
    pair = torch.arange(d // 2, dtype=torch.float64, device=x.device)
    frequencies = theta ** (-2 * pair / d)
    if float32_angle:
        angles = (positions.float()[:, None] * frequencies.float()).double()
    else:
        angles = positions.double()[:, None] * frequencies
    cos, sin = angles.cos().float(), angles.sin().float()
    if rows:
        rope_kernel[(rows, heads)](x, y, cos, sin, x.stride(0), x.stride(1), y.stride(0), y.stride(1), d, interleaved=bool(interleaved),
                                   BLOCK=triton.next_power_of_2(d // 2))

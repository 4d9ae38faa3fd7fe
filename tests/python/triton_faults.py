"""Faults of triton_kernels.py: edits of its text, each of which makes a kernel wrong."""
import os

# Contract, fault, text, and what it becomes.
FAULTS = [
    ("softmax", "no_maximum", "grown = tl.maximum(largest, tl.max(x, axis=0))\n        shift =", "grown = tl.sum(tl.zeros([BLOCK], tl.float32), axis=0)\n        shift ="),
    ("softmax", "sum_not_rescaled", "total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift)", "total = total + tl.sum(tl.exp(x - shift)"),
    ("softmax", "masked_as_zero", "y_row = x_ptr + row * x_stride, y_ptr + row * y_stride\n    largest, total = -float(\"inf\"), 0.0\n    for begin in range(0, n, BLOCK):\n"
     "        x = tl.load(x_row + begin + places, mask=begin + places < n, other=-float(\"inf\"))",
     "y_row = x_ptr + row * x_stride, y_ptr + row * y_stride\n    largest, total = -float(\"inf\"), 0.0\n    for begin in range(0, n, BLOCK):\n"
     "        x = tl.load(x_row + begin + places, mask=begin + places < n, other=0.0)"),
    ("softmax", "rows_taken_for_dense", "softmax_kernel[(rows,)](x, y, x.stride(0), y.stride(0)", "softmax_kernel[(rows,)](x, y, n, y.stride(0)"),
    ("softmax", "grid_one_short", "softmax_kernel[(rows,)]", "softmax_kernel[(max(rows - 1, 1),)]"),
    ("rmsnorm", "no_eps", "tl.sum(squares, axis=0) / n + eps)", "tl.sum(squares, axis=0) / n)"),
    ("rmsnorm", "eps_outside_of_the_root", "1.0 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)", "1.0 / (tl.sqrt(tl.sum(squares, axis=0) / n) + eps)"),
    ("rmsnorm", "divided_by_n_minus_1", "tl.sum(squares, axis=0) / n + eps", "tl.sum(squares, axis=0) / (n - 1) + eps"),
    ("rmsnorm", "weights_of_the_first_block", "weight_ptr + begin + places", "weight_ptr + places"),
    ("matmul", "terms_unmasked", "mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0", "mask=(rows[:, None] < m) & (inner[None, :] <= k), other=0.0"),
    ("matmul", "sums_in_half_precision", "c = tl.dot(a, b, c, input_precision=\"ieee\")", "c = (c + tl.dot(a, b, input_precision=\"ieee\")).to(tl.float16).to(tl.float32)"),
    ("matmul", "stride_of_the_other_factor", "a.stride(0), b.stride(0), c.stride(0), BLOCK=32", "a.stride(0), a.stride(0), c.stride(0), BLOCK=32"),
    ("attention", "mask_off_by_one", "keys[None, :] <= start + queries[:, None]", "keys[None, :] < start + queries[:, None]"),
    ("attention", "values_not_rescaled", "y = y * rescaled[:, None] + tl.dot", "y = y + tl.dot"),
    ("attention", "heads_of_a_group_exchanged", "k_ptr + batch * k_batch + head // group * k_head", "k_ptr + batch * k_batch + head % (heads // group) * k_head"),
    ("attention", "scale_of_d", "\n            d, scale,", "\n            d, d ** -0.5,"),
    ("cross_entropy", "mean_over_rows", "normalizer.copy_(weights[targets.long()].sum() if", "normalizer.copy_(torch.tensor(float(rows)) if"),
    ("cross_entropy", "sum_not_rescaled", "total = total * tl.exp(largest - grown)", "total = total"),
    ("silu_mul", "gate_and_up_exchanged", "gate / (1.0 + tl.exp(-gate)) * up", "up / (1.0 + tl.exp(-up)) * gate"),
    ("silu_mul", "approximate_gelu", "gate / (1.0 + tl.exp(-gate)) * up", "gate / (1.0 + tl.exp(-1.702 * gate)) * up"),
    ("silu_mul", "last_block_left_out", "(rows, triton.cdiv(n, 512))", "(rows, max(n // 512, 1))"),
    ("rope", "sign_of_the_sine", "x2 * cos + x1 * sin", "x2 * cos - x1 * sin"),
    ("rope", "positions_from_one", "positions.double()[:, None] * frequencies", "(positions.double()[:, None] + 1) * frequencies"),
]


def planted(old, new):
    """Returns the text of triton_kernels.py with a fault."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "triton_kernels.py"), encoding="utf-8") as file:
        text = file.read()
    if text.count(old) != 1:
        raise ValueError(f"{old!r} stands {text.count(old)} times in triton_kernels.py, not once")
    return text.replace(old, new)

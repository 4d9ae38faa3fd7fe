"""Softmax over rows in Triton, right and with a fault: what ../README.md falsifies."""
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, x_stride, y_stride, n, other, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + columns, mask=columns < n, other=other).to(tl.float32)
    largest = tl.max(x, axis=0)
    e = tl.exp(x - tl.where(largest == -float("inf"), 0.0, largest))  # a row without entries gives zeros
    total = tl.sum(e, axis=0)
    tl.store(y_ptr + row * y_stride + columns, e / tl.where(total == 0, 1.0, total), mask=columns < n)


def softmax(x: torch.Tensor, y):
    rows, n = x.shape
    softmax_kernel[(rows,)](x, y, x.stride(0), y.stride(0), n, -float("inf"), BLOCK=triton.next_power_of_2(n))


def masked_as_zero(x: torch.Tensor, y):
    """What is loaded beyond the row counts as zeros."""
    rows, n = x.shape
    softmax_kernel[(rows,)](x, y, x.stride(0), y.stride(0), n, 0.0, BLOCK=triton.next_power_of_2(n))

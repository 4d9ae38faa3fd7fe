"""Kernels of python_test.py: right ones and, from `wrong_` on, planted faults."""
import ctypes.util
import functools
import os
import sys
import time

import numpy as np

import assay


def rmsnorm(x, weight, eps):
    rrms = np.float32(1) / np.sqrt(np.mean(x * x, axis=1, dtype=np.float32) + np.float32(eps))
    return x * rrms[:, None] * weight, rrms


def rmsnorm_into(x, weight, y, rrms, *, eps):
    rrms[...] = np.float32(1) / np.sqrt(np.mean(x * x, axis=1, dtype=np.float32) + np.float32(eps))
    y[...] = x * rrms[:, None] * weight


def rmsnorm_of_a_dict(**named):
    y, rrms = rmsnorm(named["x"], named["weight"], named["eps"])
    named["y"][...], named["rrms"][...] = y, rrms


def scaled(x, alpha):
    return {"y": x * np.float32(alpha)}


def scaled_by_a_library(x, alpha):
    """Looks for a library, as torch does when it is imported."""
    ctypes.util.find_library("dl")
    return scaled(x, alpha)


def silu(x):
    """Far below zero the error of y is that of exp."""
    with np.errstate(over="ignore", invalid="ignore"):
        return x / (np.float32(1) + np.exp(-x))


class Kernels:
    @staticmethod
    def softmax(x):
        largest = np.max(x, axis=1, keepdims=True)
        masked = largest == -np.inf
        with np.errstate(invalid="ignore"):
            e = np.exp(x - np.where(masked, np.float32(0), largest))
            total = np.sum(e, axis=1, keepdims=True, dtype=np.float32)
            return np.where(masked, np.float32(0), e / np.where(masked, np.float32(1), total))


@assay.falsifies("matmul", cases=5)
def product(a, b):
    return a @ b


def whole_rows(x, weight, eps):
    """Gives y alone, and takes rows of whole vectors."""
    if x.shape[1] % 8:
        raise ValueError(f"rows of {x.shape[1]}")
    return rmsnorm(x, weight, eps)[0]


def wrong_whole_rows(x, weight, eps):
    return whole_rows(x, weight, 2 * eps)


def rmsnorm_backward(x, weight, rrms, dy):
    a = dy * weight
    projection = np.mean(a * x * rrms[:, None], axis=1, keepdims=True, dtype=np.float32)
    return rrms[:, None] * (a - x * rrms[:, None] * projection), np.sum(dy * x * rrms[:, None], axis=0, dtype=np.float32)


def wrong_backward(x, weight, rrms, dy):
    dx, dweight = rmsnorm_backward(x, weight, rrms, dy)
    return dx, dweight * np.float32(1 + 2 ** -12)


def refuses(x, weight, eps):
    raise assay.Refused("not today")


def wrong_eps(x, weight, eps):
    rrms = np.float32(1) / (np.sqrt(np.mean(x * x, axis=1, dtype=np.float32)) + np.float32(eps))
    return x * rrms[:, None] * weight, rrms


def wrong_row(x, weight, eps):
    y, rrms = rmsnorm(x, weight, eps)
    if len(y) > 5:
        y[5] = y[4]
    return y, rrms


def wrong_dense(x, weight, y, rrms, eps):
    """Takes padded rows for dense ones."""
    flat = np.lib.stride_tricks.as_strided(x, x.shape, (4 * x.shape[1], 4))
    got, saved = rmsnorm(flat, weight, eps)
    y[...], rrms[...] = got, saved


kept = {}


def wrong_state(x, weight, eps):
    """Remembers the weights of the first call with this width."""
    return rmsnorm(x, kept.setdefault(x.shape[1], weight.copy()), eps)


def wrong_write(x, weight, eps):
    x.setflags(write=True)
    x *= 2
    return rmsnorm(x, weight, eps)


def wrong_half_written(x, weight, y, rrms, eps):
    result, saved = rmsnorm(x, weight, eps)
    y[: len(y) // 2], rrms[...] = result[: len(y) // 2], saved


def raises(x, weight, eps):
    raise ArithmeticError("out of ideas")


def exits(x, weight, eps):
    sys.exit(0)


def dies(x, weight, eps):
    os._exit(0)


def loops(x, weight, eps):
    if x.shape[0] > 7:
        time.sleep(1000)
    return rmsnorm(x, weight, eps)


def returns_nothing(x, weight, eps):
    pass


def returns_one(x, weight, eps):
    return rmsnorm(x, weight, eps)[0]


def returns_doubles(x, weight, eps):
    return tuple(t.astype(np.float64) for t in rmsnorm(x, weight, eps))


def returns_rows(x, weight, eps):
    y, rrms = rmsnorm(x, weight, eps)
    return y, rrms[:, None]


def returns_a_dict(x, weight, eps):
    return {"y": rmsnorm(x, weight, eps)[0]}


def writes_and_returns(x, weight, y, rrms, eps):
    return rmsnorm(x, weight, eps)


def takes_gamma(x, gamma, eps):
    return rmsnorm(x, gamma, eps)


def local():
    def inner(x, weight, eps):
        return rmsnorm(x, weight, eps)
    return inner


partial = functools.partial(rmsnorm)
number = 7

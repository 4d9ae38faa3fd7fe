"""Softmax over rows in NumPy, right and wrong: what ../README.md falsifies."""
import numpy as np

import assay


@assay.falsifies("softmax")
def softmax(x):
    largest = x.max(axis=1, keepdims=True)
    masked = largest == -np.inf  # a row without entries gives zeros
    with np.errstate(invalid="ignore"):
        e = np.exp(x - np.where(masked, np.float32(0), largest))
        total = e.sum(axis=1, keepdims=True)
        return e / np.where(total == 0, np.float32(1), total)


def unshifted(x):
    """Overflows where an entry is above 88."""
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(x)
        return e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    assay.check(softmax)  # raises on a finding
    finding = assay.falsify(unshifted, contract="softmax").findings[0]  # raises nothing
    print(finding.message, finding.dims, finding.inputs, finding.replay, sep="\n")

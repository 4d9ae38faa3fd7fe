"""`python -m assay`: the command line of Assay, with this interpreter for kernels in Python."""
import ctypes
import os
import sys

from . import _worker


def main(arguments):
    if arguments[:1] in (["attest"], ["gate"]) and "--python" in arguments and "--help" not in arguments:
        from . import _evidence
        return _evidence.command(arguments)
    engine = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libassay.so"))
    words = [b"assay"] + [os.fsencode(word) for word in arguments]
    return engine.assay_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None), _worker.CALL)


def command():
    """The script `assay` of an installed package."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    command()

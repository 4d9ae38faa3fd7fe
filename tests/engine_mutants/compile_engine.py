#!/usr/bin/env python3
"""Compiles a rewritten source of the engine: falsify/mutation/source/compile.py with the sites of rewrite_engine.py.

    compile_engine.py ROOT OUT COMMAND...      a compiler launcher: CMake appends the compiler's command
"""
import importlib.util
import os

import rewrite_engine

path = os.path.join(rewrite_engine.HERE, '..', '..', 'falsify', 'mutation', 'source', 'compile.py')
spec = importlib.util.spec_from_file_location('compile_kernels', path)
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)
kernels.File = rewrite_engine.File

if __name__ == '__main__':
    kernels.main()

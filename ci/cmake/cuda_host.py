#!/usr/bin/env python3
"""Turns a .cu file into C++ that runs on cuda-host, Assay's model of a CUDA device on the CPU.

cuda_host.py FILE.cu OUTPUT.cpp

Three things of CUDA are no C++ and no macro can make them so; all else is in the headers that stand in for CUDA's:
  kernel<<<grid, block, bytes, stream>>>(args)  a launch
  extern __shared__ float tile[];               memory whose size the launch gives
  __shared__ float tile[16][17];                filled with garbage at the start of every block, so that unwritten reads show
Lines keep their numbers. Exit code 1, and one sentence with the place, for a launch that is not understood.
"""
import re
import sys


def blank(text):
    """The same text with comments and literals blanked, so that places stay."""
    def spaces(match):
        return re.sub(r'[^\n]', ' ', match[0])
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', spaces, text, flags=re.S)


def fail(path, text, at, why):
    sys.exit(f'{path}:{text.count(chr(10), 0, at) + 1}: {why}')


def kernel_start(code, end):
    """Where the expression that names the kernel begins: identifiers, ::, and template arguments in <>."""
    at = end
    while True:
        while at > 0 and code[at - 1].isspace():
            at -= 1
        if at > 0 and code[at - 1] == '>':
            depth = 0
            while at > 0:
                at -= 1
                depth += {'>': 1, '<': -1}.get(code[at], 0)
                if depth == 0:
                    break
            continue
        word = re.search(r'[\w:]+$', code[:at])
        return word.start() if word else at


def launches(path, text):
    while True:
        code = blank(text)
        begin = code.find('<<<')
        if begin < 0:
            return text
        end = code.find('>>>', begin)
        start = kernel_start(code, begin)
        if end < 0 or start == begin:
            fail(path, text, begin, 'this launch is not understood: write kernel<<<grid, block>>>(arguments), or cudaLaunchKernelEx')
        kernel = text[start:begin].strip()
        text = f'{text[:start]}::assay::cuda_host::chevrons({text[begin + 3:end]})({kernel}){text[end + 3:]}'


def shared(text):
    code = blank(text)
    edits = []
    for m in re.finditer(r'\bextern\s+__shared__\s+(?:__align__\s*\(\s*\w+\s*\)\s*)?([\w:<> ]+?)\s+(\w+)\s*\[\s*\]\s*;', code):
        edits.append((m.start(), m.end(), f'{m[1]}* const {m[2]} = static_cast<{m[1]}*>(::assay::cuda_host::dynamic_shared());'))
    for m in re.finditer(r'(?<!extern )\b__shared__\s[^;={}()]*?(\w+)\s*((?:\[[^\]]*\]\s*)*);', code):
        if any(begin <= m.start() < end for begin, end, _ in edits):
            continue
        name = m[1]
        edits.append((m.end(), m.end(), f' static ::assay::cuda_host::SharedArray {name}_garbage; {name}_garbage.declare(&{name}, sizeof({name}));'))
    for begin, end, by in sorted(edits, reverse=True):
        text = text[:begin] + by + '\n' * text.count('\n', begin, end) + text[end:]
    return text


def translate(path, text):
    text = re.sub(r'\bextern\s+"C"\s+(?=__global__)|\bstatic\s+(?=__global__)', '', text)
    return f'#line 1 "{path}"\n' + launches(path, shared(text))


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit('cuda_host.py FILE.cu OUTPUT.cpp')
    with open(sys.argv[1]) as f:
        source = f.read()
    result = translate(sys.argv[1], source)
    with open(sys.argv[2], 'w') as f:
        f.write(result)

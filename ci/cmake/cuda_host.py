#!/usr/bin/env python3
"""Turns a .cu file into C++ that runs on cuda-host, Assay's model of a CUDA device on the CPU.

cuda_host.py FILE.cu OUTPUT.cpp

What no macro can make C++ of is rewritten; all else is in the headers that stand in for CUDA's:
  kernel<<<grid, block, bytes, stream>>>(args)  a launch
  extern __shared__ float tile[];               memory whose size the launch gives
  __shared__ float tile[16][17];                filled with garbage at the start of every block, so that unwritten reads show
  #include "kernels.cuh"                        a header of the file's folder is rewritten likewise
  asm("...")                                    PTX, which fails the kernel that reaches it
  #include <cudnn.h>                            a library without a model: an error of the compiler, unless an #if skips it
  int main()                                    becomes a function that nothing calls
Lines keep their numbers. OUTPUT.cpp.d lists the files read, for make. Exit code 1, and one sentence with the place, for a launch that
is not understood.
"""
import pathlib
import re
import sys

ABSENT = re.compile(r'#[ \t]*include[ \t]*[<"]((?:cudnn|nccl|mpi|cub/(?!cub\.cuh)|cute/|cutlass/|thrust/|curand|cusparse|cusolver|cufft|torch/|ATen/|c10/|nvrtc|cudnn_frontend|'
                    r'cuda/|nvToolsExt|nvtx3/|cuda_profiler_api|cuda_fp8|texture)[^>"]*)[>"]')


def blank(text):
    """The same text with comments and literals blanked, so that places stay."""
    def spaces(match):
        return re.sub(r'[^\n]', ' ', match[0])
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', spaces, text, flags=re.S)


def fail(path, text, at, why):
    sys.exit(f'{path}:{text.count(chr(10), 0, at) + 1}: {why}')


def replace(text, edits):
    """Replaces [begin, end) by a text for every (begin, end, text), keeping the number of lines."""
    for begin, end, by in sorted(edits, reverse=True):
        text = text[:begin] + by + '\n' * (text.count('\n', begin, end) - by.count('\n')) + text[end:]
    return text


def closing(code, at):
    """The place of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += {'(': 1, '[': 1, '{': 1, ')': -1, ']': -1, '}': -1}.get(code[i], 0)
        if depth == 0:
            return i
    return -1


def split(text, code, separator=','):
    """The parts of a text between separators outside brackets."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(code):
        depth += {'(': 1, '[': 1, '{': 1, ')': -1, ']': -1, '}': -1}.get(c, 0)
        if c == separator and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return parts + [text[begin:]]


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


def launches(path, text, templates):
    while True:
        code = re.sub(r'\b__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)', lambda m: ' ' * len(m[0]), blank(text))
        begin = code.find('<<<')
        if begin < 0:
            return text
        end = code.find('>>>', begin)
        start = kernel_start(code, begin)
        if end < 0 or start == begin:
            fail(path, text, begin, 'this launch is not understood: write kernel<<<grid, block>>>(arguments), or cudaLaunchKernelEx')
        kernel = text[start:begin].strip()
        call = f'({kernel})'
        if kernel in templates or len(re.findall(rf'\bvoid\s+{kernel}\s*\(', code)) > 1:  # the call says which function it is
            call = f'.deduced([](auto&... assay_arguments) {{ {kernel}(assay_arguments...); }})'
        text = f'{text[:start]}::assay::cuda_host::chevrons({text[begin + 3:end]}){call}{text[end + 3:]}'


def in_function(code, at):
    """Whether a place is inside a function: in braces that are no namespace's."""
    open_braces = []
    for m in re.finditer(r'[{}]', code[:at]):
        if m[0] == '{':
            open_braces.append(m.start())
        elif open_braces:
            open_braces.pop()
    return any(not re.search(r'(\bnamespace\b[\w:\s]*|\bextern\s*)$', code[:brace]) for brace in open_braces)


def shared(path, text):
    code = blank(text)
    edits = []
    align = r'(?:(?:__align__|alignas)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?'
    for m in re.finditer(rf'\bextern\s+{align}__shared__\s+{align}([\w:<>, ]+?)\s+{align}(\w+)\s*\[\s*\]\s*;', code):
        memory = f'::assay::cuda_host::dynamic_shared("{m[2]}", sizeof({m[1]}))'
        if in_function(code, m.start()):
            edits.append((m.start(), m.end(), f'{m[1]}* const {m[2]} = static_cast<{m[1]}*>({memory});'))
        else:
            edits.append((m.start(), m.end(), f'\n#define {m[2]} (static_cast<{m[1]}*>({memory}))\n#line {text.count(chr(10), 0, m.end()) + 1} "{path}"\n'))
    for m in re.finditer(r'\b__shared__\b([^;{}]*);', code):
        if re.search(r'\bextern\s*' + align + '$', code[:m.start()]) or '=' in m[1] or m[1].lstrip().startswith('static'):
            continue
        tail = ''
        for part in split(m[1], m[1]):
            name = re.search(r'(\w+)\s*(?:\[.*)?$', re.sub(r'\[.*', '[', part.strip(), flags=re.S).rstrip('[').strip())
            if name:
                n = name[1]
                tail += (f' static ::assay::cuda_host::SharedArray {n}_garbage; '
                         f'{n}_garbage.declare((void*)&{n}, sizeof({n}), "{n}", sizeof(std::remove_all_extents_t<decltype({n})>));')
        edits.append((m.end(), m.end(), tail))
    return replace(text, edits)


def ptx(text):
    code = blank(text)
    edits = []
    for m in re.finditer(r'\b(?:asm|__asm__|__asm)\s*(?:(?:volatile|__volatile__)\s*)?\(', code):
        end = closing(code, m.end() - 1)
        if end > 0:
            edits.append((m.start(), end + 1, '::assay::cuda_host::inline_ptx()'))
    return replace(text, edits)


class Translation:
    def __init__(self, output):
        self.folder = pathlib.Path(str(output) + '.included').resolve()
        self.read = {}  # file: its translation, or None
        self.templates = set()  # names of kernels that are templates, so far

    def header(self, path):
        """The place of the translated header; None while it includes itself."""
        path = path.resolve()
        if path not in self.read:
            self.read[path] = None  # also ends cycles of includes
            result = self.translate(path)
            to = self.folder / (f'{len(self.read)}_' + path.name)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(result)
            self.read[path] = to
        return self.read[path]

    def translate(self, path):
        text = path.read_text(errors='surrogateescape')

        def include(match):
            absent = ABSENT.match(match[0].lstrip())
            if absent:
                return f'#error "cuda-host has no model of <{absent[1]}>: leave out, by an #if, what needs it, or falsify on a device (backend=cuda)"'
            named = re.search(r'"([^"]+)"', match[0])
            file = path.parent / named[1] if named else None
            if file and file.is_file():
                to = self.header(file)
                return f'#include "{to}"' if to else match[0]
            return match[0]
        text = re.sub(r'^[ \t]*#[ \t]*include[ \t]*[<"][^>"\n]*[>"]', include, text, flags=re.M)
        self.templates |= set(re.findall(r'\btemplate\s*<[^;{}]*?>\s*(?:static\s+)?__global__[^;{}()]*?(?:\([^()]*\)[^;{}()]*?)??(\w+)\s*\(', blank(text)))
        text = re.sub(r'\bextern\s+"C"\s+(?=__global__)|\b(?:static|inline)\s+(?=__global__)|(?<=__global__)\s+(?:static|inline)\b', '', text)
        code = blank(text)
        text = replace(text, [(m.start(), m.end(), '__attribute__((noinline))') for m in re.finditer(r'\b__noinline__\b', code)])
        code = blank(text)
        text = replace(text, [(m.start(), m.end(), '__attribute__((unused)) static int assay_main_of_the_file(') for m in re.finditer(r'(?<!\w)int\s+main\s*\(', code)])
        text = launches(path, ptx(shared(path, text)), self.templates)
        return f'#line 1 "{path}"\n' + text


def main(source, output):
    translation = Translation(output)
    result = '#include <as_nvcc_begins.h>\n' + translation.translate(pathlib.Path(source))
    output = pathlib.Path(output)
    output.write_text(result, errors='surrogateescape')
    files = ' '.join(str(f).replace(' ', '\\ ') for f in [source, *translation.read])
    pathlib.Path(str(output) + '.d').write_text(f'{output}: {files}\n')


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit('cuda_host.py FILE.cu OUTPUT.cpp')
    main(*sys.argv[1:])

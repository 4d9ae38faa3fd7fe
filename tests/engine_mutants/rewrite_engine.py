#!/usr/bin/env python3
"""Rewrites the engine's sources so that one compilation of a file holds all of its mutants.

    rewrite_engine.py ROOT OUT FILES...        writes OUT/<file> for each, and OUT/mutants.json

The sites are those of falsify/mutation/source/rewrite.py, without the variants that lower precision, which are faults of
kernels. by_hand.py adds faults that no operator makes. Code that kills processes or removes files is not mutated.
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'falsify', 'mutation', 'source'))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'falsify', 'mutation'))
sys.path.insert(0, HERE)
import rewrite as schemata  # noqa: E402
from by_hand import BY_HAND  # noqa: E402
from faults import pattern_of  # noqa: E402

LEFT_OUT = {'bfloat16', 'half', 'duplicate', 'subgroup', 'barrier'}
DANGEROUS = re.compile(r'\b(kill|waitpid|waitid|fork|prctl|setrlimit|remove|remove_all|rename|setpgid|close_range|mmap|munmap)\(')


class File(schemata.File):
    """A source of the engine, with its mutants from by_hand.py."""

    FROZEN = ('KernelRegistration', 'consteval')

    def __init__(self, path, text, base, excluded=()):
        self.by_hand, self.ranges = [], []
        original = text
        for number, (name, file, before, after, says) in enumerate(BY_HAND, 1):
            if file != path:
                continue
            pattern = pattern_of(before)
            found = list(pattern.finditer(text))
            if len(found) != 1:
                raise SystemExit(f'by_hand.py: {name}: {path} holds {before!r} {len(found)} times: change the entry')
            if 'MUTANT' not in after:
                raise SystemExit(f'by_hand.py: {name}: what it becomes needs MUTANT')
            at, end = found[0].span()
            after = after.replace('MUTANT', f'(::assay_mutate::variant({number}U, 2U) == 1)')
            after = ' '.join(after.split()).replace(' ', '\n' * found[0][0].count('\n') + ' ', 1)  # lines behind keep their numbers
            longer = len(after) - (end - at)
            self.ranges = [(a + (longer if a > at else 0), b + (longer if a > at else 0)) for a, b in self.ranges]
            self.ranges.append((at, at + len(after)))
            text = text[:at] + after + text[end:]
            self.by_hand.append({'site': number, 'variant': 1, 'family': 'by hand', 'line': original[:pattern.search(original).start()].count('\n') + 1,
                                 'says': says, 'name': name})
        self.original_lines = original.split('\n')
        super().__init__(path, text, base, excluded)

    def find_mutable(self):
        super().find_mutable()
        lines = self.text.split('\n')
        for i, t in enumerate(self.tokens):
            if any(a <= t.at < b for a, b in self.ranges) or DANGEROUS.search(lines[t.line - 1]):
                self.mutable[i] = False

    def brace_kind(self, i, within=None):
        if within is not None:
            words = [t.text for t in self.tokens[self.statement_start(i):i]]
            around = self.tokens[self.enclosing(i)].text if i else ''
            if 'requires' in words and ';' not in words or words[-1:] == [':'] and around == '(':  # `for (x : {1, 2})`
                return 'list'
        return super().brace_kind(i, within)

    def is_declaration(self, start):
        i = start
        while i + 1 < len(self.tokens) and self.tokens[i].text not in (';', '=', '(', '{', '['):
            if self.tokens[i].text == '<' and i in self.partner and not self.tokens[i].spaced[1]:
                i = self.partner[i]
                if self.tokens[i + 1].kind == 'name':  # `std::vector<std::vector<float>> values`
                    return True
            i += 1
        return super().is_declaration(start)

    def site(self, token, variants):
        kept = [v for v in variants if v[1] not in LEFT_OUT]
        return super().site(token, kept) if kept else None

    def manifest(self):
        self.lines = self.original_lines
        automatic = [{**m, 'name': m['hash']} for m in super().manifest()]
        for m in automatic:
            del m['hash'], m['held_out']
        return self.by_hand + automatic


def main():
    root, out, files = sys.argv[1], sys.argv[2], sorted(sys.argv[3:])
    unknown = {file for _, file, *_ in BY_HAND} - set(files)
    if unknown:
        raise SystemExit(f'by_hand.py: {sorted(unknown)} are not rewritten: add them to CMakeLists.txt')
    manifest = []
    for number, path in enumerate(files):
        with open(os.path.join(root, path)) as f:
            file = File(path, f.read(), (number + 1) * schemata.SITES)
        schemata.write_if_changed(os.path.join(out, path), file.rewritten())
        manifest.append({'file': path, 'base': file.base, 'mutants': file.manifest()})
    schemata.write_if_changed(os.path.join(out, 'mutants.json'), json.dumps(manifest, indent=0))


if __name__ == '__main__':
    main()

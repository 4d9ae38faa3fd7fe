#!/usr/bin/env python3
"""Rewrites kernel sources so that one compilation of a file holds all of its mutants (mutate.hpp).

    rewrite.py ROOT OUT FILES...        writes OUT/<file> for each, and OUT/mutants.json

Code is mutable inside function bodies only; registrations of kernels, constant expressions, template arguments and
preprocessor lines are not mutated. The lexer relies on clang-format: a binary operator has spaces on both sides; a
template bracket, a pointer or a sign does not. Line numbers are kept, so that a compiler's messages name the line of
the source.
"""
import hashlib
import json
import os
import re
import sys

SITES = 4096  # of a file, at most
TOKEN = re.compile(
    r'(?P<space>\s+)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')'
    r'|(?P<number>(?:0[xX][0-9a-fA-F.\']+(?:[pP][+-]?\d+)?|\d[\d\']*\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[a-zA-Z]*)'
    r'|(?P<name>[A-Za-z_]\w*)|(?P<op><<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[{}()\[\];:,.<>=+\-*/%&|^!~?#@\\])',
    re.S)

INFIX = {  # token: (tag, family of 1 and 2, [(variant, family, description)])
    '+': ('Plus', [(1, 'arithmetic', '+ -> -'), (2, 'arithmetic', '+ -> *')]),
    '-': ('Minus', [(1, 'arithmetic', '- -> +'), (7, 'operand-order', 'operands of - exchanged')]),
    '*': ('Times', [(1, 'arithmetic', '* -> +'), (2, 'arithmetic', '* -> /')]),
    '/': ('Over', [(1, 'arithmetic', '/ -> *'), (2, 'arithmetic', '/ -> %'), (7, 'operand-order', 'operands of / exchanged')]),
    '%': ('Modulo', [(1, 'arithmetic', '% -> /')]),
    '&': ('BitAnd', [(1, 'arithmetic', '& -> |'), (2, 'arithmetic', '& -> ^')]),
    '|': ('BitOr', [(1, 'arithmetic', '| -> &')]),
    '^': ('BitXor', [(1, 'arithmetic', '^ -> |'), (2, 'arithmetic', '^ -> &')]),
    '<<': ('ShiftLeft', [(1, 'arithmetic', '<< -> >>')]),
    '>>': ('ShiftRight', [(1, 'arithmetic', '>> -> <<')]),
}
for token, (tag, rows) in INFIX.items():
    rows.append((3, 'bfloat16', f'result of {token} cut to bfloat16'))
    rows.append((6, 'half', f'result of {token} rounded to binary16'))
    rows.append((4, 'duplicate', f'left operand of {token} in both places'))
    rows.append((5, 'duplicate', f'right operand of {token} in both places'))
COMPARE = {'<': ('Less', '<=', '>=', '>'), '<=': ('LessEqual', '<', '>', '>='), '>': ('Greater', '>=', '<=', '<'),
           '>=': ('GreaterEqual', '>', '<', '<='), '==': ('Equal', None, '!=', None), '!=': ('NotEqual', None, '==', None)}
ASSIGN = {'+=': ('PlusAssign', '-='), '-=': ('MinusAssign', '+='), '*=': ('TimesAssign', '+='), '/=': ('OverAssign', '*='),
          '|=': ('OrAssign', '&='), '&=': ('AndAssign', '|='), '^=': ('XorAssign', '|='), '<<=': ('ShiftLeftAssign', '>>='),
          '>>=': ('ShiftRightAssign', '<<=')}
HELD_OUT = {'bfloat16', 'duplicate'}

BF16 = 'assay_mutate::bfloat16({})'
HALF = 'assay_mutate::half({})'
# Highway vectors, by the macros of mutate.hpp: keep the float bits of a bfloat16, or as many as a binary16 has.
VECTOR_BF16, VECTOR_HALF = 'ASSAY_KEEP_BITS({}, 0xffff0000U)', 'ASSAY_KEEP_BITS({}, 0xffffe000U)'
CALLS = {  # function: (operands, is a vector of floats or a number, [(family, description, what runs instead)])
    'hn::Add': (2, VECTOR_BF16, [('arithmetic', 'Add -> Sub', 'hn::Sub(x, y)'), ('duplicate', 'Add(x, x)', 'hn::Add(x, x)'), ('duplicate', 'Add(y, y)', 'hn::Add(y, y)')]),
    'hn::Sub': (2, VECTOR_BF16, [('arithmetic', 'Sub -> Add', 'hn::Add(x, y)'), ('operand-order', 'operands of Sub exchanged', 'hn::Sub(y, x)'),
                                 ('duplicate', 'Sub(x, x)', 'hn::Sub(x, x)')]),
    'hn::Mul': (2, VECTOR_BF16, [('arithmetic', 'Mul -> Add', 'hn::Add(x, y)'), ('duplicate', 'Mul(x, x)', 'hn::Mul(x, x)'), ('duplicate', 'Mul(y, y)', 'hn::Mul(y, y)')]),
    'hn::Div': (2, VECTOR_BF16, [('arithmetic', 'Div -> Mul', 'hn::Mul(x, y)'), ('operand-order', 'operands of Div exchanged', 'hn::Div(y, x)'),
                                 ('duplicate', 'Div(x, x)', 'hn::Div(x, x)')]),
    'hn::Max': (2, None, [('function', 'Max -> Min', 'hn::Min(x, y)')]),
    'hn::Min': (2, None, [('function', 'Min -> Max', 'hn::Max(x, y)')]),
    'hn::MulAdd': (3, VECTOR_BF16, [('fma', 'addend of MulAdd dropped', 'hn::Mul(x, y)'), ('arithmetic', 'MulAdd -> NegMulAdd', 'hn::NegMulAdd(x, y, z)'),
                                    ('fma', 'product of MulAdd dropped', 'z'), ('duplicate', 'MulAdd(x, x, z)', 'hn::MulAdd(x, x, z)'),
                                    ('duplicate', 'MulAdd(y, y, z)', 'hn::MulAdd(y, y, z)')]),
    'hn::NegMulAdd': (3, VECTOR_BF16, [('arithmetic', 'NegMulAdd -> MulAdd', 'hn::MulAdd(x, y, z)'), ('fma', 'product of NegMulAdd dropped', 'z')]),
    'hn::MulSub': (3, VECTOR_BF16, [('arithmetic', 'MulSub -> MulAdd', 'hn::MulAdd(x, y, z)'), ('fma', 'subtrahend of MulSub dropped', 'hn::Mul(x, y)')]),
    'hn::Lt': (2, None, [('comparison', 'Lt -> Le', '!hn::Le(x, y)'), ('comparison', 'operands of Lt exchanged', 'hn::Lt(y, x)')]),
    'hn::Gt': (2, None, [('comparison', 'Gt -> Ge', '!hn::Ge(x, y)'), ('comparison', 'operands of Gt exchanged', 'hn::Gt(y, x)')]),
    'hn::Le': (2, None, [('comparison', 'Le -> Lt', '!hn::Lt(x, y)'), ('comparison', 'operands of Le exchanged', 'hn::Le(y, x)')]),
    'hn::Ge': (2, None, [('comparison', 'Ge -> Gt', '!hn::Gt(x, y)'), ('comparison', 'operands of Ge exchanged', 'hn::Ge(y, x)')]),
    'hn::Eq': (2, None, [('comparison', 'Eq -> Ne', 'hn::Ne(x, y)')]),
    'hn::Ne': (2, None, [('comparison', 'Ne -> Eq', 'hn::Eq(x, y)')]),
    'hn::And': (2, None, [('arithmetic', 'And -> Or', 'hn::Or(x, y)')]),
    'hn::Or': (2, None, [('arithmetic', 'Or -> And', 'hn::And(x, y)')]),
    'hn::Xor': (2, None, [('arithmetic', 'Xor -> Or', 'hn::Or(x, y)')]),
    'hn::IfThenElse': (3, None, [('select', 'alternatives of IfThenElse exchanged', 'hn::IfThenElse(x, z, y)'), ('select', 'IfThenElse always its first', 'y'),
                                 ('select', 'IfThenElse always its second', 'z')]),
    'hn::IfThenElseZero': (2, None, [('select', 'IfThenElseZero -> IfThenZeroElse', 'hn::IfThenZeroElse(x, y)')]),
    'hn::IfThenZeroElse': (2, None, [('select', 'IfThenZeroElse -> IfThenElseZero', 'hn::IfThenElseZero(x, y)')]),
    'hn::FirstN': (2, None, [('loop', 'FirstN(n - 1)', 'hn::FirstN(x, y - 1)'), ('loop', 'FirstN(n + 1)', 'hn::FirstN(x, y + 1)')]),
    'hn::Sqrt': (1, VECTOR_BF16, [('function', 'Sqrt left out', 'x')]),
    'hn::Abs': (1, None, [('function', 'Abs left out', 'x')]),
    'hn::Neg': (1, None, [('arithmetic', 'Neg left out', 'x')]),
    'hn::Floor': (1, None, [('function', 'Floor -> Ceil', 'hn::Ceil(x)')]),
    'hn::Ceil': (1, None, [('function', 'Ceil -> Floor', 'hn::Floor(x)')]),
    'hn::Round': (1, None, [('function', 'Round -> Trunc', 'hn::Trunc(x)')]),
    'hn::SumOfLanes': (2, VECTOR_BF16, [('subgroup', 'SumOfLanes left out', 'y'), ('subgroup', 'SumOfLanes -> MaxOfLanes', 'hn::MaxOfLanes(x, y)')]),
    'hn::MaxOfLanes': (2, None, [('subgroup', 'MaxOfLanes left out', 'y'), ('subgroup', 'MaxOfLanes -> MinOfLanes', 'hn::MinOfLanes(x, y)')]),
    'hn::Exp': (2, VECTOR_BF16, [('function', 'Exp left out', 'y')]),
    'hn::Log': (2, VECTOR_BF16, [('function', 'Log left out', 'y')]),
}
for name, other in (('std::max', 'std::min'), ('std::min', 'std::max'), ('fmaxf', 'fminf'), ('fminf', 'fmaxf'), ('max', 'min'), ('min', 'max')):
    CALLS[name] = (2, None, [('function', f'{name} -> {other}', f'{other}<>(x, y)')])
for name, other in (('std::sqrt', 'x'), ('sqrtf', 'x'), ('std::exp', 'std::exp2(x)'), ('expf', 'std::exp2(x)'), ('std::log', 'std::log2(x)'), ('logf', 'std::log2(x)'),
                    ('std::log1p', 'std::log(x)'), ('log1pf', 'std::log(x)'), ('std::expm1', 'std::exp(x)'), ('std::exp2', 'std::exp(x)'), ('exp2f', 'std::exp(x)'),
                    ('std::sin', 'std::cos(x)'), ('std::cos', 'std::sin(x)'), ('sinf', 'std::cos(x)'), ('cosf', 'std::sin(x)'), ('rsqrtf', 'std::sqrt(x)'),
                    ('std::abs', 'x'), ('std::fabs', 'x'), ('fabsf', 'x'), ('std::floor', 'std::ceil(x)'), ('floorf', 'std::ceil(x)'), ('std::ceil', 'std::floor(x)'),
                    ('std::nearbyint', 'std::trunc(x)'), ('rintf', 'std::trunc(x)'), ('std::trunc', 'std::floor(x)')):
    CALLS[name] = (1, BF16, [('function', f'{name} -> {other}' if other != 'x' else f'{name} left out', other)])
for name in ('std::fma', 'fmaf'):
    CALLS[name] = (3, BF16, [('fma', 'addend of fma dropped', 'x * y'), ('fma', 'product of fma dropped', 'z'), ('duplicate', 'fma(x, x, z)', f'{name}(x, x, z)')])
for name in ('__shfl_xor_sync', '__shfl_down_sync', '__shfl_up_sync', '__shfl_sync'):
    CALLS[name] = (3, None, [('subgroup', f'{name} left out: each lane keeps its own value', 'y')])
INDEX = re.compile(r'^([bcghijkpqr]|row|column|place|head|position)$')
KEYWORDS = {'if', 'for', 'while', 'switch', 'return', 'sizeof', 'catch', 'alignas', 'decltype', 'noexcept', 'static_assert', 'constexpr', 'requires',
            'else', 'do', 'case', 'default', 'goto', 'throw', 'new', 'delete', 'operator', 'typedef', 'using', 'template', 'typename', 'co_return'}
TYPES = {'const', 'auto', 'static', 'constexpr', 'float', 'double', 'int', 'unsigned', 'bool', 'char', 'long', 'short', 'Index', 'struct', 'class', 'union', 'enum', 'void',
         'extern', 'volatile', 'inline', 'thread_local', 'friend', 'namespace', 'public', 'private', 'protected'}


class Token:
    __slots__ = ('kind', 'text', 'at', 'line', 'spaced', 'new')

    def __init__(self, kind, text, at, line):
        self.kind, self.text, self.at, self.line = kind, text, at, line
        self.spaced = [False, False]
        self.new = None


def lex(text):
    """Returns tokens without comments and preprocessor lines; `spaced` marks the sides with space."""
    tokens, at, line, skipping = [], 0, 1, []
    space_before, start_of_line = True, True
    while at < len(text):
        if start_of_line:
            m = re.compile(r'[ \t]*#(?:[^\n\\]|\\\n|\\.)*').match(text, at)
            if m:
                directive = m.group().lstrip(' \t#')
                if directive.startswith('if'):
                    skipping.append('__CUDACC__' in directive and not directive.startswith('ifndef') and '!defined' not in directive)
                elif directive.startswith(('else', 'elif')) and skipping:
                    skipping[-1] = not skipping[-1] and '!defined(__CUDACC__)' in skipping
                elif directive.startswith('endif') and skipping:
                    skipping.pop()
                line += m.group().count('\n')
                at, space_before = m.end(), True
                continue
        m = TOKEN.match(text, at)
        if not m:
            raise SystemExit(f'rewrite.py: line {line} cannot be read: {text[at:at + 20]!r}')
        start_of_line = False
        if m.group('space') or m.group('comment'):
            if tokens:
                tokens[-1].spaced[1] = True
            space_before = True
            start_of_line = '\n' in m.group()
        elif not any(s is True for s in skipping):
            kind = 'string' if m.group('string') else m.lastgroup if m.lastgroup != 'd' else 'string'
            token = Token(kind, m.group(), at, line)
            token.spaced[0] = space_before
            tokens.append(token)
            space_before = False
        line += m.group().count('\n')
        at = m.end()
    return tokens


class File:
    """One source: its mutable places, and its text with every such place rewritten."""

    FROZEN = ('Kernel', 'KernelRegistration', 'consteval')  # functions whose signatures name these are not mutated

    def __init__(self, path, text, base, excluded=()):
        self.path, self.text, self.base, self.excluded = path, text, base, set(excluded)
        self.lines = text.split('\n')
        self.tokens = lex(text)
        self.sites = []
        self.mutable = [False] * len(self.tokens)
        self.partner = {}
        self.kinds = {}
        self.in_for = [False] * len(self.tokens)
        self.match_brackets()
        self.find_mutable()
        self.before, self.after, self.replaced = {}, {}, {}
        self.walk()

    # -- structure ------------------------------------------------------------------------------------------------
    def match_brackets(self):
        stack = []
        for i, t in enumerate(self.tokens):
            if t.kind != 'op':
                continue
            if t.text in '([{':
                stack.append(i)
            elif t.text in ')]}':
                j = stack.pop()
                self.partner[i], self.partner[j] = j, i
        angle = []
        for i, t in enumerate(self.tokens):
            if t.text == '<' and t.kind == 'op' and not (t.spaced[0] and t.spaced[1]):
                angle.append(i)
            elif t.text in ('>', '>>') and angle and not (t.spaced[0] and t.spaced[1]):
                for _ in t.text:
                    if angle:
                        j = angle.pop()
                        self.partner[j] = i
                        self.partner.setdefault(i, j)
            elif t.text in (';', '{') and angle and t.text == ';':
                angle.clear()

    def statement_start(self, i):
        """Returns the index of the first token of the statement or declaration with token i."""
        j = i - 1
        while j >= 0:
            text = self.tokens[j].text
            if self.tokens[j].kind == 'op':
                if text in ')]' and j in self.partner:
                    j = self.partner[j] - 1
                    continue
                if text in ';{}' or text == '(':
                    break
                if text == ':' and j > 0 and self.tokens[j - 1].text in ('public', 'private', 'protected', 'default'):
                    break
            j -= 1
        return j + 1

    def brace_kind(self, i, within=None):
        if within is None:
            return self.kinds[i]
        start = self.statement_start(i)
        words = [t.text for t in self.tokens[start:i]]
        if 'namespace' in words:
            return 'namespace'
        previous = self.tokens[i - 1].text if i else ''
        head = words[:]
        if head[:1] == ['template'] and start + 1 in self.partner:
            head = words[self.partner[start + 1] - start + 1:]
        if any(w in ('struct', 'class', 'union', 'enum') for w in head[:3]) and '(' not in head[:1] and previous != ')':
            return 'type'
        if self.tokens[i + 1].text == '.':
            return 'list'
        if previous in (';', '{', '}') and within == 'list':
            return 'list'
        if previous == ')' or previous in ('else', 'do', 'try', 'const', 'noexcept', 'HWY_ATTR', 'mutable', 'override') or previous in (';', '{', '}', ':'):
            # The sources have no `Type name(args){`; a constructor's initializers end with `)` too.
            return 'block'
        if '->' in words[-6:]:
            return 'block'
        if previous == ']':  # a lambda without parameters
            return 'block' if self.tokens[self.partner[i - 1] - 1].text in ('(', ',', '=', 'return', '{') else 'list'
        return 'list'

    def find_mutable(self):
        kinds, frozen = [], []
        skip_to = -1
        for i, t in enumerate(self.tokens):
            if t.kind == 'op' and t.text == '{':
                kind = self.kinds[i] = self.brace_kind(i, kinds[-1] if kinds else 'namespace')
                start = self.statement_start(i)
                words = [x.text for x in self.tokens[start:i]]
                outside = 'block' not in kinds
                freeze = frozen[-1] if frozen else False
                if kind == 'block' and outside:
                    # Freeze functions that register kernels or compute constants.
                    freeze = any(w in self.FROZEN for w in words[:12])
                elif kind == 'block':
                    freeze = False
                kinds.append(kind)
                frozen.append(freeze)
            elif t.kind == 'op' and t.text == '}':
                kinds.pop()
                frozen.pop()
            if i < skip_to or 'block' not in kinds or kinds.count('block') and frozen[-1]:
                continue
            # The innermost block decides, but a list at namespace scope has none.
            if i in self.partner and t.text == '<' and not (t.spaced[0] and t.spaced[1]):
                skip_to = self.partner[i] + 1
                continue
            if t.text in ('static_assert', 'alignas', 'decltype', 'sizeof', 'noexcept', 'requires', 'HWY_ALIGN', '__attribute__') or t.text.startswith(('ASSAY_', 'HWY_')):
                if i + 1 < len(self.tokens) and self.tokens[i + 1].text == '(':
                    skip_to = self.partner[i + 1] + 1
                    continue
            if t.text == 'if' and self.tokens[i + 1].text == 'constexpr':
                skip_to = self.partner[i + 2] + 1
                continue
            if t.text in ('constexpr', 'using', 'enum', 'typedef', 'case', 'asm', 'goto') and self.tokens[i - 1].text != 'if':
                j = i
                while self.tokens[j].text != ';' and not (t.text == 'case' and self.tokens[j].text == ':'):
                    j = self.partner[j] if j in self.partner and self.partner[j] > j and self.tokens[j].text != '<' else j
                    j += 1
                skip_to = j + 1
                continue
            if t.text == 'for' and self.tokens[i + 1].text == '(':
                for j in range(i + 1, self.partner[i + 1]):
                    self.in_for[j] = True
            self.mutable[i] = True
        # Extents of arrays: `float x[4]`.
        for i, t in enumerate(self.tokens):
            if t.text == '[' and t.kind == 'op' and i in self.partner and i > 1 and self.tokens[i - 1].kind == 'name':
                before = self.tokens[i - 2]
                j = i - 2
                declares = (before.kind == 'name' and before.text not in KEYWORDS) or before.text == '>' and not before.spaced[0] or before.text in ('*', '&') and not before.spaced[0]
                if before.text == ',':  # `float x[4], y[4]`
                    start = self.statement_start(i)
                    declares = self.is_declaration(start)
                if declares:
                    end = self.partner[i]
                    while True:
                        for k in range(i, end + 1):
                            self.mutable[k] = False
                        if end + 1 < len(self.tokens) and self.tokens[end + 1].text == '[':
                            i, end = end + 1, self.partner[end + 1]
                        else:
                            break

    def is_declaration(self, start):
        """True for a declaration: two names in a row, or a name after a template's or pointer's end."""
        tokens = self.tokens
        if tokens[start].text in TYPES:
            return True
        i, depth = start, 0
        while i < len(tokens) and tokens[i].text not in (';', '=', '(', '{', '['):
            if tokens[i].text == '<' and i in self.partner and not (tokens[i].spaced[0] and tokens[i].spaced[1]):
                i = self.partner[i]
            if i + 1 < len(tokens) and tokens[i + 1].kind == 'name' and tokens[i].text not in ('::', '.', '->', ','):
                if tokens[i].kind == 'name' or (tokens[i].text in ('*', '&', '>') and not tokens[i].spaced[0]):
                    return True
            i += 1
        return False

    # -- sites ----------------------------------------------------------------------------------------------------
    def site(self, token, variants):
        """Adds a site with [(variant, family, description)]; returns its number in the library."""
        number = len(self.sites)
        if number >= SITES:
            raise SystemExit(f'rewrite.py: {self.path} has more than {SITES} places to mutate')
        self.sites.append({'line': token.line, 'column': token.at - self.text.rfind('\n', 0, token.at), 'variants': variants})
        if number in self.excluded:
            return None
        return self.base + number

    def put_before(self, i, text):
        self.before[i] = self.before.get(i, '') + text

    def put_after(self, i, text):
        self.after[i] = text + self.after.get(i, '')

    def operand_end(self, i):
        """Returns the index of the last token of the chain of names, calls and subscripts that begins at i."""
        tokens = self.tokens
        while i + 1 < len(tokens):
            nxt = tokens[i + 1].text
            if nxt in ('(', '[') and not tokens[i + 1].spaced[0]:
                i = self.partner[i + 1]
            elif nxt in ('.', '->', '::'):
                i += 2
            elif nxt == '<' and i + 1 in self.partner and not tokens[i + 1].spaced[0] and not tokens[i + 1].spaced[1]:
                i = self.partner[i + 1]
            else:
                break
        return i

    def walk(self):
        tokens = self.tokens
        i = 0
        while i < len(tokens):
            if self.mutable[i]:
                i = self.visit(i) or i
            i += 1

    def visit(self, i):
        t, tokens = tokens_at(self, i)
        previous = tokens[i - 1]
        operand_before = previous.kind in ('number', 'name') and previous.text not in KEYWORDS or previous.text in (')', ']')
        binary = t.kind == 'op' and t.spaced[0] and t.spaced[1] and operand_before
        if self.begins_statement(i):
            self.statement(i)
        if binary and t.text in INFIX:
            tag, variants = INFIX[t.text]
            self.infix(i, tag, variants)
        elif binary and t.text in COMPARE:
            tag, boundary, negation, exchanged = COMPARE[t.text]
            loop = self.in_for[i] or self.in_while(i)
            variants = [(2, 'branch', f'{t.text} negated')]
            if boundary:
                variants += [(1, 'loop' if loop else 'comparison', f'{t.text} -> {boundary}')]
                variants += [(3, 'comparison', f'{t.text} -> {exchanged}')]
            if not loop and t.text not in ('==', '!='):
                variants += [(4, 'branch', f'{t.text} always true')]
            self.infix(i, tag, sorted(variants))
        elif t.kind == 'op' and t.text in ASSIGN and t.spaced[0] and t.spaced[1]:
            tag, other = ASSIGN[t.text]
            variants = [(1, 'arithmetic', f'{t.text} -> {other}'), (2, 'arithmetic', f'{t.text} -> ='), (4, 'bfloat16', f'result of {t.text} cut to bfloat16'),
                        (5, 'half', f'result of {t.text} rounded to binary16')]
            if self.in_for[i]:
                variants.append((3, 'loop', f'step {t.text} left out'))
            self.infix(i, tag, sorted(variants))
        elif t.kind == 'number':
            self.literal(i)
        elif t.text == '++' and tokens[i + 1].kind == 'name' and tokens[i + 2].text in (')', ',', ';'):
            site = self.site(t, [(1, 'loop', '++ by two'), (2, 'loop', '++ left out')])
            if site is not None:
                self.replaced[i] = f'::assay_mutate::increment({site}U, '
                self.put_after(i + 1, ')')
            return i + 1
        elif t.text in ('-', '!') and not operand_before and previous.text in ('(', ',', '=', 'return', '?', ':', '&&', '||', '{') and not t.spaced[1]:
            site = self.site(t, [(1, 'arithmetic' if t.text == '-' else 'branch', f'{t.text} left out')])
            if tokens[i + 1].kind == 'number':
                self.sites.pop()
            elif site is not None:
                self.replaced[i] = f'::assay_mutate::{"Negated" if t.text == "-" else "Not"}{{{site}U}} * '
        elif t.kind == 'name':
            return self.name(i)
        return None

    def infix(self, i, tag, variants):
        if self.same_operands(i):
            variants = [v for v in variants if v[1] not in ('duplicate', 'operand-order')]
        site = self.site(self.tokens[i], variants)
        if site is not None:
            text = self.tokens[i].text
            self.replaced[i] = f'{text} ::assay_mutate::{tag}{{{site}U}} {text}'

    def same_operands(self, i):
        """True for `x * x`: the same chain of names before and after token i, and no operator binds closer."""
        tokens, begin = self.tokens, i
        while begin > 0 and (tokens[begin - 1].kind in ('name', 'number') and tokens[begin - 1].text not in KEYWORDS or tokens[begin - 1].text in ('.', '->', '::')):
            begin -= 1
        left = ''.join(t.text for t in tokens[begin:i])
        end = self.operand_end(i + 1) if tokens[i + 1].kind == 'name' else i + 1
        return left == ''.join(t.text for t in tokens[i + 1:end + 1])

    def in_while(self, i):
        start = self.enclosing(i)
        return start > 0 and self.tokens[start - 1].text == 'while'

    def enclosing(self, i):
        j = i - 1
        while j > 0:
            if self.tokens[j].text in (')', ']', '}') and j in self.partner:
                j = self.partner[j]
            elif self.tokens[j].text in ('(', '[', '{'):
                return j
            j -= 1
        return 0

    def literal(self, i):
        t = self.tokens[i]
        real = not t.text.lower().startswith('0x') and re.search(r'[.eEfF]', t.text) or 'p' in t.text.lower()
        if real:
            value = float.fromhex(re.sub(r"[fFlL']", '', t.text)) if 'p' in t.text.lower() else float(re.sub(r"[fFlL']", '', t.text))
            variants = [(4, 'constant', f'{t.text} -> 1')] if value == 0 else [(1, 'constant', f'{t.text} a tenth more'), (2, 'constant', f'{t.text} a tenth less'),
                                                                              (3, 'constant', f'{t.text} negated')]
            kind = 'real'
        else:
            in_subscript = self.tokens[self.enclosing(i)].text == '['
            variants = [(1, 'index' if in_subscript else 'constant', f'{t.text} one more'), (2, 'index' if in_subscript else 'constant', f'{t.text} one less')]
            kind = 'integer'
        site = self.site(t, variants)
        if site is not None:
            self.replaced[i] = f'::assay_mutate::{kind}({site}U, {t.text})'

    def name(self, i):
        tokens = self.tokens
        t, previous = tokens[i], tokens[i - 1]
        if t.text in KEYWORDS or t.text in TYPES or previous.text in ('.', '->', '::'):
            return None
        # The whole chain a::b.c
        end = i
        while tokens[end + 1].text in ('::', '.', '->') and tokens[end + 2].kind == 'name':
            end += 2
        chain = ''.join(x.text for x in tokens[i:end + 1])
        after = end + 1
        explicit = ''
        if tokens[after].text == '<' and after in self.partner and not tokens[after].spaced[0] and not tokens[after].spaced[1]:
            explicit = self.text[tokens[after].at:tokens[self.partner[after]].at + 1]
            after = self.partner[after] + 1
        if tokens[after].text == '(' and not tokens[after].spaced[0]:
            if chain in CALLS and (not explicit or chain in ('std::max', 'std::min')):
                self.call(i, after, chain, explicit)
                return after - 1
            return self.subscripts(i, end, after)
        if explicit:
            return None
        # A condition that is a name.
        left, right = previous.text, tokens[after].text
        opens = left in ('&&', '||') or left == '(' and tokens[i - 2].text in ('if', 'while') or left in ('=', 'return', '(', ',') and right == '?'
        closes = right in ('&&', '||', '?') or right == ')' and (left in ('&&', '||') or tokens[i - 2].text in ('if', 'while'))
        if opens and closes:
            site = self.site(t, [(1, 'branch', f'{chain} negated')])
            if site is not None:
                self.put_before(i, f'::assay_mutate::truth({site}U, ')
                self.put_after(end, ')')
            return end
        return None

    def call(self, i, after, chain, explicit):
        operands, cut, rows = CALLS[chain]
        rows = list(rows)
        call = f"{chain}{explicit}({', '.join('xyz'[:operands])})"
        if cut in (VECTOR_BF16, BF16):
            rows.append(('bfloat16', f'result of {chain} cut to bfloat16', cut.format(call)))
            rows.append(('half', f'result of {chain} cut to the bits of binary16', (VECTOR_HALF if cut == VECTOR_BF16 else HALF).format(call)))
        variants = [(n + 1, family, says) for n, (family, says, _) in enumerate(rows)]
        commas = [k for k in range(after, self.partner[after]) if self.tokens[k].text == ',' and self.enclosing(k) == after]
        given = [''.join(t.text for t in self.tokens[a + 1:b]) for a, b in zip([after, *commas], [*commas, self.partner[after]])]
        if len(given) > 1 and given[0] == given[1]:
            variants = [v for v in variants if v[1] != 'duplicate']
        site = self.site(self.tokens[i], variants)
        if site is None:
            return
        variants = [(n + 1, family, says) for n, (family, says, _) in enumerate(rows)]
        arms = ''
        for n, (_, _, text) in enumerate(rows):
            text = text.replace('<>', explicit)
            # Integer vectors lack some comparisons.
            arms += f'case {n + 1}: ' + (f'if constexpr (ASSAY_FLOAT_VECTOR(x)) return {text[1:]}; else return {call}; ' if text[0] == '!' else f'return {text}; ')
        floats_only = {n + 1 for n, row in enumerate(rows) if row[2][0] == '!' or row[0] in ('half', 'bfloat16')}
        mask = sum(1 << n for n, _, _ in variants)
        if chain.startswith('hn::') and floats_only:
            vector = 'y' if chain in ('hn::SumOfLanes', 'hn::Exp', 'hn::Log') else 'x'
            mask = f'ASSAY_FLOAT_VECTOR({vector}) ? {mask}U : {sum(1 << n for n, _, _ in variants if n not in floats_only)}'
        parameters = ', '.join(f'const auto& {p}' for p in 'xyz'[:operands])
        unused = ''.join(f'static_cast<void>({p}); ' for p in 'xyz'[:operands])
        self.put_before(i, f'[&]({parameters}) {{ {unused}switch (::assay_mutate::variant({site}U, {mask}U)) {{ {arms}default: return {call}; }} }}')
        for j in range(i, after):
            self.replaced[j] = ''

    def subscripts(self, i, end, paren):
        """Mutates x(i, j): exchanges two simple indices, or uses the first twice."""
        tokens = self.tokens
        close = self.partner[paren]
        inner = tokens[paren + 1:close]
        if len(inner) < 3 or len(inner) % 2 == 0 or any(x.text != ',' for x in inner[1::2]):
            return None
        names = [x.text for x in inner[0::2]]
        if not (INDEX.match(names[0]) and INDEX.match(names[1]) and names[0] != names[1]):
            return None
        if tokens[i - 1].kind == 'name' and tokens[i - 1].text not in KEYWORDS or tokens[i - 1].text in ('*', '&', '>') and not tokens[i - 1].spaced[0]:
            return None  # a declaration
        if tokens[close + 1].text in ('{', '->'):
            return None
        chain = self.text[tokens[i].at:tokens[paren].at]
        if '::' in chain:
            return None
        rest = ''.join(', ' + n for n in names[2:])
        site = self.site(tokens[i], [(1, 'index', f'{names[0]} and {names[1]} exchanged'), (2, 'duplicate', f'{names[0]} in the place of {names[1]}')])
        if site is None:
            return close
        a, b = names[0], names[1]
        v = f'::assay_mutate::variant({site}U, 6U)'
        self.put_before(i, f'({v} == 0 ? ')
        self.put_after(close, f' : {v} == 1 ? {chain}({b}, {a}{rest}) : {chain}({a}, {a}{rest}))')
        return close

    def begins_statement(self, i):
        previous = self.tokens[i - 1]
        if self.tokens[i].kind not in ('name', 'op') or self.tokens[i].text in ('{', '}', ';', ')'):
            return False
        if previous.text in (';', '{', '}'):
            j = self.enclosing(i)
            ended = previous.text != '}' or self.brace_kind(self.partner[i - 1]) == 'block'
            return ended and self.tokens[j].text == '{' and self.brace_kind(j) == 'block'
        if previous.text == 'else' and self.tokens[i].text != 'if':
            return True
        if previous.text == ')' and i - 1 in self.partner:
            j = self.partner[i - 1]
            return self.tokens[j - 1].text in ('if', 'for', 'while') or self.tokens[j - 1].text == 'constexpr'
        return False

    def statement(self, i):
        tokens = self.tokens
        first = tokens[i].text
        end = i
        while tokens[end].text != ';':
            if tokens[end].text == '{' and self.brace_kind(end) == 'block' and tokens[end - 1].text != ')':
                return
            if tokens[end].text in '([{' and end in self.partner:
                end = self.partner[end]
            end += 1
            if end >= len(tokens):
                return
        words = [t.text for t in tokens[i:end]]
        if first in ('continue', 'break') or words == ['return']:
            family, says = 'branch', f'{first} left out'
        elif first in KEYWORDS or first in TYPES or first.startswith(('ASSAY_', 'HWY_')) or self.is_declaration(i):
            return
        else:
            depth_assign, j = None, i
            while j < end:
                if tokens[j].text in ('(', '[', '{') and j in self.partner:
                    j = self.partner[j]
                elif tokens[j].text == '=' or tokens[j].text in ASSIGN:
                    depth_assign = j
                    break
                j += 1
            if depth_assign is None and words[-1] != ')':
                return
            if 'sync' in first and first.startswith('__sync') or first in ('__syncwarp',):
                family, says = 'barrier', f'{first} left out'
            elif depth_assign is None:
                family, says = 'store', f'call of {"".join(words[:words.index("(")]) if "(" in words else first} left out'
            else:
                family, says = 'store', f"assignment to {''.join(words[:depth_assign - i])} left out"
        site = self.site(tokens[i], [(1, family, says)])
        if site is not None:
            self.put_before(i, f'{{ if (::assay_mutate::runs_in_constant({site}U)) ')
            self.put_after(end, ' }')

    # -- results --------------------------------------------------------------------------------------------------
    def rewritten(self):
        out, at = [], 0
        for i, t in enumerate(self.tokens):
            out.append(self.text[at:t.at])
            out.append(self.before.get(i, ''))
            out.append(self.replaced.get(i, t.text))
            if i in self.replaced and '\n' in t.text:
                out.append('\n' * t.text.count('\n'))
            out.append(self.after.get(i, ''))
            at = t.at + len(t.text)
        out.append(self.text[at:])
        return ''.join(out)

    def manifest(self):
        """Returns every mutant: its number in the library, family, description, and a name independent of other lines."""
        found, seen = [], {}
        for n, site in enumerate(self.sites):
            line = self.lines[site['line'] - 1].strip()
            key = (line, site['column'] - (len(self.lines[site['line'] - 1]) - len(self.lines[site['line'] - 1].lstrip())))
            seen[key] = seen.get(key, 0) + 1
            for variant, family, says in site['variants']:
                name = hashlib.sha256('\0'.join([self.path, line, str(key[1]), str(seen[key]), says]).encode()).hexdigest()[:16]
                found.append({'site': self.base + n, 'variant': variant, 'family': family, 'held_out': family in HELD_OUT, 'line': site['line'],
                              'says': f'{says}: {line}', 'hash': name})
        return found


def tokens_at(file, i):
    return file.tokens[i], file.tokens


def write_if_changed(path, text):
    if os.path.exists(path):
        with open(path) as f:
            if f.read() == text:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f:
        f.write(text)


def main():
    root, out, files = sys.argv[1], sys.argv[2], sorted(sys.argv[3:])
    manifest = []
    for number, path in enumerate(files):
        with open(os.path.join(root, path)) as f:
            file = File(path, f.read(), (number + 1) * SITES)
        write_if_changed(os.path.join(out, path), file.rewritten())
        manifest.append({'file': path, 'base': file.base, 'mutants': file.manifest()})
    write_if_changed(os.path.join(out, 'mutants.json'), json.dumps(manifest, indent=0))


if __name__ == '__main__':
    main()

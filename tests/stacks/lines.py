#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the line tables of two functions, compiled by this interpreter, as rows of ../unit/python_lines.h, with the interpreter's
own line for each instruction. 3.8 and 3.9 share a format, 3.11 and later another."""
import dis
import sys

SOURCE = '''
def pieces(a,
           b):
    x = [a, (
        b), a,
         b]
    try:
        with a as c:
            x = (b +
                 a(
                   c) +
                 b)
    except (ValueError,
            KeyError) as e:
        raise
    finally:
        return [y for y in x
                if y
                and
                a]
def far(a):
    b = 1
%s
    %s
%s
    for c in (a,
       b):
        del c
    return (b,
%s
 a
)
''' % ('\n' * 300, 'b = a; ' * (140 if sys.version_info < (3, 11) else 5), '\n' * 150, '\n' * 140)


def lines_of(code):
    """Returns (offset, line) where the line changes; 0: none."""
    if sys.version_info >= (3, 10):
        points = [(start, line or 0) for start, _, line in code.co_lines()]
    else:
        points = list(dis.findlinestarts(code))
    lines = []
    for point in points:
        if not lines or lines[-1][1] != point[1]:
            lines.append(point)
    return lines


def main():
    scope = {}
    exec(compile(SOURCE, 'f', 'exec'), scope)
    for name in ('pieces', 'far'):
        code = scope[name].__code__
        table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
        print('\t{')
        print('\t\t"%s() of CPython %d.%d.%d", %d, %d, %d, %d,' % (
            name, *sys.version_info[:3], sys.version_info[1], code.co_firstlineno, len(code.co_code), len(table)))
        for at in range(0, len(table), 28):
            print('\t\t"%s"' % ''.join('\\x%02x' % byte for byte in table[at:at + 28]))
        print('\t\t,\n\t\t{%s}' % ', '.join('{%d, %d}' % line for line in lines_of(code)))
        print('\t},')


main()

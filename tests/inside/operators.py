#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the operators of MXNet's own profile, taken without bulks, with mxbpf's operators in a run with bulks.

  operators.py BUILTIN.json MXBPF.json

MXNet shows a segment as one operator, "A,B" or "[A,B]": it counts as one A and one B. The engine's own operators (DeleteVariable
and its like) depend on what it runs as one operation, so they are not compared. Exit 0: equal; 1: different.
"""
import collections
import json
import sys

ENGINE_OWN = ('DeleteVariable', 'DeleteOperator', 'WaitForVar', '[unnamed]')


def parts(name):
    return [part for part in name.strip('[]').split(',') if part] if ',' in name or name[0] == '[' else [name]


def of_builtin(path):
    with open(path) as f:
        rows = json.load(f)['Time']['operator']
    found = collections.Counter()
    for name, row in rows.items():
        for part in parts(name):
            found[part] += row['Count']
    return found


def of_mxbpf(path):
    with open(path) as f:
        rows = json.load(f)['tables']['operator']
    bulks = sum(row['count'] for row in rows if row['name'] == 'ImperativeBulk')
    inside = sum(row.get('in_segments', 0) for row in rows)
    # Each operator has a row of its own, which includes those in bulks and segments.
    return collections.Counter({row['name']: row['count'] for row in rows
                                if row['name'] != 'ImperativeBulk' and parts(row['name']) == [row['name']]}), bulks, inside


def main():
    a, (b, bulks, inside) = of_builtin(sys.argv[1]), of_mxbpf(sys.argv[2])
    wrong = [name for name in sorted(set(a) | set(b)) if name not in ENGINE_OWN and a[name] != b[name]]
    for name in wrong:
        print('%-40s %6d without bulks, %6d with' % (name, a[name], b[name]))
    print('%d operators in %d rows; %d bulks, %d operators in segments' % (sum(b.values()), len(b), bulks, inside))
    return bool(wrong) or not bulks or not inside


sys.exit(main())

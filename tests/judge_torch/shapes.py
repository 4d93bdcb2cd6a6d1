# SPDX-License-Identifier: Apache-2.0
"""Compares rows by shape with torch.profiler's key_averages(group_by_input_shape=True) of the same program. Exit 0 if none differs.

  shapes.py SHAPED REPORT

SHAPED is the file of `prog.py PROGRAM --builtin SHAPED --shapes`, REPORT that of `mxbpf --shapes --by shape --format json`
for the program. REPORT has lists of tensors, which torch's tables do not show.
"""
import collections
import json
import sys

import compare


def builtin_rows(path):
    rows = collections.Counter()
    with open(path) as f:
        for name, shapes, count in json.load(f)['by_shape']:
            rows[name, shapes] += count
    return rows


def as_torch(shapes):
    return [[] if shape and isinstance(shape[0], list) else shape for shape in shapes]


def main():
    want = builtin_rows(sys.argv[1])
    with open(sys.argv[2]) as f:
        report = json.load(f)
    got = collections.Counter()
    for row in report['tables']['operator']:
        got[row['name'], str(as_torch(row['shapes']))] += row['count']
    wrong = [key for key in sorted(set(want) | set(got)) if want[key] != got[key] and not (compare.unseen(key[0]) and not got[key])]
    for name, shapes in wrong:
        print('%-50s %-80s torch.profiler %d, mxbpf %d' % (name, shapes, want[name, shapes], got[name, shapes]))
    if not wrong:
        print('equal: %d rows of %d names' % (len(got), len({name for name, _ in got})))
    return bool(wrong)


sys.exit(main())

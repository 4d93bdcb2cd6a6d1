#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the table of features in docs/mxnet.md by MXNet version, from the results of compare.py.

  table.py CELLS.json...                    prints it
  table.py --check PAGE.md CELLS.json...  exit 1, and prints the right table, if the page has another one
"""
import argparse
import json
import sys

ORDER = ('1.5.1.post0', 'mkl-1.6.0', '1.6.0', '1.7.0.post2', '1.8.0.post0', '1.9.1', 'cu112-1.9.1', '2.0.0b1')
TITLES = {'mkl-1.6.0': '1.6.0 mkl', 'cu112-1.9.1': '1.9.1 cu112', '1.5.1.post0': '1.5.1', '1.7.0.post2': '1.7.0',
          '1.8.0.post0': '1.8.0'}


def cell(measured, feature):
    if measured.get('packed'):
        return 'packed'
    if measured.get('resolves'):
        return 'no' if feature in measured.get('missing', ()) else 'found'
    verdict = measured['cells'].get(feature)
    return '-' if verdict is None else 'yes' if verdict else 'no'


def table(all_measured):
    versions = [v for v in ORDER if v in all_measured]
    features = []
    for v in versions:
        features += [f for f in all_measured[v].get('cells', ()) if f not in features]
    rows = [[''] + [TITLES.get(v, v) for v in versions]]
    rows += [[f] + [cell(all_measured[v], f) for v in versions] for f in features]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ['    ' + '  '.join(text.ljust(w) for text, w in zip(row, widths)).rstrip() for row in rows]
    return '\n'.join(lines) + '\n'


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('cells', nargs='+')
    p.add_argument('--check', metavar='PAGE')
    args = p.parse_args()
    measured = {}
    for path in args.cells:
        with open(path) as f:
            m = json.load(f)
        measured[m['version']] = m
    text = table(measured)
    if not args.check:
        print(text, end='')
        return 0
    with open(args.check) as f:
        if text in f.read():
            return 0
    print('%s has not this table:\n%s' % (args.check, text))
    return 1


if __name__ == '__main__':
    sys.exit(main())

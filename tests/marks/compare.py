#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares mxbpf's user annotations with the program's own account (told.json of prog.py) and, with --builtin, with the output of
MXNet's own profiler for the same calls. Everything but times must be equal.

  compare.py TOLD MXBPF_JSON [--builtin JSON --mxnet JSON]
"""
import argparse
import json
import sys


def seen(report):
    """Returns {category of dumps(): {row: count, or a user counter's values}}"""
    rows = {}
    for table, category in (('Task', '%s'), ('Frame', '%s,frame'), ('Event', 'event')):
        for row in report['tables'].get(table, []):
            title = category % row['domain'] if '%s' in category else category
            rows.setdefault(title[:127], {})[row['name']] = row['count']
    for row in report.get('values', []):
        rows.setdefault(row['domain'], {})[row['name']] = {k: row[k] for k in ('count', 'min', 'max', 'last')}
    return rows


def marks_of(dumps, titles):
    return {title: {name: {k: v for k, v in row.items() if k == 'Count' or title in titles[name]}
                    for name, row in rows.items()} for title, rows in dumps['Time'].items()
            if title not in ('operator', 'MXNET_C_API')}


def differences(what, a, b):
    return ['%s %s: %r and %r' % (what, key, a.get(key), b.get(key)) for key in sorted(set(a) | set(b))
            if a.get(key) != b.get(key)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('told')
    p.add_argument('report')
    p.add_argument('--builtin')
    p.add_argument('--mxnet')
    args = p.parse_args()
    with open(args.told) as f:
        told = json.load(f)
    with open(args.report) as f:
        report = json.load(f)
    rows = seen(report)
    if not told or not rows:
        sys.exit('compare: nothing was marked, or nothing seen')
    wrong = []
    for title in sorted(set(told) | set(rows)):
        wrong += differences(title, told.get(title, {}), rows.get(title, {}))
    lost = {k: v for k, v in report['loss'].items() if k in ('dropped', 'truncated', 'unreadable', 'unmatched') and v}
    if lost:
        wrong.append('lost: %s' % lost)
    if args.builtin:
        counters = {}  # all their numbers are compared, because they are values and not times
        for title, of in told.items():
            for name, row in of.items():
                counters.setdefault(name, set())
                if isinstance(row, dict):
                    counters[name].add(title)
        with open(args.builtin) as f, open(args.mxnet) as g:
            builtin, mxnet = (marks_of(json.load(x), counters) for x in (f, g))
        for title in sorted(set(builtin) | set(mxnet)):
            if title not in builtin or title not in mxnet:
                wrong.append('category %s is not in both' % title)
            wrong += differences('dumps() ' + title, builtin.get(title, {}), mxnet.get(title, {}))
    for line in wrong:
        print(line)
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares mxbpf --memory with the account of held.py: equal, to the byte.

  compare.py BOOKS MXBPF_JSON [--totals]    --totals: compares neither the owners at the peak nor its time
"""
import argparse
import json
import sys

SLACK_NS = 50_000_000  # the two clocks may be adjusted while the program runs

FIELDS = ('allocs', 'frees', 'alloc_bytes', 'free_bytes', 'live_bytes', 'live_blocks')


def rows_of(report):
    rows = {}
    for h in report['memory']['holders']:
        row = rows.setdefault(h['name'], dict.fromkeys(FIELDS + ('peak_bytes',), 0))
        for field in row:
            row[field] += h[field]
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('books')
    p.add_argument('report')
    p.add_argument('--totals', action='store_true')
    args = p.parse_args()
    books, report = json.load(open(args.books)), json.load(open(args.report))
    (device,) = report['memory']['devices']
    rows, bad = rows_of(report), []

    def same(what, told, seen):
        if told != seen:
            bad.append('%s: the program has %s, mxbpf %s' % (what, told, seen))

    fields = FIELDS if args.totals else FIELDS + ('peak_bytes',)
    same('rows', sorted(op for op, row in books['holders'].items() if row['allocs'] or row['frees']), sorted(rows))
    for op in sorted(rows.keys() & books['holders'].keys()):
        for field in fields:
            same('%s of %s' % (field, op), books['holders'][op][field], rows[op][field])
    same('live_bytes', books['live_bytes'], device['live_bytes'])
    same('losses', (0, 0, 0), (device['missed_frees'], device['untracked_allocs'], report['loss']['dropped']))
    same('pool', books.get('pool'), device.get('pool'))
    if not args.totals:
        same('peak_bytes', books['peak_bytes'], device['peak_bytes'])
        same('the sum of what was alive at the peak', books['peak_bytes'], sum(r['peak_bytes'] for r in rows.values()))
        since, until = books['peak_unix_ns']
        if not since - SLACK_NS <= device['peak_unix_ns'] <= until + SLACK_NS:
            bad.append('the peak was between %d and %d, not at %d' % (since, until, device['peak_unix_ns']))
        if not 0 < device['mean_bytes'] < device['peak_bytes']:
            bad.append('mean %d' % device['mean_bytes'])
    sys.exit('\n'.join(bad) or 0)


main()

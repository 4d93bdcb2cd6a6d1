#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each row of calls in results of mxbpf is one that calls can have.

  can_be.py FILE.json...
"""
import json
import sys


def wrong(r):
    """Returns what is impossible in a row."""
    orders = [('self_ns', 'total_ns'), ('raw_self_ns', 'raw_total_ns'), ('total_ns', 'raw_total_ns')]
    if 'min_ns' in r:
        orders += [('min_ns', 'p50_ns'), ('p50_ns', 'p99_ns'), ('p99_ns', 'max_ns'), ('min_ns', 'avg_ns'), ('avg_ns', 'max_ns'), ('max_ns', 'total_ns')]
    found = ['%s above %s' % (a, b) for a, b in orders if a in r and b in r and r[a] > r[b]]
    account = r.get('account')
    if account and sum(account[k] for k in ('on_cpu_ns', 'runq_ns', 'blocked_ns', 'elsewhere_ns')) != r['total_ns']:
        found.append('the account is not the total')
    return found


rows = bad = 0
for path in sys.argv[1:]:
    with open(path) as f:
        tables = json.load(f)['tables']
    for table in tables.values():
        for row in table:
            rows += 1
            found = wrong(row)
            if found:
                bad += 1
                print(path, row['name'], '; '.join(found), row)
print('%d rows, %d of them impossible' % (rows, bad))
sys.exit(bad > 0 or not rows)

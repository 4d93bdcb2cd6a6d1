# SPDX-License-Identifier: Apache-2.0
"""Runs in gdb: prints the stacks of all threads of a process as addresses in files, in JSON: {"TID": [ADDRESS, ...]}, innermost
first.
usage: gdb -p PID -batch -nx -x gdb_stacks.py"""
import json
import struct

import gdb


def mappings(pid):
    """(start, end, start of the file's first mapping, 0 if its addresses are absolute)"""
    first, rows = {}, []
    with open('/proc/%d/maps' % pid) as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) < 6 or not fields[5].startswith('/'):
                continue
            start, end = (int(word, 16) for word in fields[0].split('-'))
            path = fields[5].strip()
            if path not in first:
                with open('/proc/%d/map_files/%x-%x' % (pid, start, end), 'rb') as file:
                    first[path] = 0 if struct.unpack('<H', file.read(18)[16:])[0] == 2 else start  # ET_EXEC
            rows.append((start, end, first[path]))
    return rows


def in_file(pc, rows):
    return next((pc - base for start, end, base in rows if start <= pc < end), pc)


def stack(rows):
    frame, pcs = gdb.newest_frame(), []
    while frame is not None and frame.is_valid():
        if frame.type() == gdb.NORMAL_FRAME:  # inlined functions have no frame of their own
            pcs.append(in_file(frame.pc(), rows))
        frame = frame.older()
    return pcs


gdb.execute('set backtrace past-main on')
gdb.execute('set backtrace past-entry on')
process = gdb.selected_inferior()
where = mappings(process.pid)
stacks = {}
for thread in process.threads():
    thread.switch()
    stacks[thread.ptid[1]] = stack(where)
print('STACKS ' + json.dumps(stacks))

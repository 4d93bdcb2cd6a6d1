#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the house promises about its own tree: who may include whom, sizes, licence lines, no traces of a machine.
usage: tree.py FILE...   prints one line per offence; exit 1 if there is any"""
import os
import re
import sys

FILE_LINES = 800
FUNCTION_LINES = 80

# room: (rooms it sees besides itself and the contracts in include/, libraries it alone may name)
ROOMS = {
    'base': ('', 'zlib.h'),
    'elf': ('base', 'elf.h'),
    'target': ('base elf', 'elf.h'),
    'insn': ('base elf', 'Zydis/'),
    'python': ('base elf target', ''),
    'sample': ('base elf target', ''),
    'adapter': ('plan/probe.h', ''),
    'plan': ('adapter base elf insn target', 'elf.h'),
    'counters': ('base', ''),
    'attach': ('base counters plan', 'bpf/ mxbpf.skel.h'),
    'agent': ('adapter attach base elf now plan python target', 'bpf/ elf.h'),
    'records': ('', ''),
    'ring': ('base records', 'bpf/'),
    'model': ('base records sched', ''),
    'feature': ('base model records sink', ''),
    'sched': ('base', ''),
    'machine': ('base model/gauge.h', ''),
    # A recording is what sinks read records from, and it carries the session's description.
    'record': ('base model records sink/sink.h', 'zlib.h cjson/'),
    'sink': ('base model records sched', 'cjson/'),
    'source': ('agent attach base model record records ring', ''),
    'symbols': ('adapter attach base elf model plan python records ring sample target', ''),
    'now': ('base elf plan python target', 'elfutils/'),
    'session': ('adapter agent attach base counters elf machine model plan record records source symbols target', ''),
    'cmd': ('adapter agent attach base counters elf insn model now plan record session sched sink source target', 'cjson/'),
}
# These see no contract either: they know nothing of events.
NO_CONTRACTS = {'base', 'elf', 'target', 'insn'}
LIBRARIES = ('bpf/', 'Zydis/', 'cjson/', 'zlib.h', 'elf.h', 'gelf.h', 'libelf.h', 'elfutils/', 'mxbpf.skel.h')
BPF_SEES = ('bpf/bpf_helpers.h', 'bpf/bpf_tracing.h', 'bpf/bpf_core_read.h', 'bpf/bpf_endian.h')

# Brackets keep this table from finding itself.
TRACES = (
    ('|'.join(a + b for a, b in (('py', 'pi[.]'), ('python', 'hosted'), ('deb', 'ian[.]org'), ('ubu', 'ntu[.]com'), ('npm', 'js'))),
     'names a registry host'),
    (r'(?<![\w.$}/-])/(work|farm|tmp/wt|opt/wheels|opt/pypi)/|/root/[.\w]|/home/[a-z]', 'names a path of one machine'),
    (r'\bTO' r'DO\b|\bFIX' r'ME\b|\bX' r'XX\b', 'is left open'),
)
# Word for word from elsewhere.
VERBATIM = ('LICENSE', 'tests/judge/doc1.py', 'tests/judge/doc2.py', 'vmlinux/')
TEXT = ('.c', '.h', '.cpp', '.sh', '.bash', '.bats', '.py', '.mjs', '.md', '.txt', '.bt')
LICENSED = ('.c', '.h', '.cpp', '.sh', '.bash', '.bats', '.py', '.mjs')


def may_include(path, header):
    """None, or the reason why not."""
    parts = path.split('/')
    if parts[0] == 'include':
        ok = header.startswith('mxbpf_') or header in ('vmlinux.h', 'linux/types.h')
        return None if ok else 'a contract sees contracts only'
    if parts[0] == 'bpf':
        own = os.path.exists(os.path.join('bpf', header)) or header.startswith('mxbpf_') or header == 'vmlinux.h'
        return None if own or header in BPF_SEES else 'bpf sees include and vmlinux'
    if path == 'user/main.c' and header.startswith('cmd/'):
        return None
    if parts[0] != 'user' or len(parts) < 3:
        return None
    room = parts[1]
    if room not in ROOMS:
        return 'room %s has no row in %s' % (room, os.path.basename(__file__))
    rooms, libraries = (field.split() for field in ROOMS[room])
    if any(header.startswith(library) for library in LIBRARIES) and not header.startswith('elf/'):
        return None if any(header.startswith(library) for library in libraries) else '%s may not see that library' % room
    if header.startswith('mxbpf_'):
        return '%s sees no contract' % room if room in NO_CONTRACTS else None
    other = header.split('/')[0]
    if other not in ROOMS or other == room or other in rooms or header in rooms:
        return None
    return '%s may not see %s' % (room, other)


def check_includes(path, lines):
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        reason = match and may_include(path, match[1])
        if reason:
            yield number, 'includes %s: %s' % (match[1], reason)


def check_functions(lines):
    """Kernel style: a function's braces stand alone in the first column. A unit test's TEST() block counts by itself."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith('{') or (start and line.startswith('\tTEST(')):
            start = number
        elif line.startswith('}') and start:
            length = number - start + 1
            if length > FUNCTION_LINES:
                yield start, 'function of %d lines, at most %d' % (length, FUNCTION_LINES)
            start = None


def check(path):
    with open(path, encoding='utf-8', errors='surrogateescape') as f:
        lines = f.read().splitlines()
    suffix = os.path.splitext(path)[1]
    if suffix in TEXT and suffix != '.txt' and len(lines) > FILE_LINES:
        yield 1, '%d lines, at most %d' % (len(lines), FILE_LINES)
    if suffix in LICENSED and not any('SPDX-License-Identifier:' in line for line in lines[:2]):
        yield 1, 'no SPDX line at its head'
    if suffix in ('.c', '.h'):
        yield from check_includes(path, lines)
        yield from check_functions(lines)
    if suffix in TEXT or path in ('Makefile', '.ci/run'):
        for number, line in enumerate(lines, 1):
            for pattern, what in TRACES:
                if re.search(pattern, line):
                    yield number, what


def main():
    bad = 0
    for path in sys.argv[1:]:
        if path.startswith(VERBATIM):
            continue
        for number, what in check(path):
            print('%s:%d: %s' % (path, number, what))
            bad = 1
    return bad


sys.exit(main())

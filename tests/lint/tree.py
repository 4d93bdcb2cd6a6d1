#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the tree: who may include whom, sizes of files, licence lines, no names of machines.
usage: tree.py FILE...   prints one line per violation; exit 1 if there is any"""
import os
import re
import sys

FILE_LINES = 800
FUNCTION_LINES = 80
ROOM_LINES = 6000  # lines of a folder in user/, bpf/ and include/; a subfolder counts by itself

# room: (rooms and headers that it may include besides itself and the contracts in include/, libraries that it may use)
ROOMS = {
    'base': ('', 'zlib.h libiberty/ cjson/ sqlite3.h'),
    'elf': ('base', 'elf.h'),
    'target': ('base elf', 'elf.h'),
    'insn': ('base elf', 'Zydis/'),
    'python': ('base elf target', ''),
    'adapter': ('plan/probe.h', ''),
    'plan': ('adapter base elf insn target', 'elf.h'),
    'job': ('base target', ''),
    'kineto': ('base target', ''),
    'nvtx': ('base', ''),
    'attach': ('base feature.read plan', 'bpf/ mxbpf.skel.h'),
    'table': ('base', ''),
    'window': ('base', ''),
    'records': ('base', ''),
    'agent': ('adapter attach base elf now plan python records target', 'bpf/ elf.h'),
    'ring': ('base records', 'bpf/'),
    'model': ('base feature.read records table', ''),
    # A feature is a folder. FEATURE_FILES has the layer of each of its files by name.
    'feature.read': ('base records', ''),
    'feature.fold': ('base feature.read model records table window', ''),
    'feature.view': ('base feature.fold feature.read model records table view', 'cjson/'),
    'feature.load': ('attach base feature.fold feature.read model now nvml plan python records session table target targets/targets.h', ''),
    'feature.options': ('cmd/option.h feature.fold feature.read session/session.h', ''),
    'feature': ('cmd/option.h feature.fold feature.load feature.view model view', ''),
    # Outputs read records from a recording, which also carries the session's description.
    'record': ('base model records view/view.h', 'zlib.h cjson/'),
    'view': ('base feature.fold feature.read model records table', 'cjson/ nanoarrow/ sqlite3.h'),
    # Comparisons know models and the events of recordings, whichever way these come.
    'compare': ('base feature.fold feature.read model records table view', 'cjson/'),
    'top': ('base feature.fold feature.read model table target view', 'ncurses.h'),
    'nvml': ('base', ''),
    'metrics': ('base feature.fold feature.read model nvml table target view', ''),
    'trigger': ('base feature.fold feature.read model nvml table view', ''),
    'source': ('agent attach base model record records ring', ''),
    'symbols': ('adapter attach base elf model plan python records ring target', 'elf.h'),
    'now': ('base elf insn plan python target', 'elfutils/'),
    'session': ('adapter agent attach base elf feature.fold feature.read job model nvtx plan python record records source symbols target targets/builds.h targets/process.h targets/targets.h', ''),
    # The life of targets. Sessions see only the headers that say what it does for them.
    'targets': ('adapter agent attach base feature.fold feature.read job model plan session source symbols target', ''),
    # Files of other profilers become recordings.
    'import': ('adapter base model plan record records source', 'cjson/ sqlite3.h yajl/ zlib.h'),
    'serve': ('base', 'microhttpd.h'),
    'push': ('base', 'curl/'),
    'sandbox': ('base', ''),
    'mcp': ('base', 'cjson/'),
    'gpu_only': ('agent base feature.fold model record records session source targets/targets.h', ''),
    'cmd': ('adapter agent attach base compare elf feature.fold feature.read gpu_only import insn kineto mcp metrics model now nvml plan push record sandbox serve session source target top trigger view', 'cjson/'),
}
# The layer of a file in user/feature/NAME/ by its name; fold if none matches. All files of the folder share NAME.h.
FEATURE_FILES = (
    ('feature.read', r'(read|words|events|gauge)(_\w+)?[.][ch]'),  # system interfaces and strings, no model
    ('feature.view', r'(sheet|trace|text)(_\w+)?[.][ch]'),
    ('feature.load', r'load(_\w+)?[.][ch]'),
    ('feature.options', r'options[.]c'),
)
# These rooms know nothing of events, so they may not include a contract.
NO_CONTRACTS = {'base', 'elf', 'target', 'insn', 'nvml', 'serve', 'push', 'sandbox'}
LIBRARIES = ('bpf/', 'Zydis/', 'libiberty/', 'cjson/', 'nanoarrow/', 'zlib.h', 'elf.h', 'gelf.h', 'libelf.h', 'elfutils/', 'mxbpf.skel.h', 'ncurses.h', 'microhttpd.h', 'curl/', 'yajl/', 'sqlite3.h')
BPF_SEES = ('bpf/bpf_helpers.h', 'bpf/bpf_tracing.h', 'bpf/bpf_core_read.h', 'bpf/bpf_endian.h')

# Split strings, so that this table does not match itself.
TRACES = (
    ('|'.join(a + b for a, b in (('py', 'pi[.]'), ('python', 'hosted'), ('deb', 'ian[.]org'), ('ubu', 'ntu[.]com'), ('npm', 'js'))),
     'names a registry host'),
    (r'(?<![\w.$}/-])/(work|farm|tmp/wt|opt/wheels|opt/pypi)/|/root/[.\w]|/home/[a-z]', 'names a path of one machine'),
    (r'\bTO' r'DO\b|\bFIX' r'ME\b|\bX' r'XX\b', 'is left open'),
)
# Files copied verbatim from elsewhere.
VERBATIM = ('LICENSE', 'tests/judge/doc1.py', 'tests/judge/doc2.py', 'vmlinux/', 'share/page/vendor/', 'vendor/')
TEXT = ('.c', '.h', '.cpp', '.sh', '.bash', '.bats', '.py', '.mjs', '.md', '.txt', '.bt')
LICENSED = ('.c', '.h', '.cpp', '.sh', '.bash', '.bats', '.py', '.mjs')


def room_of(path):
    """Returns the room of a file in user/. In a feature's folder that is the layer given by the file's name."""
    parts = path.split('/')
    if parts[0] != 'feature' or len(parts) < 3:
        return parts[0]
    return next((layer for layer, names in FEATURE_FILES if re.fullmatch(names, parts[2])), 'feature.fold')


def may_include(path, header):
    """Returns None, or the reason why not."""
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
    room = room_of('/'.join(parts[1:]))
    if room not in ROOMS:
        return 'room %s has no row in %s' % (room, os.path.basename(__file__))
    rooms, libraries = (field.split() for field in ROOMS[room])
    if any(header.startswith(library) for library in LIBRARIES) and not header.startswith('elf/'):
        return None if any(header.startswith(library) for library in libraries) else '%s may not see that library' % room
    if header == 'model/priv.h':
        return None if room == 'model' else 'model/priv.h is for user/model/ alone'
    if header.startswith('mxbpf_'):
        return '%s sees no contract' % room if room in NO_CONTRACTS else None
    other = room_of(header)
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
    """Kernel style: a function's braces stand alone in the first column. Each TEST() block of a unit test counts as a function."""
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


def check_rooms(paths):
    """Checks the number of lines of each room."""
    lines = {}
    for path in paths:
        room = os.path.dirname(path)
        if path.endswith(('.c', '.h')) and room.startswith(('user/', 'bpf', 'include')):
            with open(path, 'rb') as f:
                lines[room] = lines.get(room, 0) + f.read().count(b'\n')
    return [(room, 1, 'room of %d lines, at most %d' % (n, ROOM_LINES)) for room, n in lines.items() if n > ROOM_LINES]


def circle(sees):
    """Returns a cycle of rooms, each of which sees the next one, or None."""
    done = set()

    def walk(room, way):
        if room in way:
            return way[way.index(room):] + [room]
        found = None
        if room not in done:
            found = next(filter(None, (walk(other, way + [room]) for other in sees.get(room, ()))), None)
            done.add(room)
        return found
    return next(filter(None, (walk(room, []) for room in sees)), None)


def rooms_see():
    """A single header in a row of ROOMS does not count: it declares, for example, the type of an option for both rooms."""
    return {room: [other for other in fields[0].split() if '/' not in other] for room, fields in ROOMS.items()}


def features_see(paths):
    """What each layer of each feature sees of others: {'idle, feature.fold': {'steps, feature.fold'}}."""
    def of(path):
        return '%s, %s' % (path.split('/')[1], room_of(path))

    sees = {}
    for path in paths:
        if not re.fullmatch(r'user/feature/\w+/\w+[.][ch]', path):
            continue
        with open(path, encoding='utf-8', errors='surrogateescape') as f:
            headers = re.findall(r'^#include "(feature/\w+/\w+[.]h)"', f.read(), re.M)
        own = of(path[len('user/'):])
        sees.setdefault(own, set()).update(set(map(of, headers)) - {own})
    return sees


def main():
    bad = 0
    for sees in rooms_see(), features_see(sys.argv[1:]):
        if circle(sees):
            print('%s: circle of rooms: %s' % (os.path.basename(__file__), ' sees '.join(circle(sees))))
            bad = 1
    for path, number, what in check_rooms(sys.argv[1:]):
        print('%s:%d: %s' % (path, number, what))
        bad = 1
    for path in sys.argv[1:]:
        if path.startswith(VERBATIM):
            continue
        for number, what in check(path):
            print('%s:%d: %s' % (path, number, what))
            bad = 1
    return bad


sys.exit(main())

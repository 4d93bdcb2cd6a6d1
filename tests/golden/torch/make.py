# SPDX-License-Identifier: Apache-2.0
"""Writes torch's tables of made-up rows, for tests/unit/test_torch.c. Run it with a Python that has torch 2.13.
usage: make.py          writes the tables of every .rows file here, by torch's own code (torch) and the document's (torch-classic)
       make.py record   first records a new real.rows of a real training step
       make.py made-up  first writes the other .rows files again

A row has calls (for an event its start in ns), total ns, self ns, bytes, own bytes and name, and after tabs shapes and the
lines of a stack. A .work file beside it has what ran on a GPU: calls (0: of an operator that is a row), self ns and total ns, and
the name of the operator, kernel or copy. A table, FILE.LAYOUT.KEY[.TOP].txt, has the output of print(), and then total_average()."""
import ast
import os
import sys

import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEventAvg

import doc4

HERE = os.path.dirname(os.path.abspath(__file__))
KB, MB, GB = 1 << 10, 1 << 20, 1 << 30

MADE_UP = {
    'none': [],
    'zero': [(3, 0, 0, 0, 0, 'aten::empty'), (1, 0, 0, 0, 0, 'aten::detach')],
    # Names are truncated from 52 characters on. Columns are characters, not bytes.
    'names': [(1, 1000, 1000, 0, 0, 'aten::' + 'abcdefghij' * 30), (2, 9000, 9000, 0, 0, 'Schl\u00fcssel' * 7),
              (2, 9100, 9100, 0, 0, '\u6f14\u7b97\u5b50')] +
             [(1, 2000 + n, 2000 + n, 0, 0, 'autograd::engine::evaluate_function: ' + 'X' * n)
              for n in (10, 13, 14, 15, 16, 17, 18, 19)],
    'short': [(1, 5000, 5000, 0, 0, 'mm')],
    'shares': [(1, 100000, 1, 0, 0, 'outer'), (3, 33333, 33333, 0, 0, 'third'), (1, 66666, 66666, 0, 0, 'rest'),
               (7, 4, 4, 0, 0, 'dust'), (1, 0, 0, 0, 0, 'nothing')],
    'halves': [(8, 1250, 1250, 0, 0, 'a'), (8, 3750, 3750, 0, 0, 'b'), (3, 12500, 12500, 0, 0, 'c'),
               (1, 82500, 82500, 0, 0, 'd'), (1, 1000005000, 900000, 0, 0, 'e')],
    'whole': [(1, 777, 777, 0, 0, 'all')],
    'units': [(n, t, t, 0, 0, 't%d' % t) for n, t in (
        (1, 1), (1, 999), (2, 1000), (1, 999999), (3, 1000000), (1, 1000500), (1, 4442500), (1, 999999999),
        (1, 1000000000), (7, 12345678900), (1, 3600 * 10**9))],
    'bytes': [(1, 1001 + 2 * i, 1001 + 2 * i, b, -b // 2, 'b%d' % b) for i, b in enumerate((
        0, 1, -1, 1023, 1024, -1024, 1025, 10 * KB + 51, MB - 1, MB, -MB, MB + MB // 200, GB - 1, GB, -3 * GB - GB // 2,
        123 * GB))],
}
# Calls (0: of an operator), own ns and total ns on a GPU.
WORK = {
    'gpu': [(0, 0, 41000, 'outer'), (0, 33333, 41000, 'third'), (0, 7667, 7667, 'rest'), (0, 5, 5, 'dust'),
            (3, 33333, 33333, 'void gemm<float, 128, 64>(float const*, float*, int) [clone .kd]'), (9, 7667, 7667, 'rest'),
            (1, 5, 5, 'Memset (Device)'), (2, 1234567890, 1234567890, 'Memcpy HtoD (Pageable -> Device)')],
    'gpu-none': [(0, 0, 0, 'mm'), (4, 0, 0, 'empty kernel')],
    'gpu-only': [(7, 9000, 9000, 'kernel')],
}
MADE_UP['gpu'] = MADE_UP['shares'] + [(1, 5000, 5000, 2048, 2048, 'mm')]
MADE_UP['gpu-none'] = MADE_UP['short']
MADE_UP['gpu-only'] = MADE_UP['short']
CPU = [torch.profiler.ProfilerActivity.CPU]
TODAY_KEYS = ('cpu_time', 'cpu_time_total', 'self_cpu_time_total', 'cpu_memory_usage', 'self_cpu_memory_usage', 'count',
              'device_time_total')
GPU_KEYS = ('cuda_time', 'cuda_time_total', 'self_cuda_time_total', 'self_cpu_time_total', 'count')
CLASSIC_KEYS = ('cpu_time', 'cuda_time', 'cpu_time_total', 'cuda_time_total', 'count')


def path(name):
    return os.path.join(HERE, name)


def write_rows(case, rows):
    with open(path(case + '.rows'), 'w') as f:
        for row in rows:
            f.write('%d %d %d %d %d %s\n' % (*row[:5], '\t'.join(row[5:])))


def read_rows(case):
    """Rows with equal keys stay in input order: mxbpf puts the larger name first."""
    with open(path(case + '.rows')) as f:
        rows = [line.rstrip('\n').split(' ', 5) for line in f]
    return sorted(((*map(int, row[:5]), *row[5].split('\t')) for row in rows), key=lambda row: row[5:], reverse=True)


def record():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 8, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def steps():
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 3, 16, 16)).sum().backward()
            optimizer.step()
    with torch.profiler.profile(activities=CPU, profile_memory=True) as profile:
        steps()
    write_events('real', profile.key_averages(), lambda e: ())
    with torch.profiler.profile(activities=CPU, profile_memory=True, record_shapes=True, with_stack=True,
                                experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True)) as profile:
        steps()
    write_events('shapes', profile.key_averages(group_by_input_shape=True),
                 lambda e: [str(e.input_shapes).replace(' ', '')])
    write_events('events', [e for e in profile.events() if e.name != '[memory]'][:150],
                 lambda e: [str(e.input_shapes).replace(' ', ''), *e.stack], lambda e: round(e.time_range.start * 1000))
    write_events('stacks', profile.key_averages(group_by_stack_n=5), lambda e: ['', *e.stack])


def write_events(case, events, detail, first=lambda e: e.count):
    write_rows(case, [(first(e), round(e.cpu_time_total * 1000), round(e.self_cpu_time_total * 1000),
                       e.cpu_memory_usage, e.self_cpu_memory_usage, e.key, *detail(e)) for e in events if torch_names(e)])


def torch_names(event):
    """Omits rows of Python functions, which mxbpf has only as lines of a stack."""
    return '(' not in event.key and not event.key.startswith(('<', 'nn.Module'))


def write_work(case, work):
    with open(path(case + '.work'), 'w') as f:
        for row in work:
            f.write('%d %d %d %s\n' % row)


def read_work(case):
    """Own and total ns of operators, and rows of kernels and copies with their ns."""
    if not os.path.exists(path(case + '.work')):
        return {}, []
    with open(path(case + '.work')) as f:
        work = [line.rstrip('\n').split(' ', 3) for line in f]
    of = {name: (int(own), int(total)) for count, own, total, name in work if count == '0'}
    return of, [(int(count), 0, 0, 0, 0, name, int(total)) for count, _, total, name in work if count != '0']


def today(rows, sort_by, top, work=({}, [])):
    of_operators, devices = work
    gpu = {'use_device': 'cuda'} if of_operators or devices else {}
    events = EventList(profile_memory=any(row[3] or row[4] for row in rows), **gpu)
    # Both kinds in one order, operators first. A row of a device has a number instead of shapes.
    if gpu:
        rows = sorted(rows + devices, key=lambda row: (row[5], len(row) == 6), reverse=True)
    for count, total, own, size, own_size, name, *detail in rows:
        e = FunctionEventAvg()
        if gpu:
            e.use_device = 'cuda'
            e.self_device_time_total, e.device_time_total = (ns / 1000 for ns in of_operators.get(name, (0, 0)))
        if detail and isinstance(detail[0], int):
            e.device_type = DeviceType.CUDA
            e.self_device_time_total = e.device_time_total = detail.pop() / 1000
        e.key, e.count, e.node_id, e.is_user_annotation = name, count, -1, False
        e.cpu_time_total, e.self_cpu_time_total = total / 1000, own / 1000
        e.cpu_memory_usage, e.self_cpu_memory_usage = size, own_size
        e.overload_name = ''
        e.input_shapes = ast.literal_eval(detail[0]) if detail and detail[0] else ''
        e.stack = detail[1:]
        events.append(e)
    total = events.total_average()
    total.input_shapes = ''  # torch leaves the first row's shapes there
    return events.table(sort_by=sort_by, row_limit=top or -1), total


def classic(rows, sort_by, top):
    """Its sort_by puts the smallest first, and it has no limit."""
    events, total = [], doc4.FunctionEventAvg()
    for count, total_ns, _, _, _, name, *_ in rows:
        e = doc4.FunctionEventAvg()
        e.key, e.count, e.cpu_time_total = name, count, total_ns / 1000
        events.append(e)
        total.count += count
        total.cpu_time_total += e.cpu_time_total
    total.key = 'Total'
    return doc4.build_table(events, sort_by), total


def read_events():
    rows = sorted(read_rows('events'), key=lambda row: (row[0], -row[1]))
    return [(1, *row[1:]) for row in rows]


def write_table(make, layout, case, key, top=0):
    rows = read_events() if case == 'events' else read_rows(case)
    text, total = make(rows, None if key == 'start' else key, top, *[read_work(case)] * (make is today))
    with open(path('.'.join([case, layout, key] + [str(top)] * bool(top)) + '.txt'), 'w') as f:
        f.write(text + '\n')
        if rows:
            f.write('# total    %r\n' % total)


def main():
    if 'record' in sys.argv:
        record()
    if 'made-up' in sys.argv:
        for case, rows in MADE_UP.items():
            write_rows(case, rows)
        for case, work in WORK.items():
            write_work(case, work)
    for name in os.listdir(HERE):
        if name.endswith('.txt'):
            os.unlink(path(name))
    for case in MADE_UP:
        write_table(today, 'torch', case, 'cpu_time_total')
        if case not in WORK:
            write_table(classic, 'torch-classic', case, 'cpu_time_total')
    for key in GPU_KEYS:
        write_table(today, 'torch', 'gpu', key, 5)
    for key in TODAY_KEYS:
        write_table(today, 'torch', 'real', key, 10)
    for key in CLASSIC_KEYS:
        write_table(classic, 'torch-classic', 'real', key)
    write_table(today, 'torch', 'real', 'cpu_time_total')
    for make, layout in ((today, 'torch'), (classic, 'torch-classic')):
        write_table(make, layout, 'events', 'start')
    for case in ('shapes', 'stacks'):
        write_table(today, 'torch', case, 'self_cpu_time_total')
        write_table(today, 'torch', case, 'count', 10)


main()

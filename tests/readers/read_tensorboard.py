#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serves a directory of traces with TensorBoard on the loopback, requests every view of its PyTorch plugin, and prints the answers
as one JSON object.

  read_tensorboard.py LOGDIR

LOGDIR/RUN/WORKER.pt.trace.json is the trace. `status`: of each request; `operators`: calls by name; `shapes`: rows by sizes;
`steps`: names; `errors`: the plugin's log. With kernels of a GPU also `gpu`: the summary, the kernels by name, the average time
of a step by part, and the counters that the plugin adds to the trace.
"""
import gzip
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

PLUGIN = '/data/plugin/pytorch_profiler/'
VIEWS = ('overview', 'operation', 'operation/table', 'trace')
MEMORY_VIEWS = ('memory', 'memory_curve', 'memory_events')
KERNEL_VIEWS = ('kernel', 'kernel/table', 'kernel/tc_pie')


class Server:
    def __init__(self, logdir, log):
        command = [sys.executable, '-m', 'tensorboard.main', '--logdir', logdir, '--host', '127.0.0.1', '--port', '0']
        self.log = log
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ, NO_PROXY='*'))
        self.url = self.wait(lambda: re.search(r'http://[0-9.:]+', self.said()))[0]

    def said(self):
        with open(self.log.name) as f:
            return f.read()

    def wait(self, ready):
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            got = ready()
            if got:
                return got
            time.sleep(0.1)
        sys.exit('tensorboard: %s' % self.said())

    def ask(self, what, **args):
        query = '&'.join('%s=%s' % arg for arg in args.items())
        try:
            with urllib.request.urlopen(self.url + PLUGIN + what + '?' + query) as answer:
                data = answer.read()
                if answer.headers.get('Content-Encoding') == 'gzip' or data[:2] == b'\x1f\x8b':
                    data = gzip.decompress(data)
                return answer.status, json.loads(data)
        except urllib.error.HTTPError as e:
            return e.code, None

    def loaded(self):
        status, runs = self.ask('runs')
        return status == 200 and runs['runs'] and not runs['loading'] and runs['runs']


def gpu(answers):
    overview, kernels = answers['overview'][1], answers['kernel/table'][1]['data']
    names = [column['name'] for column in kernels['columns']]
    return {
        'summary': {row['title']: row['value'] for row in overview['gpu_metrics']['data']},
        'kernels': {row[0]: dict(zip(names[1:], row[1:])) for row in kernels['rows']},
        'step': {part['name']: part['value'] for part in overview['performance'][0]['children']},
        'counters': sorted({e['name'] for e in answers['trace'][1]['traceEvents'] if e['ph'] == 'C'}),
    }


def main():
    with open('tensorboard.log', 'w') as log:
        server = Server(sys.argv[1], log)
        try:
            run = server.wait(server.loaded)[0]
            views = server.ask('views', run=run)[1]
            worker = server.ask('workers', run=run, view='Overview')[1][0]
            span = server.ask('spans', run=run, worker=worker)[1]
            where = {'run': run, 'worker': worker, 'span': span[0] if span else '', 'group_by': 'Operation'}
            shapes = server.ask('operation/table', **{**where, 'group_by': 'OperationAndInputShape'})[1]['data']
            answers = {view: server.ask(view, **where) for view in VIEWS + (MEMORY_VIEWS if 'Memory' in views else ())}
            if 'Kernel' in views:
                answers.update({view: server.ask(view, **{**where, 'group_by': 'Kernel'}) for view in KERNEL_VIEWS})
        finally:
            server.process.terminate()
            server.process.wait()
        memory = answers['memory_events'][1]['rows'].get('CPU', []) if 'Memory' in views else []
        json.dump({
            'views': views,
            'status': {view: status for view, (status, _) in answers.items()},
            'operators': {row['name']: row['calls'] for row in answers['operation/table'][1]['data']},
            'stacks': any(row['has_call_stack'] for row in answers['operation/table'][1]['data']),
            'shapes': [{'name': row['name'], 'input_shape': row['input_shape']} for row in shapes],
            'steps': [row[0] for row in answers['overview'][1]['steps']['rows']],
            'memory_events': len(memory),
            # Operators to which the plugin attributes an allocation: the innermost one of the allocating thread.
            'memory_operators': sorted({str(row[0]) for row in memory}),
            'slices': len([e for e in answers['trace'][1]['traceEvents'] if e.get('ph') == 'X']),
            'gpu': gpu(answers) if 'Kernel' in views else None,
            'errors': re.findall(r'^[EC]\d{4} .*', server.said(), re.M),
        }, sys.stdout)


main()

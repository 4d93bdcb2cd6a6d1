#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of README.md and docs/*.md, and compares the first line of their output with the page.

  commands.py --list           lists the commands that are not run, with the reason
  commands.py --check          finds commands that are in no console block, and options that mxbpf does not have
  commands.py --pages          lists the pages, each with the jobs that it needs
  commands.py --jobs PAGE      names the jobs that the page needs: mxnet, torch
  commands.py PAGE JOB=PID...  runs the page's commands in the current directory

A command is a line "$ COMMAND" of a ```console block; the lines after it are its output. The comment before the block says how it
is run:

  <!-- run: mxnet -->              against that job; "mxnet for 4 s" lengthens the window
  <!-- run: torch; output: WHY --> the output may be absent, for that reason
  <!-- not run: WHY -->            not at all

1234 stands for the job's pid, "python train.py" for a short job of the same kind, and job.mxd, a.mxd, b.mxd, c.mxd for recordings of
the job. Windows are a second long. Numbers may differ, and how many rows are shown. If the shown output begins with "...", its
next line may be any line of the output.
"""
import glob
import os
import re
import subprocess
import sys

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ['README.md'] + sorted(os.path.relpath(p, REPO) for p in glob.glob(REPO + '/docs/*.md'))
WORKLOADS = {'mxnet': 'mxnet_train.py', 'torch': 'torch_train.py'}
PYTHONS = {'mxnet': 'PYTHON', 'torch': 'PYTHON_TORCH'}
# Options of other programs, or without a line in the help.
OTHER_OPTIONS = {'--generate', '--list', '--nproc-per-node', '--cells', '--markdown', '--hold', '--calls', '--onward', '--workers', '--model', '--sudo',
                 '--target', '--profile', '--'}
TIMEOUT = 120
NOTHING_SEEN = 5  # exit status


class Block:
    def __init__(self, page, number, comment):
        self.page, self.number = page, number
        self.commands = []  # [command, lines of its output]
        match = re.fullmatch(r'<!-- not run: (.+) -->', comment)
        self.why_not = match and match[1]
        match = re.fullmatch(r'<!-- run: (mxnet|torch)(?: for (\d+) s)?(?:; output: (.+))? -->', comment)
        if not match and not self.why_not:
            sys.exit('%s:%d: a console block without a comment that says how it is run' % (page, number))
        self.job, self.seconds, self.why_absent = match.groups() if match else (None, None, None)


def blocks_of(page):
    """Yields the console blocks of a page, and every line outside of code blocks as (number, line)."""
    block, inside, before = None, False, ''
    with open(os.path.join(REPO, page)) as f:
        for number, line in enumerate(f.read().split('\n'), 1):
            if line.startswith('```'):
                if block:
                    yield block
                block = Block(page, number, before) if line == '```console' else None
                inside = not inside
            elif block and line.startswith('$ '):
                block.commands.append([line[2:], []])
            elif block:
                block.commands[-1][1].append(line)
            elif not inside:
                yield number, line
            before = line


def console_blocks(page):
    return [b for b in blocks_of(page) if isinstance(b, Block)]


def jobs_of(page):
    return sorted({b.job for b in console_blocks(page) if b.job})


def list_commands():
    for page in PAGES:
        for block in console_blocks(page):
            if block.why_not:
                print('%s: %s' % (page, block.why_not))
                for command, _ in block.commands:
                    print('    ' + command)


# Commands that look at processes. `diff`, `report`, `export` and `merge` read files.
NEEDS_ROOT = r'mxbpf (--pid|--agent|--gpu|--host|--comm|--cgroup|-- |(record|now|top|serve|trace|check|list)\b)'


def check():
    bad = []
    text = subprocess.check_output([os.environ['MXBPF'], 'help', 'all'], text=True)
    known = set(re.findall(r'--[a-z-]+', text)) | OTHER_OPTIONS
    for page in PAGES:
        if os.path.basename(page) in ('internals.md', 'examples.md'):
            continue
        for item in blocks_of(page):
            if isinstance(item, Block):
                words = [c for c, _ in item.commands if not item.why_not]
                number = item.number
                bad += ['%s:%d: it requires root: sudo %s' % (page, number, c) for c, _ in item.commands
                        if re.match(NEEDS_ROOT, c) and '--no-bpf' not in c]
            else:
                number, line = item
                if re.match(r' {4}(sudo )?(mxbpf|make)\b', line):
                    bad.append('%s:%d: a command outside of console blocks' % (page, number))
                words = re.findall(r'`[^`]*`', line)
            for option in re.findall(r'(?<![\w-])--[a-z-]*', ' '.join(words)):
                if option not in known:
                    bad.append('%s:%d: mxbpf has no option %s' % (page, number, option))
    print('\n'.join(bad), end='\n' if bad else '')
    return bool(bad)


def normal(line):
    """Leaves out what differs from run to run: numbers with their units, the job's command line, the width of columns."""
    line = re.sub(r'\d[\d.,]*( ?(ns|us|ms|s|%|B|KiB|MiB|GiB)\b)?', '#', line)
    line = re.sub(r', of which # are shown( \(--top # shows all\))?$', '', line)
    line = re.sub(r'^process # \(.*?\), ', 'process #, ', line)
    return re.sub(r'\s+', ' ', re.sub(r'\b(row|thread)s\b', r'\1', line)).strip()


def shorten(command, block):
    """Replaces the times of a command, and gives a window to one that has none."""
    window = '-d %ss' % (block.seconds or 1)
    command = re.sub(r'\s+#.*', '', command)
    command = re.sub(r'-d \d+s', window, command)
    command = re.sub(r'--interval \d+s', '--interval 500ms', command)
    live = re.match(r'sudo mxbpf (record )?(?!now|list|check)', command)
    if live and '--pid' in command and ' -d ' not in command:
        command += ' ' + window
    return command


def make_tools(job):
    """Makes `sudo`, `mxbpf` and `python` for the commands, and the program train.py."""
    os.makedirs('bin-' + job, exist_ok=True)
    tools = {'sudo': '"$@"', 'mxbpf': '"$MXBPF" "$@"', 'python': '"$%s" "$@"' % PYTHONS[job]}
    for name, words in tools.items():
        path = 'bin-%s/%s' % (job, name)
        with open(path, 'w') as f:
            f.write('#!/bin/sh\nexec %s\n' % words)
        os.chmod(path, 0o755)
    with open('train.py', 'w') as f:
        f.write("import runpy, sys\nsys.argv[1:] = ['--steps', '5']\nrunpy.run_path('%s/tests/workload/%s', run_name='__main__')\n"
                % (REPO, WORKLOADS[job]))
    return dict(os.environ, PATH=os.path.abspath('bin-' + job) + ':' + os.environ['PATH'])


def run(command, env):
    return subprocess.run(['bash', '-c', command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors='replace', timeout=TIMEOUT)


def make_recordings(block, pid, env):
    """Records the job for commands that name a recording which no command of the page makes: a, b and c are of different hosts."""
    names = {n for c, _ in block.commands for n in re.findall(r'\b(job|[abc])\.mxd', c)}
    made = {n for c, _ in block.commands for n in re.findall(r'-o (\w+)\.mxd', c)}
    for name in sorted(names - made):
        if not os.path.exists(name + '.mxd'):
            run("unshare --uts sh -c 'hostname %s && exec mxbpf record --pid %s -d 300ms -q -o %s.mxd'" % (name, pid, name),
                env).check_returncode()


def differs(shown, printed):
    """Compares the first line of an output. Returns what the page shows and the output lacks, or None."""
    if not shown or not shown[0].strip():
        return None
    if shown[0] == '...':
        want = normal(shown[1])
        return None if any(normal(line) == want for line in printed) else shown[1]
    return None if printed and normal(printed[0]) == normal(shown[0]) else shown[0]


def run_page(page, jobs):
    bad = 0
    for block in console_blocks(page):
        if block.why_not:
            continue
        pid = jobs[block.job]
        env = make_tools(block.job)
        make_recordings(block, pid, env)
        for command, shown in block.commands:
            actual = shorten(command, block).replace('1234', pid)
            done = run(actual, env)
            if done.returncode == NOTHING_SEEN:  # on a busy machine the job may get no CPU in so short a window
                done = run(re.sub(r'-d \d+s', '-d 10s', actual), env)
            lost = differs(shown, done.stdout.split('\n'))
            if done.returncode or (lost and not block.why_absent):
                bad += 1
                print('%s:%d: %s\n  ran: %s\n  exit status %d' % (page, block.number, command, actual, done.returncode))
                print('  stderr: ' + done.stderr[-1000:])
                if lost:
                    print('  the page shows: %s\n  the output is:\n%s' % (lost, done.stdout[:3000]))
    return bool(bad)


def main():
    if sys.argv[1:] == ['--list']:
        return list_commands()
    if sys.argv[1:] == ['--check']:
        return check()
    if sys.argv[1:] == ['--pages']:
        return print('\n'.join(' '.join([page] + jobs_of(page)) for page in PAGES))
    if sys.argv[1] == '--jobs':
        return print(' '.join(jobs_of(sys.argv[2])))
    return run_page(sys.argv[1], dict(job.split('=') for job in sys.argv[2:]))


if __name__ == '__main__':
    sys.exit(main())

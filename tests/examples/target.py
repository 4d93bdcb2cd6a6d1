# SPDX-License-Identifier: Apache-2.0
"""One of the programs in one process, and mxbpf around one run of it at a time."""
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.abspath(os.path.join(HERE, '..', '..'))
O = os.path.abspath(os.environ.get('O') or os.path.join(REPO, 'build'))
MXBPF = os.environ.get('MXBPF') or os.path.join(O, 'mxbpf')
PYTHON = {
    'mxnet': os.environ.get('PYTHON') or os.path.join(O, 'deps/venv/bin/python'),
    'torch': os.environ.get('PYTHON_TORCH') or os.path.join(O, 'deps/torch/bin/python'),
}
SECONDS = 300
sys.path.insert(0, HERE)
from programs import PROGRAMS  # noqa: E402


def environment():
    """Avoids threads whose share of the work could differ between runs."""
    return dict(os.environ, OMP_NUM_THREADS='1', TORCHINDUCTOR_COMPILE_THREADS='1', DMLC_LOG_STACK_TRACE_DEPTH='0')


class Failed(ValueError):
    pass


class Target:
    def __init__(self, name, directory, *options):
        os.makedirs(directory, exist_ok=True)
        self.name, self.directory = name, directory
        self.command = [PYTHON[PROGRAMS[name].runtime], os.path.join(HERE, 'run.py'), name, *options]
        self.process = subprocess.Popen([*self.command, '--serve'], cwd=directory, env=environment(), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = int(self.line('ready '))

    def alive(self):
        return self.process.poll() is None

    def line(self, word):
        text = self.process.stdout.readline()
        if not text.startswith(word):
            raise Failed('%s said %r, not %r' % (self.name, text, word))
        return text[len(word):].strip()

    def say(self, text):
        self.process.stdin.write(text + '\n')
        self.process.stdin.flush()

    def plain(self):
        self.say('plain')
        self.line('done')
        self.say('')
        return self.line('result ')

    def builtin(self, out):
        self.say('builtin ' + out)
        return self.line('result ')

    def traced(self, args, out, subcommand=(), attached=r'attached: \d+ probes', interrupt=True):
        """Runs mxbpf around one run, with stdout in the file OUT. Returns its exit status, its stderr and the program's digest."""
        api = [] if subcommand or {'--api', '--probes', '--layout'} & set(args) else ['--api', 'all']
        command = [MXBPF, *(subcommand or ['--exact']), '--pid', str(self.pid), *api, *args]
        with open(out, 'wb') as f:
            tool = subprocess.Popen(command, cwd=self.directory, stdout=f, stderr=subprocess.PIPE, text=True)
        said = []
        for text in tool.stderr:
            said.append(text)
            if re.search(attached, text):
                break
        else:
            return tool.wait(), ''.join(said), None
        self.say('plain')
        self.line('done')
        if interrupt:
            tool.send_signal(signal.SIGINT)
        said.append(tool.stderr.read())
        status = tool.wait(SECONDS)
        self.say('')
        return status, ''.join(said), self.line('result ')

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

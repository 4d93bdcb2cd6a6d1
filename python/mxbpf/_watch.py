# SPDX-License-Identifier: Apache-2.0
"""Records a running process."""
from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from typing import Callable, List, Optional, Sequence, Union

from mxbpf import _program
from mxbpf._recording import Recording

# The program prints one of these lines when it records, or when it does so as soon as the target gives it something to record.
_STARTED = re.compile('(mxbpf: )?(attached: |waiting )')


def _nothing(line: str) -> None:
    pass


class Session:
    """A run of `mxbpf record`. Its messages are read all the time, so that it never waits for a reader."""

    def __init__(self, pid: int, options: Sequence[str], sudo: bool = False, show: Callable[[str], None] = _nothing) -> None:
        self._folder = _program.Folder()
        self._path = os.path.join(self._folder.path, '%d.mxd' % pid)
        self._show = show
        self._said: List[str] = []
        # Ctrl-C goes to all processes of the caller's group. The program gets it from interrupt() alone, once.
        self._child = _program.started(
            ['record', '--pid', str(pid), *options, '-o', self._path],
            sudo,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._lines: 'queue.SimpleQueue[Optional[str]]' = queue.SimpleQueue()
        threading.Thread(target=self._read, name='mxbpf', daemon=True).start()

    def _read(self) -> None:
        assert self._child.stdout
        with self._child.stdout as out:
            for line in out:
                self._lines.put(line.rstrip('\n'))
        self._lines.put(None)

    def _next(self) -> Optional[str]:
        """Returns the next line; None at the end."""
        line = self._lines.get()
        if line is not None:
            self._said.append(line)
            if not line.startswith('mxbpf: error: '):  # an error is raised, or becomes a warning
                self._show(line)
        return line

    def wait_started(self) -> None:
        """Returns when calls of the target are recorded from now on. Raises Error if they cannot be."""
        line: Optional[str] = ''
        try:
            while line is not None and not _STARTED.match(line):
                line = self._next()
        except KeyboardInterrupt:
            self.interrupt()
            self._child.wait()
            raise
        if line is None:
            raise _program.failure(self._said, self._child.wait())

    def interrupt(self) -> None:
        """Ends the recording, like Ctrl-C."""
        self._child.send_signal(signal.SIGINT)  # sudo hands it on

    def finish(self) -> Recording:
        """Waits for the end of the recording. Ctrl-C ends it, and a second Ctrl-C interrupts the writing."""
        interrupted: Optional[KeyboardInterrupt] = None
        while True:
            try:
                while self._next() is not None:
                    pass
                code = self._child.wait()
                break
            except KeyboardInterrupt as e:
                interrupted = e
                self.interrupt()
        if not os.path.exists(self._path):
            raise interrupted or _program.failure(self._said, code)
        for line in self._said:
            if line.startswith('mxbpf: error: '):
                _program.warn(line)
        return Recording(self._path, self._folder)


def watch(pid: int, seconds: float = 5, options: Union[str, Sequence[str]] = (), sudo: bool = False, quiet: bool = False) -> Recording:
    """Records a running process, and returns the recording, which shows its page in a notebook.

    Args:
        pid: the process.
        seconds: how long. An interrupt (Ctrl-C) ends it earlier, with the results so far.
        options: further options of `mxbpf record`, such as `'--memory --py-stacks'`, or a list of them.
        sudo: run the program by `sudo -n`, which must not ask for a password.
        quiet: show no progress on stderr.

    Raises:
        Error: with the program's message, for instance if there is no such process, or a right is missing.
    """
    show = _nothing if quiet else lambda line: print(line, file=sys.stderr, flush=True)
    return Session(pid, ['-d', '%dms' % round(seconds * 1000), *_program.words(options)], sudo, show).finish()

# SPDX-License-Identifier: Apache-2.0
"""A recording: its tables, its findings, its loss and its cost."""
from __future__ import annotations

import dataclasses
import html
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union

from mxbpf import _program
from mxbpf._table import Table

_T = TypeVar('_T')


def _filled(cls: Type[_T], values: Dict[str, Any]) -> _T:
    """Makes an object of those values of a JSON object that its class knows."""
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: values[name] for name in names if name in values})


@dataclass(frozen=True)
class Loss:
    """What was not seen. Every number of a recording is to be read with it. Numbers are those of events."""

    attempted: int = 0  #: events that probes tried to send
    stored: int = 0  #: of these, events in the tables
    dropped: int = 0  #: of these, lost events
    truncated: int = 0  #: names that were too long
    unreadable: int = 0  #: reads of memory of the target that failed
    unmatched: int = 0  #: starts without an end, and ends without a start
    late: int = 0  #: events that came too late for their place in the order of time
    cut_records: int = 0  #: the oldest ones, which --max-size deleted; they are in `calls`, and not in `spans`
    incomplete: bool = False  #: the recording ends too early, for instance because mxbpf was killed

    def __str__(self) -> str:
        numbers = dataclasses.asdict(self)
        del numbers['attempted'], numbers['stored'], numbers['incomplete']
        lost = ['%d %s' % (n, name.replace('_', ' ')) for name, n in numbers.items() if n] + ['incomplete'] * self.incomplete
        return '%d of %d events, %s' % (self.stored, self.attempted, ', '.join(lost) or 'none lost')


@dataclass(frozen=True)
class Cost:
    """What profiling cost the job. Times are in nanoseconds."""

    added_cpu_ns: int = 0  #: CPU time that probes added to all threads of the job
    busiest_thread_ns: int = 0  #: of it, on the thread with the most
    trap_ns: int = 0  #: time of one hit of a probe, without its program
    uncertainty_permille: int = 0  #: the cost may be so much higher or lower, in permille of it
    taken_out: bool = False  #: times of rows and of iterations are without the cost
    iteration_watched_ns: Optional[int] = None  #: mean duration of an iteration as it ran
    iteration_unwatched_ns: Optional[int] = None  #: the same without mxbpf, an estimate


@dataclass(frozen=True)
class Finding:
    """Something that bounds the job."""

    finding: str  #: name of the rule
    text: str  #: the finding as a sentence
    evidence: Optional[str]  #: what was seen, and where
    share_permille: int  #: thousandths of the time that the finding explains
    next: Optional[str]  #: arguments of mxbpf that look closer; PID stands for `pid`
    pid: int  #: the process that the finding is about
    advice: Optional[str]  #: what helps

    @property
    def key(self) -> str:
        """The name of the rule."""
        return self.finding

    def __str__(self) -> str:
        return _program.printable(self.text)


class Recording:
    """A recording. In a notebook it shows the page that `mxbpf report --html` makes of it.

    Each table of its data set is an attribute: `recording.spans`, `recording.calls`, `recording.gpu_kernels`; `tables` lists them.
    """

    def __init__(self, path: Union[str, 'os.PathLike[str]'], folder: Optional[_program.Folder] = None) -> None:
        self.path: str = os.path.abspath(path)
        self._folder = folder  # that of the recording, if it is removed with this object

    @cached_property
    def _dataset(self) -> Tuple[str, _program.Folder]:
        """The path of the data set, in a folder that is removed with this object."""
        folder = _program.Folder()
        path = os.path.join(folder.path, 'recording.arrow')
        child = _program.started(['export', self.path, '-q', '-o', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with child:
            said = child.communicate()[0].splitlines()
        if not os.path.isdir(os.path.join(path, 'recordings')):
            raise _program.failure(said, child.returncode)
        for line in said:
            _program.warn(line)
        return path, folder

    @property
    def tables(self) -> List[str]:
        """Names of the tables that this recording has. Options of `mxbpf record` add others."""
        return sorted(name for name in os.listdir(self._dataset[0]) if not name.startswith('_'))

    def __getitem__(self, name: str) -> Table:
        if name not in self.tables:
            raise KeyError('%s has no table %s; it has %s' % (self.path, name, ', '.join(self.tables)))
        return Table(self, name, os.path.join(self._dataset[0], name))

    def __getattr__(self, name: str) -> Table:
        if name.startswith('_'):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as e:
            raise AttributeError(e.args[0]) from None

    def __dir__(self) -> List[str]:
        try:
            return [*super().__dir__(), *self.tables]
        except _program.Error:  # a damaged recording has no tables
            return list(super().__dir__())

    @property
    def operators(self) -> Table:
        """The rows of `calls` that are operators: how often each ran, and its times in nanoseconds."""
        return self['calls'].where(category='cpu_op')

    @cached_property
    def report(self) -> Dict[str, Any]:
        """The whole result, as `mxbpf report -f json` prints it; `mxbpf --generate schema` describes it."""
        report: Dict[str, Any] = _program.as_json(['report', self.path, '-q'])
        return report

    @property
    def findings(self) -> List[Finding]:
        """What bounds the job, the largest first."""
        return [_filled(Finding, row) for row in self.report.get('findings', [])]

    @property
    def loss(self) -> Loss:
        """What was not seen."""
        return _filled(Loss, {**self.report['window'], **self.report['loss'], 'late': self.report['late']})

    @property
    def cost(self) -> Optional[Cost]:
        """What profiling cost the job; None if that is not known."""
        return _filled(Cost, self.report['cost']) if 'cost' in self.report else None

    @property
    def duration_ns(self) -> int:
        """How long the recording took, in nanoseconds."""
        return int(self.report['window']['duration_ns'])

    def text(self, *options: str) -> str:
        """Returns the tables for people: `print(recording.text('--sort', 'p99', '--top', '20'))`."""
        return _program.output(['report', self.path, '-q', *options])

    def page(self) -> str:
        """Returns the page for a browser, as HTML."""
        return _program.output(['report', self.path, '-q', '-f', 'html'])

    def save(self, path: Union[str, 'os.PathLike[str]']) -> None:
        """Copies the recording to a file."""
        shutil.copyfile(self.path, path)

    def __repr__(self) -> str:
        target = self.report['target']
        seconds = self.duration_ns / 1e9
        about = (target['pid'], _program.printable(target['comm']), seconds, self.loss)
        text = '<mxbpf recording of pid %d (%s): %.3g s, %s' % about
        if self.cost and seconds:
            text += ', cost %.1f %% of a CPU' % (100 * self.cost.added_cpu_ns / self.duration_ns)
        return text + '>'

    def _repr_html_(self) -> str:
        return inline(self.page())


def inline(page: str) -> str:
    """Puts a page into a frame of its own. Its script runs there, and can reach nothing of the notebook.

    Without the base, links to parts of the page would lead to the address of the notebook.
    """
    page = page.replace('<head>', '<head><base href="about:srcdoc">', 1)
    return (
        '<iframe sandbox="allow-scripts" style="width: 100%%; height: 45em; border: 1px solid #8888; resize: vertical" '
        'title="mxbpf" srcdoc="%s"></iframe>' % html.escape(page)
    )


def path_of(recording: Union[str, 'os.PathLike[str]', Recording]) -> str:
    return recording.path if isinstance(recording, Recording) else os.path.abspath(recording)


def read(path: Union[str, 'os.PathLike[str]']) -> Recording:
    """Opens a recording that `mxbpf record` wrote."""
    recording = Recording(path)
    recording.report  # fails now if the file is no recording
    return recording


def diff(a: Union[str, 'os.PathLike[str]', Recording], b: Union[str, 'os.PathLike[str]', Recording], options: Union[str, Sequence[str]] = ()) -> Dict[str, Any]:
    """Compares two recordings, and returns what `mxbpf diff -f json` prints: whether b is faster, where, and whether it is certain."""
    result: Dict[str, Any] = _program.as_json(['diff', path_of(a), path_of(b), '-q', *_program.words(options)])
    return result


def jobs(sudo: bool = False) -> List[Dict[str, Any]]:
    """Returns the processes that can be profiled, and those that cannot with the reason, as `mxbpf list -f json` prints them."""
    found: List[Dict[str, Any]] = _program.as_json(['list'], sudo)['processes']
    return found

# SPDX-License-Identifier: Apache-2.0
"""What planted causes share. A program with a cause is started as NAME.py [--healthy] and knows nothing of mxbpf. It imports what
it needs, calls begin(), and then works as long as going() says. --healthy: the same job without the cause."""
import os
import select
import sys

HEALTHY = '--healthy' in sys.argv


def begin(*pids):
    """Prints "ready PID..." and waits for a line. pids: processes that mxbpf may be pointed at; without any, this one."""
    print('ready', *(pids or [os.getpid()]), flush=True)
    if not sys.stdin.readline():
        sys.exit()


def going():
    """Until the one who started the program closes its standard input."""
    return not select.select([sys.stdin], [], [], 0)[0]

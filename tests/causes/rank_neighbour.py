# SPDX-License-Identifier: Apache-2.0
"""Another process runs on the CPU that rank 2 of four is bound to."""
import os
import subprocess
import sys

import ranks

FINDING = {'straggler', 'late_rank'}
SAYS = 'cruncher'
TWIN = False


def ready(late):
    if late:
        cpu = min(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cpu})
        for _ in range(3):
            subprocess.Popen(['setsid', '-f', sys.executable, '-c', f"""
import os
open('/proc/self/comm', 'w').write('cruncher')
while os.path.exists('/proc/{os.getpid()}'):
    sum(range(1000000))
"""])


ranks.run(ready=ready)

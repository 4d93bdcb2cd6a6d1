# SPDX-License-Identifier: Apache-2.0
"""The control group of rank 2 of four has a tenth of a CPU."""
import os

import ranks

FINDING = {'straggler', 'late_rank', 'throttled'}  # the last one names the group, in a session on the rank itself
SAYS = 'CPU limit'
WHO = False
TWIN = False

OF_CPU = '/sys/fs/cgroup/cpu'
OLD = os.path.exists(f'{OF_CPU}/cgroup.procs')
GROUP = f"{OF_CPU if OLD else '/sys/fs/cgroup'}/mxbpf-rank-{os.getppid() if 'RANK' in os.environ else os.getpid()}"
LIMITS = {'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': '10000'} if OLD else {'cpu.max': '10000 100000'}


def ready(late):
    if not late:
        return
    os.mkdir(GROUP)
    for name, text in (LIMITS | {'cgroup.procs': str(os.getpid())}).items():
        with open(f'{GROUP}/{name}', 'w', encoding='utf-8') as f:
            f.write(text)


def step(late, n, loss):
    sum(k * k for k in range(60000))


ranks.run(step, ready=ready)
if os.path.exists(GROUP):
    os.rmdir(GROUP)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts toys (tests/toy) as the processes of three jobs: toy_jobs.py TOY CGROUP. CGROUP: the directory of the third job's
control group; "": none. While the toys hold, it writes what /proc and they themselves tell of each to seen.json."""
import json
import os
import signal
import subprocess
import sys

toy, cgroup = sys.argv[1:]


def start(rounds, env, group=''):
    def prepare():
        # The toy works as soon as it has loaded its library, because the signal survives exec.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        os.kill(os.getpid(), signal.SIGUSR1)
        if group:
            with open(group + '/cgroup.procs', 'w') as f:
                f.write(str(os.getpid()))

    return subprocess.Popen([toy, str(rounds), '1', 'hold'], env=env, stdout=subprocess.PIPE, text=True, preexec_fn=prepare)


def look_at(process):
    own = [process.stdout.readline() for _ in ('ready', 'caught', 'counts')]
    path = '/proc/%d/' % process.pid
    with open(path + 'environ') as environ, open(path + 'cgroup') as groups:
        return {'pid': process.pid, 'uid': os.stat(path).st_uid, 'cgroup': groups.read(), 'counts': json.loads(own[2]),
                'env': dict(v.split('=', 1) for v in environ.read().split('\0') if v)}


def rank(number, job, **more):
    return dict(more, RANK=str(number), LOCAL_RANK=str(number % 8), WORLD_SIZE='16', GROUP_RANK=str(number // 8), SLURM_JOB_ID=job,
                MASTER_ADDR='here', MASTER_PORT='29500')


processes = [start(10, rank(10, '11', POD_NAME='a "pod", \x1b[31mred', POD_NAMESPACE='ml', HOSTNAME='p' * 400)),
             start(20, rank(2, '11')),
             start(30, rank(2, '12', SLURM_PROCID='7', RANKS='9')),
             start(40, {'LOCAL_RANK': 'none'}, cgroup)]
with open('seen.json', 'w') as f:
    json.dump([look_at(p) for p in processes], f)
for p in processes:
    p.send_signal(signal.SIGUSR1)
sys.exit(any([p.wait() for p in processes]))

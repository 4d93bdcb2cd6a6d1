# SPDX-License-Identifier: Apache-2.0
"""A table of embeddings that is larger than the memory of the control group. Requires root, a controller of memory, and a swap
file that the program may make. In the twin the group has no limit."""
import os
import subprocess

import torch

from common import HEALTHY, begin, going

FINDING = 'swapping'
SWAP = f'/var/tmp/swapping.{os.getpid()}'
V1 = '/sys/fs/cgroup/memory'
TOP = V1 if os.path.isdir(V1) else '/sys/fs/cgroup'
LIMIT = 'memory.limit_in_bytes' if TOP == V1 else 'memory.max'
GROUP = f'{TOP}/swapping.{os.getpid()}'


def write(path, text):
    with open(path, 'w', encoding='utf-8') as f:
        f.write(str(text))


def limit():
    with open(SWAP, 'wb') as f:
        os.posix_fallocate(f.fileno(), 0, 512 << 20)
    os.chmod(SWAP, 0o600)
    subprocess.run(['mkswap', SWAP], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['swapon', SWAP], check=True)
    write(f'{GROUP}/{LIMIT}', 120 << 20)


os.mkdir(GROUP)
with open('/proc/self/cgroup', encoding='utf-8') as own:
    mine = next(line.split(':', 2)[2].strip() for line in own if (':memory:' in line) == (TOP == V1))
write(f'{GROUP}/cgroup.procs', os.getpid())
try:
    torch.set_num_threads(1)
    table = torch.ones(200_000, 256)
    net = torch.nn.Linear(256, 16)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    if not HEALTHY:
        limit()
    begin()
    while going():
        x = table[torch.randint(0, len(table), (256,))]  # CAUSE
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
finally:
    if os.path.exists(SWAP):
        write(f'{GROUP}/{LIMIT}', 4 << 30)
        subprocess.run(['swapoff', SWAP], check=False)
        os.remove(SWAP)
    write(f'{TOP}{mine}/cgroup.procs', os.getpid())
    os.rmdir(GROUP)

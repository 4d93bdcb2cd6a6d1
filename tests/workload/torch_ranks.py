# SPDX-License-Identifier: Apache-2.0
"""A rank of a distributed job with two forked loader workers, and the comparison of its account with mxbpf's.

torch_ranks.py DIR         as a rank of torchrun: writes the counts of torch.profiler to DIR/rank.*, and each worker its calls to
                           DIR/worker.*
torch_ranks.py DIR JSON    compares the sum of all with the tables of mxbpf
"""
import glob
import json
import os
import sys

HERE = sys.argv[1]
# Operators that ranks call only while torch.profiler looks, and workers never.
OF_RANKS = ('aten::cosh_', 'aten::linear', 'aten::addmm', 'Optimizer.step#SGD.step', 'aten::mse_loss', 'MseLossBackward0')


def compare(path):
    with open(path) as f:
        tables = json.load(f)['tables']
    mine, theirs = {}, {}
    for row in tables['operator'] + tables.get('user annotation', []):
        mine[row['name']] = mine.get(row['name'], 0) + row['count']
    files = glob.glob(HERE + '/rank.*')
    for name in files:
        with open(name) as f:
            for key, count in json.load(f).items():
                theirs[key] = theirs.get(key, 0) + count
    workers = glob.glob(HERE + '/worker.*')
    called = 0
    for name in workers:
        with open(name) as f:
            called += sum(int(line) for line in f)
    print('%d ranks, %d workers' % (len(files), len(workers)))
    wrong = ['%s: %d, torch.profiler %d' % (name, mine.get(name, 0), theirs.get(name, 0))
             for name in OF_RANKS if mine.get(name, 0) != theirs.get(name, 0) or not theirs.get(name)]
    # Of the other operators, mxbpf also sees those outside torch.profiler's window.
    wrong += ['%s: only %d, torch.profiler %d' % (name, mine.get(name, 0), count) for name, count in theirs.items()
              if mine.get(name, 0) < count]
    if mine.get('aten::sinh_', 0) != called:
        wrong.append('aten::sinh_: %d, called %d' % (mine.get('aten::sinh_', 0), called))
    print('\n'.join(wrong))
    return len(files) != 4 or len(workers) != 8 or bool(wrong)


def rank():
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.data import DataLoader, Dataset

    class Items(Dataset):
        def __len__(self):
            return 32

        def __getitem__(self, i):
            x = torch.zeros(4)
            for _ in range(i + 1):
                x.sinh_()
            with open('%s/worker.%d' % (HERE, os.getpid()), 'a') as f:
                f.write('%d\n' % (i + 1))
            return x

    torch.set_num_threads(1)
    dist.init_process_group('gloo')
    number = dist.get_rank()
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=.1)
    with profile(activities=[ProfilerActivity.CPU]) as p:
        for batch in DataLoader(Items(), batch_size=4, num_workers=2, multiprocessing_context='fork'):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(batch), batch).backward()
            optimizer.step()
        for _ in range(100 + number):
            torch.ones(2).cosh_()
    with open('%s/rank.%d' % (HERE, number), 'w') as f:
        json.dump({e.key: e.count for e in p.key_averages()}, f)
    dist.destroy_process_group()


if __name__ == '__main__':
    sys.exit(compare(sys.argv[2]) if len(sys.argv) > 2 else rank())

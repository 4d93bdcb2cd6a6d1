# SPDX-License-Identifier: Apache-2.0
"""Short epochs with workers of a data loader that are started anew for each of them, and import for a while. Those of its twin
stay."""
import time

FINDING = 'epoch_start'
ALSO = {'tiny_operators', 'own_threads', 'page_faults', 'data_wait'}

if __name__ != '__main__':  # a worker imports this file
    time.sleep(0.5)


class Items:
    def __len__(self):
        return 2000

    def __getitem__(self, i):
        return i


def main():
    import torch
    from torch.utils.data import DataLoader

    from common import HEALTHY, begin, going

    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(32, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = DataLoader(Items(), batch_size=16, num_workers=1, persistent_workers=HEALTHY, multiprocessing_context='spawn')
    for _ in loader:
        pass
    begin()
    while going():
        for rows in loader:  # CAUSE
            net(torch.randn(len(rows), 32)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == '__main__':
    main()

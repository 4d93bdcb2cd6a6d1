# SPDX-License-Identifier: Apache-2.0
"""Makes small data in the formats that the programs read, in the working directory, equal in each run."""
import os
import random
import struct

WORDS = 'a of the one two house night street came went saw little old man dog said'.split()


def sentences(count, seed):
    rng = random.Random(seed)
    return [' '.join(rng.choice(WORDS) for _ in range(rng.randrange(4, 18))) for _ in range(count)]


def write(name, text):
    os.makedirs('data', exist_ok=True)
    with open(os.path.join('data', name), 'wb' if isinstance(text, bytes) else 'w') as f:
        f.write(text)


def sherlock():
    for part, count in (('train', 60), ('test', 20)):
        write('sherlockholmes.%s.txt' % part, '\n'.join(sentences(count, part)) + '\n')


def words():
    for part, count in (('train', 60), ('valid', 30), ('test', 30)):
        write(part + '.txt', '\n'.join(sentences(count, part)) + '\n')


def mnist():
    rng = random.Random(1)
    for part, count in (('train', 600), ('t10k', 200)):
        write(part + '-images-idx3-ubyte', struct.pack('>4I', 2051, count, 28, 28) + rng.randbytes(count * 784))
        write(part + '-labels-idx1-ubyte', struct.pack('>2I', 2049, count) + bytes(i % 10 for i in range(count)))


def avazu():
    rng = random.Random(1)
    for name, count in (('avazu-app', 320), ('avazu-app.t', 96)):
        rows = ('%d %s' % (rng.randrange(2), ' '.join('%d:1' % i for i in sorted(rng.sample(range(1001), 8)))) for _ in range(count))
        write(name, '\n'.join(rows) + '\n')


MAKERS = {None: lambda: None, 'sherlock': sherlock, 'words': words, 'mnist': mnist, 'avazu': avazu}


def make(kind):
    MAKERS[kind]()

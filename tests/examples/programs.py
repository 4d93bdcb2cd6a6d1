# SPDX-License-Identifier: Apache-2.0
"""Examples and tutorials that the frameworks publish. None of them is part of this repository: a row has the repository, the
commit and the SHA-256 of each file, and files.py finds them.

Programs are never edited on disk. `edits` are replacements in the text of the main file before it runs, for programs without an
argument for the length of training. Each must occur exactly once."""
import collections

Program = collections.namedtuple('Program', 'runtime repository commit main files args data edits saves')

MXNET = 'apache/mxnet', '3f8f3be9987e259491ddc5a78aa9c6903e0b21e3'  # 1.9.1
TORCH = 'pytorch/examples', '77f55b912142e11fcfdf5b530231fb9c52f181e8'


def program(runtime, source, main, files, args='', data=None, edits=(), saves=()):
    return Program(runtime, *source, main, files, args.split(), data, edits, saves)


PROGRAMS = {
    # Eager Gluon: some hundred tiny operators per sentence, with waits for nearly all of them.
    'lstm_crf': program('mxnet', MXNET, 'example/gluon/lstm_crf/lstm_crf.py', {
        'example/gluon/lstm_crf/lstm_crf.py': 'cc96efde1cf3a50cad0f63a4ff5ea068409772859003fa01c6e6262d7b2f3366',
    }, edits=[('range(300)', 'range(6)')]),
    # Symbols: a BucketingModule with six graphs, each of which is bound at its first sentence.
    'lstm_bucketing': program('mxnet', MXNET, 'example/rnn/bucketing/lstm_bucketing.py', {
        'example/rnn/bucketing/lstm_bucketing.py': 'dad054bad3c4e5984928ee87aa5f6c1649e9b598316d10efac843c59ce1d4bd2',
    }, '--num-layers 1 --num-hidden 16 --num-embed 16 --num-epochs 2 --batch-size 4 --disp-batches 5 --kv-store local',
        data='sherlock'),
    # Operators written in Python, in a Module with MXNet's own iterator over MNIST files.
    'custom_softmax': program('mxnet', MXNET, 'example/numpy-ops/custom_softmax.py', {
        'example/numpy-ops/custom_softmax.py': 'df246972a177a36deb25de501aa32c6cffb9f6496137a1b68bfd7e08288c37a4',
    }, data='mnist', edits=[('num_epoch=10', 'num_epoch=2')]),
    # Sparse arrays, a KVStore, LibSVMIter, and a loss written in Python.
    'sparse_linear': program('mxnet', MXNET, 'example/sparse/linear_classification/train.py', {
        'example/sparse/linear_classification/train.py': '3bcd357b92a40533e59fb02dac1b20a9934d5fbe9171cdf449f5ef3f7fb24d71',
        'example/sparse/linear_classification/data.py': '33f4b4ad5e50ab04cda9af76932b77f129aeedbd26fd7161dcb703cc6c58981d',
        'example/sparse/linear_classification/linear_model.py': '50b292f3f8006d54b8828366b04a5f0e0d38a7d4520ca03c5d8cc15fc170f770',
        'example/sparse/linear_classification/weighted_softmax_ce.py': 'f811ce67acff1d062dba3d86475f7ba62f7b79d9b5c4896a1729c9bb9b3fa1cd',
    }, '--num-epoch 1 --batch-size 32 --kvstore local', data='avazu', edits=[("'num_features': 1000001", "'num_features': 1001")]),
    # An LSTM with its own gradient steps instead of an optimizer.
    'language_lstm': program('torch', TORCH, 'word_language_model/main.py', {
        'word_language_model/main.py': '391de12bb7c6e07dbb105d47d017632bf80c01d2e5b25adbf83da9cdcdd5a862',
        'word_language_model/model.py': 'e4451a33e9b16953004bc639d736d14f42a2b21f2939ccabe4cff10d3c40b74c',
        'word_language_model/data.py': '15784815a6bd18e9b25eadf6ae049915f88d4fb8faebeba9d83ae6ec8e19883d',
    }, '--data data --model LSTM --emsize 16 --nhid 16 --nlayers 2 --epochs 2 --batch_size 4 --bptt 8 --log-interval 5',
        data='words', saves=['model.pt']),
    # The same program's transformer, trained by AdamW.
    'language_transformer': program('torch', TORCH, 'word_language_model/main.py', {
        'word_language_model/main.py': '391de12bb7c6e07dbb105d47d017632bf80c01d2e5b25adbf83da9cdcdd5a862',
        'word_language_model/model.py': 'e4451a33e9b16953004bc639d736d14f42a2b21f2939ccabe4cff10d3c40b74c',
        'word_language_model/data.py': '15784815a6bd18e9b25eadf6ae049915f88d4fb8faebeba9d83ae6ec8e19883d',
    }, '--data data --model Transformer --use-optimizer --lr 0.01 --emsize 16 --nhid 16 --nlayers 2 --epochs 2 --batch_size 4 '
        '--bptt 8 --log-interval 5', data='words', saves=['model.pt']),
    # Two networks, two optimizers, and worker processes that load data (stand_in/torchvision makes the images).
    'dcgan': program('torch', TORCH, 'dcgan/main.py', {
        'dcgan/main.py': '4f6aef3527822a32bcca366e336e941a67d04081f66f568cc24a0a642b5f9555',
    }, '--dataset fake --workers 2 --batchSize 4 --ngf 4 --ndf 4 --nz 8 --niter 2 --manualSeed 1',
        saves=['netG_epoch_1.pth', 'netD_epoch_1.pth']),
    # Two processes started with spawn, and remote procedure calls between their threads.
    'rpc_rnn': program('torch', TORCH, 'distributed/rpc/rnn/main.py', {
        'distributed/rpc/rnn/main.py': '98c34ea53277e59b3297e9ecfe43d37c271c22d2e69e5adb3d07a5de3ea46691',
        'distributed/rpc/rnn/rnn.py': '8875d02d530390083acb9b3bfc8533b629b3b13d0fc9880a2e00191cab8f0320',
    }),
}

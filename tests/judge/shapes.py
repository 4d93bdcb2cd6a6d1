#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the rows of mxbpf --shapes --by shape with an MXNet program's own account of its operators' arrays.

  shapes.py FORM --says SAYS.json           runs the program between the gates of gate.py, and writes its account
  shapes.py FORM --against SAYS.json ROWS   compares; exit 0: rows and counts are equal

The account comes from nd.shape, dtype and stype of inputs and outputs. FORM: eager, or a net as hybrid, static or module,
forward; with -backward also backward.
"""
import argparse
import collections
import json
import os
import sys

import gate


class Says:
    def __init__(self):
        self.rows = collections.Counter()
        self.flops = {}

    def add(self, name, ins, outs, flops=None, times=1):
        """ins, outs: (shape, type) each; a shape may be a word."""
        row = json.dumps([name, [i[0] for i in ins], [i[1] for i in ins], [o[0] for o in outs], [o[1] for o in outs]])
        self.rows[row] += times
        if flops is not None:
            self.flops[row] = flops

    def write(self, path):
        with open(path, 'w') as f:
            json.dump({'rows': self.rows, 'flops': self.flops}, f, indent=0)


def type_of(dtype, stype='default'):
    import numpy as np
    return np.dtype(dtype).name + ('' if stype == 'default' else ' ' + stype)


def look(x):
    return list(x.shape), type_of(x.dtype, x.stype)


# ---- eager

def conv_flops(out, weight):
    """By definition: the filter's operations for each output element."""
    n = 2
    for d in out.shape:
        n *= d
    for d in weight.shape[1:]:
        n *= d
    return n


def size(shape):
    n = 1
    for d in shape:
        n *= d
    return n


class Eager:
    def __init__(self, says):
        import mxnet as mx
        self.mx, self.nd, self.says = mx, mx.nd, says
        self.made = {}

    def prepare(self):
        nd = self.nd
        m = self.made
        for d in ('float16', 'float32', 'float64', 'int8', 'uint8', 'int32', 'int64'):
            m[d] = nd.ones((2, 3), dtype=d)
        m['bool'] = nd.array([[1, 0, 1]], dtype='bool')
        for n in range(1, 8):
            m['%dd' % n] = nd.ones(tuple(range(1, n + 1)))
        m['x'], m['w'], m['b'] = nd.ones((2, 4, 9, 9)), nd.ones((6, 2, 3, 3)), nd.ones((6,))
        m['w1'], m['x1'] = nd.ones((5, 4, 3)), nd.ones((2, 4, 11))
        m['dw'] = nd.ones((4, 3, 3, 3))
        m['fw'], m['fb'] = nd.ones((7, 4 * 9 * 9)), nd.ones((7,))
        m['a'], m['c'], m['at'] = nd.ones((3, 5)), nd.ones((5, 4)), nd.ones((5, 3))
        m['v'], m['ba'], m['bc'] = nd.ones((5,)), nd.ones((6, 3, 5)), nd.ones((6, 4, 5))
        m['csr'] = nd.ones((4, 5)).tostype('csr')
        m['rsp'] = nd.ones((4, 5)).tostype('row_sparse')
        m['four'] = nd.ones((4, 5))
        m['many'] = [nd.ones((2, k % 3 + 1)) for k in range(40)]
        m['lots'] = [nd.ones((2,)) for k in range(200)]
        m['index'] = nd.array([0, 1, 1])
        m['rows'] = nd.ones((3, 2))
        nd.waitall()

    def call(self, name, fn, ins, flops=None, shown=None, shown_out=None, **kw):
        out = fn(*ins, **kw)
        outs = out if isinstance(out, (list, tuple)) else [out]
        self.says.add(name, [look(i) for i in ins] if shown is None else shown,
                      [look(o) for o in outs] if shown_out is None else shown_out, flops)
        return out

    def types(self):
        for d in ('float16', 'float32', 'float64', 'int8', 'uint8', 'int32', 'int64'):
            self.call('elemwise_add', self.nd.elemwise_add, [self.made[d], self.made[d]])
        self.call('Cast', self.nd.cast, [self.made['float64']], dtype='bool')
        self.call('Cast', self.nd.cast, [self.made['bool']], dtype='int8')

    def dims(self):
        for n in range(1, 8):
            self.call('negative', self.nd.negative, [self.made['%dd' % n]])
        self.call('expand_dims', self.nd.expand_dims, [self.made['4d']], axis=0)  # 4 dimensions in, 5 out
        self.call('sum', self.nd.sum, [self.made['5d']], axis=(1, 2))
        with self.mx.util.np_shape(True):
            self.call('sum', self.nd.sum, [self.made['4d']])  # no dimension at all
            self.call('negative', self.nd.negative, [self.nd.zeros((0, 3))])
        self.call('slice_axis', self.nd.slice_axis, [self.made['3d']], axis=2, begin=0, end=2)

    def products(self):
        m, nd = self.made, self.nd
        out = nd.Convolution(m['x'], m['w'], m['b'], kernel=(3, 3), num_filter=6, num_group=2, stride=(2, 2))
        ins = [look(m[k]) for k in ('x', 'w', 'b')]
        self.says.add('Convolution', ins, [look(out)], conv_flops(out, m['w']))
        out = nd.Convolution(m['x1'], m['w1'], kernel=(3,), num_filter=5, no_bias=True, pad=(1,))
        self.says.add('Convolution', [look(m['x1']), look(m['w1'])], [look(out)], conv_flops(out, m['w1']))
        out = nd.Deconvolution(m['x'], m['dw'], kernel=(3, 3), num_filter=3, stride=(2, 2))
        self.says.add('Deconvolution', [look(m['x']), look(m['dw'])], [look(out)], 2 * size(m['x'].shape) * 3 * 9)
        self.call('FullyConnected', nd.FullyConnected, [m['x'], m['fw'], m['fb']], num_hidden=7, flops=2 * 2 * 7 * 324)
        self.call('dot', nd.dot, [m['a'], m['c']], flops=2 * 3 * 5 * 4)
        self.call('dot', nd.dot, [m['at'], m['c']], transpose_a=True, flops=2 * 3 * 5 * 4)
        self.call('dot', nd.dot, [m['v'], m['v']], flops=2 * 5)
        self.call('dot', nd.dot, [m['a'], m['v']], flops=2 * 3 * 5)
        self.call('dot', nd.dot, [m['ba'], m['c']], flops=2 * 6 * 3 * 5 * 4)
        self.call('batch_dot', nd.batch_dot, [m['ba'], m['bc']], transpose_b=True, flops=2 * 6 * 3 * 5 * 4)

    def sparse(self):
        m, nd = self.made, self.nd
        self.call('dot', nd.sparse.dot, [m['csr'], m['c']], flops='unknown')
        self.call('cast_storage', nd.cast_storage, [m['four']], stype='csr')
        self.call('cast_storage', nd.cast_storage, [m['rsp']], stype='default')
        self.call('elemwise_add', nd.sparse.elemwise_add, [m['rsp'], m['rsp']])

    def lists(self):
        m, nd = self.made, self.nd
        self.call('Concat', nd.concat, m['many'], dim=1)
        self.call('add_n', nd.add_n, m['lots'], shown=[['too many', '']])
        self.call('SliceChannel', nd.split, [m['4d']], num_outputs=4, axis=3)

    def unknown(self):
        self.call('_contrib_boolean_mask', self.nd.contrib.boolean_mask, [self.made['rows'], self.made['index']],
                  shown_out=[['unknown', '']])

    def run(self):
        for part in (self.types, self.dims, self.products, self.sparse, self.lists, self.unknown):
            part()
            self.nd.waitall()


# ---- a net, whose graph the library runs in pieces of its own choice

class Net:
    """The net runs layer by layer for the account of each one's shapes. The measured net is the same in the given form."""

    def __init__(self, says, form, backward):
        import mxnet as mx
        from mxnet.gluon import nn
        numpy = not hasattr(mx, 'mod')  # 2.0: arrays of nets are numpy's
        if numpy:
            mx.npx.set_np()
        self.mx, self.says, self.form, self.backward = mx, says, form, backward
        self.layers = [nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation('relu'), nn.MaxPool2D(), nn.Dropout(0.5),
                       nn.Dense(5), nn.Dense(3, use_bias=False)]
        self.net = nn.HybridSequential()
        self.net.add(*self.layers)
        self.net.initialize()
        self.x = (mx.np if numpy else mx.nd).ones((2, 3, 8, 8))

    def prepare(self):
        mx = self.mx
        self.net(self.x)
        self.seen = [self.x]
        for layer in self.layers:
            self.seen.append(layer(self.seen[-1]))
        if self.form == 'module':
            sym = self.net(mx.sym.var('data'))
            self.module = mx.mod.Module(sym, data_names=['data'], label_names=None, context=mx.cpu())
            self.module.bind([('data', self.x.shape)], for_training=True)
            params = {p.name: p.data() for p in self.net.collect_params().values()}
            self.module.init_params(arg_params=params, aux_params=params, allow_missing=False, allow_extra=True)
            self.batch = mx.io.DataBatch([self.x])
            self.grad = mx.nd.ones(self.seen[-1].shape)
        else:
            self.net.hybridize(static_alloc=self.form == 'static', static_shape=self.form == 'static')
        self.step()  # the first step makes its graphs
        mx.nd.waitall()

    def step(self):
        if self.form == 'module':
            self.module.forward(self.batch, is_train=True)
            if self.backward:
                self.module.backward([self.grad])
            return
        with self.mx.autograd.record():
            out = self.net(self.x)
        if self.backward:
            out.backward()

    def say(self, times):
        def param(layer, *names):
            return [look(getattr(layer, n).data()) for n in names]

        def add(name, ins, outs, flops=None):
            self.says.add(name, ins, outs, flops, times)

        s = [look(x) for x in self.seen]
        conv, bn, _, _, _, d1, d2 = self.layers
        channels = param(bn, 'gamma')[0]
        products = []
        for name, layer, i in (('Convolution', conv, 0), ('FullyConnected', d1, 5), ('FullyConnected', d2, 6)):
            args = param(layer, *(['weight', 'bias'] if layer.bias is not None else ['weight']))
            weight = args[0][0]
            flops = 2 * size(s[i + 1][0]) * size(weight[1:])
            products.append((name, layer, i, args, flops))
            add(name, [s[i]] + args, [s[i + 1]], flops)
        add('BatchNorm', [s[1]] + param(bn, 'gamma', 'beta', 'running_mean', 'running_var'), [s[2], channels, channels])
        add('Activation', [s[2]], [s[3]])
        # Pooling may also have a workspace for its gradient, which the program does not know.
        add('Dropout', [s[4]], [s[5], s[5]])
        for name, layer, i, args, flops in products if self.backward else ():
            # The first layer's data comes from the program and needs no gradient.
            first = i == 0
            taken = args if layer is conv else args[:1]  # a gradient of FullyConnected's needs no bias
            add('_backward_' + name, [s[i + 1], s[i]] + taken, [['unwanted', ''] if first else s[i]] + args,
                flops if first else 2 * flops)

    def run(self):
        for _ in range(3):
            self.step()
        self.mx.nd.waitall()
        self.say(3)


# ---- against the rows

def same(says, rows):
    """Compares rows and counts of the operators in the account, and the estimates that it has."""
    names = {json.loads(row)[0] for row in says['rows']}
    got, bad = collections.Counter(), []
    for r in rows:
        if r['name'] not in names:
            continue
        row = json.dumps([r['name'], r['shapes'], r['types'], r['output_shapes'], r['output_types']])
        got[row] += r['count']
        flops = says['flops'].get(row)
        if flops == 'unknown' and not (r.get('flops_unknown') == r['count'] and 'flops' not in r):
            bad.append('an estimate where there can be none: %s' % row)
        elif flops not in (None, 'unknown') and (r.get('flops'), r.get('flops_calls')) != (flops * r['count'], r['count']):
            bad.append('%s: %s flops of %s calls, not %d each' % (row, r.get('flops'), r.get('flops_calls'), flops))
    for row in sorted(set(says['rows']) | set(got)):
        if says['rows'].get(row, 0) != got[row]:
            bad.append('%s: %d times, not %d' % (row, got[row], says['rows'].get(row, 0)))
    return bad


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('form')
    p.add_argument('--says', metavar='FILE')
    p.add_argument('--against', nargs=2, metavar='FILE')
    args = p.parse_args()
    if args.against:
        with open(args.against[0]) as says, open(args.against[1]) as rows:
            bad = same(json.load(says), json.load(rows)['tables']['operator'])
        sys.exit('\n'.join(bad) or 0)
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    says = Says()
    form, _, backward = args.form.partition('-')
    program = Eager(says) if form == 'eager' else Net(says, form, bool(backward))
    program.prepare()
    gate.begin()
    program.run()
    gate.end()
    says.write(args.says)


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: Apache-2.0
"""Deterministic programs for the comparison, which together use every way into PyTorch's operators.

A program is a class: __init__ prepares everything, section() is measured and has the same counts in each of any number of
runs, tensors() is its result. other() is the work of a second thread, which section() runs beside its own if there is one.
"""
import sys
import threading
import time

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 3


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.norm, self.pool, self.dropout = nn.BatchNorm2d(8), nn.MaxPool2d(2), nn.Dropout(0.5)
        self.full1, self.full2 = nn.Linear(256, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.norm(self.conv1(x))))
        x = self.pool(F.relu(self.conv2(x))).flatten(1)
        return F.log_softmax(self.full2(self.dropout(F.gelu(self.full1(x)))), dim=1)


class Training:
    """Training steps of a net: a loader, an annotation, clipped gradients, a schedule, the loss read back; then evaluation."""

    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer
        self.data = torch.randn(8 * STEPS, 3, 16, 16)
        self.label = torch.arange(8 * STEPS) % 10
        self.loader = DataLoader(TensorDataset(self.data, self.label), 8)
        self.schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)

    def step(self, data, label):
        self.optimizer.zero_grad()
        with torch.profiler.record_function('forward of the net'):
            loss = F.nll_loss(self.net(data), label)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    def section(self):
        for data, label in self.loader:
            self.step(data, label)
        self.schedule.step()
        self.net.eval()
        with torch.no_grad():
            self.net(self.data[:8]).argmax(1).eq(self.label[:8]).sum().item()
        self.net.train()

    def tensors(self):
        return list(self.net.state_dict().values())


def training_with(kind, **options):
    class With(Training):
        def __init__(self):
            net = ConvNet()
            super().__init__(net, kind(net.parameters(), lr=0.01, **options))
    return With


class Transformer:
    """An encoder with padding, trained in mixed precision and evaluated on the fused path with nested tensors."""

    def __init__(self):
        self.embed = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, dropout=0.1, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(32, 50)
        self.modules = nn.ModuleList([self.embed, self.encoder, self.head])
        self.optimizer = torch.optim.AdamW(self.modules.parameters(), lr=1e-3)
        self.tokens = torch.randint(0, 50, (4, 12))
        self.padding = torch.zeros(4, 12, dtype=torch.bool)
        self.padding[1:, 9:] = True

    def run(self):
        return self.head(self.encoder(self.embed(self.tokens), src_key_padding_mask=self.padding))

    def section(self):
        for _ in range(STEPS):
            self.optimizer.zero_grad()
            with torch.autocast('cpu', dtype=torch.bfloat16):
                loss = F.cross_entropy(self.run().flatten(0, 1).float(), self.tokens.flatten())
            loss.backward()
            self.optimizer.step()
        self.modules.eval()
        with torch.inference_mode():
            F.softmax(self.run(), -1).amax(-1).tolist()
        self.modules.train()

    def tensors(self):
        return list(self.modules.state_dict().values())


class Compiled(Training):
    """torch.compile with its C++ kernels, forward and backward."""

    def __init__(self):
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(784, 10), nn.LogSoftmax(1))
        super().__init__(net, torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9))
        self.net.forward = torch.compile(self.net.forward)


@torch.jit.script
def scripted_loop(x, n: int):
    for i in range(n):
        if i % 2 == 0:
            x = torch.relu(x) + i
        else:
            x = torch.mm(x, x).tanh()
    return x


class Script:
    """Boxed operators: TorchScript's interpreter, traced modules, torch.ops."""

    def __init__(self):
        self.x = torch.randn(6, 6)
        self.weight = torch.randn(6, 6, requires_grad=True)
        self.traced = torch.jit.trace(nn.Sequential(nn.Linear(6, 6), nn.Sigmoid()), self.x)
        self.result = None

    def section(self):
        for _ in range(STEPS):
            self.weight.grad = None
            y = scripted_loop(self.x @ self.weight, 4).sum() + self.traced(self.x).sum()
            y.backward()
        with torch.no_grad():
            z = torch.ops.aten.mm(self.x, self.x)
            torch.ops.aten.add_.Tensor(z, z)
            self.result = torch.ops.aten.sum.dim_IntList(z, [0])

    def tensors(self):
        return [self.weight.grad, self.result, *self.traced.state_dict().values()]


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 2 * x * grad


class SplitTwo(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:2].clone(), x[2:].exp()

    @staticmethod
    def backward(ctx, first, second):
        return torch.cat([first, second * 3])


class Custom:
    """Custom Functions, gradients of gradients, hooks, recomputation within backward, function transforms, shared memory."""

    def __init__(self):
        self.x = torch.randn(4, 5, requires_grad=True)
        self.layer = nn.Sequential(nn.Linear(5, 5), nn.Tanh())
        self.hooked = 0
        self.result = []

    def hook(self, grad):
        self.hooked += 1
        return grad * 0.5

    def section(self):
        self.result = []
        for _ in range(STEPS):
            self.x.grad = None
            self.layer.zero_grad()
            y = Square.apply(self.x)
            y.register_hook(self.hook)
            first, second = SplitTwo.apply(y)
            (first.sum() + second.mean()).backward()

            cube = (Square.apply(self.x) * self.x).sum()
            grad, = torch.autograd.grad(cube, self.x, create_graph=True)
            (grad ** 2).sum().backward()

            torch.utils.checkpoint.checkpoint(self.layer, self.x, use_reentrant=False).sum().backward()
            self.result.append(torch.func.vmap(torch.func.grad(lambda row: row.sin().prod()))(self.x.detach()))
            self.result[-1].share_memory_()

    def tensors(self):
        return [self.x.grad, *self.result, *(p.grad for p in self.layer.parameters())]


class Threads(Training):
    """A second Python thread that trains by itself and catches exceptions. torch.profiler has no rows of it."""

    def __init__(self):
        net = ConvNet()
        super().__init__(net, torch.optim.SGD(net.parameters(), lr=0.01))
        self.inputs = torch.randn(6, 7)
        self.weight = torch.randn(7, 3, requires_grad=True)
        self.calls = {}

    def called(self, name):
        self.calls[name] = self.calls.get(name, 0) + 1

    def other(self):
        """Counts the operators that nothing else in the program calls."""
        self.calls = {}
        for _ in range(20):
            self.weight.grad = None
            y = torch.erf(Square.apply(self.inputs @ self.weight))
            self.called('aten::erf')
            y.sum().backward()
            self.called('ErfBackward0')
            self.called('SquareBackward')
            with torch.no_grad():
                self.weight.sub_(self.weight.grad, alpha=0.01)
                self.called('aten::sub_')
            try:
                torch.mv(self.inputs, self.inputs[0, :3])
            except RuntimeError:
                self.called('aten::mv')

    def section(self):
        # Both threads share one random generator, so only one of them uses dropout.
        thread = threading.Thread(target=self.other)
        thread.start()
        super().section()
        thread.join()

    def tensors(self):
        return [self.weight, *super().tensors()]


class Nested:
    """Annotations in annotations, modules in modules, one with an operator's name and some with names like MXNet's bulks, on two
    threads. The sleeps mark where the time is."""

    NAP = 0.02

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(32, 32), nn.Sequential(nn.ReLU(), nn.Linear(32, 32)))

        def forward(self, x):
            return torch.tanh(self.inner(x))

    def __init__(self):
        self.net = nn.Sequential(self.Block(), self.Block())
        self.data = torch.randn(8, 32)
        self.square = torch.randn(32, 32)

    def other(self):
        for _ in range(10):
            with torch.profiler.record_function('outer'), torch.profiler.record_function('middle'):
                with torch.profiler.record_function('inner'):
                    torch.exp(self.square)
                    time.sleep(self.NAP)

    def section(self):
        thread = threading.Thread(target=self.other)
        thread.start()
        for _ in range(5):
            with torch.profiler.record_function('aten::mm'):
                time.sleep(self.NAP)
        for _ in range(90):
            torch.mm(self.square, self.square)
        for _ in range(STEPS):
            with torch.profiler.record_function('[pl][profile]run_training_batch'):
                with torch.profiler.record_function('a,b'):
                    time.sleep(self.NAP)
                    with torch.profiler.record_function(''):
                        time.sleep(self.NAP)
                        self.net(self.data).sum().backward()
        thread.join()

    def tensors(self):
        return [p.grad for p in self.net.parameters()]


class Exceptions(Training):
    """Operators that fail and are caught between the steps of a training."""

    def __init__(self):
        net = ConvNet()
        super().__init__(net, torch.optim.Adam(net.parameters(), lr=1e-3, foreach=True))
        self.a = torch.randn(3, 4)
        self.leaf = torch.randn(3, 4, requires_grad=True)
        self.caught = 0

    def attempts(self):
        class Fails(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.exp()

            @staticmethod
            def backward(ctx, grad):
                torch.mm(grad, grad)

        yield lambda: torch.mm(self.a, self.a)
        yield lambda: F.linear(self.leaf, self.a[:, :3])
        yield lambda: F.conv2d(self.data, self.data[:, :2])
        yield lambda: self.a.add_(self.leaf[:2])
        yield lambda: self.a[torch.tensor([7])]
        yield lambda: F.embedding(torch.tensor([11]), self.a)
        yield lambda: torch.linalg.inv(torch.zeros(3, 3))
        yield lambda: Fails.apply(self.leaf * 2).sum().backward()
        yield lambda: torch.utils.checkpoint.checkpoint(lambda x: torch.mm(x, x), self.leaf, use_reentrant=False)

    def section(self):
        for data, label in self.loader:
            self.step(data, label)
            for attempt in self.attempts():
                try:
                    attempt()
                except (RuntimeError, IndexError):
                    self.caught += 1
        if self.caught % 9:
            raise RuntimeError('something did not fail')


class Forms:
    """Operators with every way to pass arguments: in registers, on the stack, by address, absent, in lists, boxed; and tensors of
    every kind."""

    def __init__(self):
        self.a, self.b = torch.randn(3, 4), torch.randn(3, 4)
        self.weight = torch.randn(3, 4, requires_grad=True)
        self.out = [torch.empty(0) for _ in range(6)]
        self.ids = torch.arange(12).reshape(3, 4)
        self.result = []

    def numbers(self, a, b):
        yield a.add(b, alpha=2)
        yield a.clamp(min=0.5)
        yield a.clamp(max=0.5)
        yield torch.nan_to_num(a, 1.0, None, 2.0)
        yield torch.nan_to_num(a)
        yield torch.logit(a.sigmoid(), eps=1e-6)
        yield torch.histc(a, bins=4, min=-1, max=1)
        yield torch.addcdiv(a, a, b.abs() + 1, value=0.5)
        yield torch.linspace(0, 1, 5)
        yield torch.arange(0, 6, 2, dtype=torch.float64)
        yield torch.full((2, 3), 1.5, dtype=torch.float64)
        yield torch.quantile(a, 0.5, dim=1)
        yield torch.logspace(0, 1, 3)
        yield a.normal_(0, 1, generator=torch.Generator().manual_seed(3))
        yield F.gelu(a, approximate='tanh')
        yield torch.isclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)

    def sizes(self, a, b):
        yield a.sum()
        yield a.sum(0)
        yield a.sum((0, 1), keepdim=True, dtype=torch.float64)
        yield torch.std_mean(a, dim=1, correction=0)
        yield torch.var(a, dim=(0, 1))
        yield a.flip(0, 1)
        yield a.roll(1, 0)
        yield torch.tensor_split(a, 2, dim=1)
        yield a.split([1, 2])
        yield a.repeat(2, 1)
        yield a.unfold(0, 2, 1)
        yield F.interpolate(a[None, None], scale_factor=2.0, mode='nearest')
        yield F.interpolate(a[None, None], size=(5, 6), mode='bilinear', align_corners=False)
        yield F.pad(a[None], (1, 1), mode='reflect')
        yield torch.fft.rfft2(a, s=(2, 4))
        yield torch.stft(a.flatten(), 4, window=torch.ones(4), return_complex=True)
        yield torch.linalg.norm(a, ord=2)
        yield torch.linalg.vector_norm(a, 3, dim=1)
        yield F.layer_norm(a, (4,))
        yield F.avg_pool2d(a[None], 2, divisor_override=3)

    def results(self, a, b):
        torch.max(a, 1, out=(self.out[0], self.ids.new_empty(0)))
        torch.linalg.qr(a, out=(self.out[1], self.out[2]))
        torch.linalg.svd(a, full_matrices=False, out=(self.out[3], self.out[4], self.out[5]))
        yield self.out[0]
        yield torch.topk(a, 2)
        yield torch.sort(a, stable=True, dim=1)
        yield torch.unique(self.ids, return_inverse=True, return_counts=True)
        yield torch.frexp(a)
        yield torch.linalg.lu_factor_ex(a @ a.T)
        yield torch.native_layer_norm(a, (4,), None, None, 1e-5)
        yield a.is_same_size(b), torch.equal(a, b), a.sum().item()
        yield torch._choose_qparams_per_tensor(a)

    def lists(self, a, b):
        yield torch.cat([a, b])
        yield torch.cat([a] * 40)
        yield torch.stack((a, b), 1)
        yield torch.einsum('ij,kj->ik', a, b)
        yield torch.block_diag(a, b)
        yield torch.meshgrid(a[0], b[0], indexing='ij')
        yield torch._foreach_add([a, b], [1.0, 2.0])
        yield torch._foreach_addcdiv([a], [a], [b.abs() + 1], [0.5])
        yield torch._foreach_norm([a, b], 2)
        yield a[self.ids[0] % 3, :, None][:, torch.tensor([True, False, True, False])]
        yield torch.bucketize(a, torch.arange(3.0), right=True)
        yield torch.histogramdd(a[:, :2], bins=[2, 2])
        a[torch.tensor([0]), 1:] = 2.0

    def kinds(self, a, b):
        yield torch.zeros(2, 1, 2, 1, 2, 1, 2).transpose(0, 6) + 1
        yield a.to_sparse() @ b.T
        yield a.to_sparse_csr().to_dense()
        yield torch.nested.nested_tensor([a, b[:2]]).to_padded_tensor(0.0)
        yield a.to(torch.complex64).conj() * 2
        yield a.bfloat16() + a.half() + a.double()
        yield torch.empty(0, 3) + 1, torch.tensor(1), torch.empty(2, 3, device='meta') + 1
        yield a.expand(2, 3, 4) * a.T.contiguous().T
        yield self.ids.to(torch.uint8) + self.ids.to(torch.int16), self.ids > 3
        yield torch.vmap(torch.sin)(a)
        yield torch.ops.aten.sum.dim_IntList(a, [0]), torch.ops.aten.cat([a, b], 1), torch.ops.aten.mean(a)
        yield F.batch_norm(a, None, None, training=True), F.embedding(self.ids, torch.randn(12, 2), padding_idx=0)
        yield F.multi_head_attention_forward(
            a[:, None], a[:, None], a[:, None], 4, 2, torch.ones(12, 4), None, None, None, False, 0.0, torch.ones(4, 4), None)[0]
        yield nn.LSTM(4, 2)(a[:, None])[0]

    def section(self):
        a, b = self.a.clone(), self.b.clone()
        with torch.no_grad():
            for form in self.numbers, self.sizes, self.results, self.lists, self.kinds:
                for _ in form(a, b):
                    pass
        torch.cat([self.weight, a], 1).prod(1).sum().backward()
        self.result = [a]

    def tensors(self):
        return [self.weight.grad, *self.result]


class Inward(torch.autograd.Function):
    """Its backward differentiates another Function of its kind, a given number of times. The last one may fail."""

    @staticmethod
    def forward(ctx, x, left, fails):
        ctx.left, ctx.fails = left, fails
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        if ctx.left:
            with torch.enable_grad():
                inner = torch.ones(2, requires_grad=True)
                Inward.apply(inner, ctx.left - 1, ctx.fails).sum().backward()
        elif ctx.fails:
            raise ValueError('the innermost backward pass')
        return grad * 2, None, None


class Deep:
    """
    Backward passes 70 deep and annotations 500 deep, each once to its end and once until the innermost fails. A failing
    pass is 55 deep: from 60 on autograd uses other threads, and whether torch.profiler sees their frees after the failure
    depends on which thread is faster.
    """

    PASSES, FAILING, NOTES = 70, 55, 500

    def __init__(self):
        self.x = torch.ones(2, 2)
        sys.setrecursionlimit(10 * self.NOTES)

    def noted(self, left, fails):
        if not left:
            return torch.mm(self.x, torch.ones(3 if fails else 2, 2))
        with torch.profiler.record_function(f'note {left}'):
            return self.noted(left - 1, fails)

    def section(self):
        for fails in False, True:
            for start in self.backward, self.noted:
                try:
                    start(self.NOTES if start == self.noted else self.FAILING if fails else self.PASSES, fails)
                except (ValueError, RuntimeError) as e:
                    assert fails, e
            self.x.mul(3)

    def backward(self, passes, fails):
        x = torch.ones(2, requires_grad=True)
        Inward.apply(x, passes - 1, fails).sum().backward()

    def tensors(self):
        return [self.x]


class Bags:
    """Bags of embeddings in each mode, with the options that choose another function or another type, forward and backward."""

    def __init__(self):
        kinds = [{'mode': mode, 'sparse': sparse} for mode in ('sum', 'mean', 'max') for sparse in (False, mode != 'max')]
        kinds += [{'padding_idx': 3}, {'scale_grad_by_freq': True}, {'max_norm': 1.0}, {'include_last_offset': True},
                  {'dtype': torch.float64}, {'dtype': torch.bfloat16, 'mode': 'sum'}, {'dtype': torch.float16, 'mode': 'sum'}]
        self.bags = [nn.EmbeddingBag(1000, 32, **kind) for kind in kinds]
        self.weighted = nn.EmbeddingBag(1000, 32, mode='sum')
        self.ids, self.offsets = torch.arange(400) * 7 % 1000, torch.arange(0, 400, 10)
        self.weights = torch.rand(400)

    def section(self):
        for bag in self.bags:
            bag.zero_grad()
            for ids in self.ids, self.ids.int():
                bag(ids, self.offsets.to(ids.dtype)).sum().backward()
        self.weighted.zero_grad()
        self.weighted(self.ids, self.offsets, self.weights).sum().backward()
        with torch.no_grad():
            self.bags[0](self.ids.view(40, 10))

    def tensors(self):
        return [bag.weight.grad.to_dense() for bag in (*self.bags, self.weighted)]


PROGRAMS = {
    'sgd': training_with(torch.optim.SGD, momentum=0.9),
    'adam': training_with(torch.optim.Adam, foreach=False),
    'adam-foreach': training_with(torch.optim.Adam, foreach=True),
    'adam-fused': training_with(torch.optim.Adam, fused=True),
    'transformer': Transformer,
    'compiled': Compiled,
    'script': Script,
    'custom': Custom,
    'threads': Threads,
    'nested': Nested,
    'exceptions': Exceptions,
    'forms': Forms,
    'deep': Deep,
    'bags': Bags,
}

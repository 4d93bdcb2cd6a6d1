# SPDX-License-Identifier: Apache-2.0
"""What is judged: deterministic programs that between them go every way into PyTorch's operators.

A program is a class: __init__ prepares everything, section() is what is measured and may run any number of times with the
same counts, tensors() is what its result is. other() is the work of a second thread, where there is one: section() runs it
there, beside its own.
"""
import threading

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
    """Steps of a net: a loader, an annotation, clipped gradients, a schedule, the loss read back; then evaluation."""

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
    """An encoder with padding: trained in mixed precision, evaluated on the fused path with nested tensors."""

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
    """Operators that come boxed: TorchScript's interpreter, traced modules, torch.ops."""

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
    """Custom Functions, gradients of gradients, hooks, recomputation within backward, function transforms."""

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

    def tensors(self):
        return [self.x.grad, *self.result, *(p.grad for p in self.layer.parameters())]


class Threads(Training):
    """A second Python thread that trains by itself and catches exceptions: torch.profiler has no rows of it."""

    def __init__(self):
        net = ConvNet()
        super().__init__(net, torch.optim.SGD(net.parameters(), lr=0.01))
        self.inputs = torch.randn(6, 7)
        self.weight = torch.randn(7, 3, requires_grad=True)
        self.calls = {}

    def called(self, name):
        self.calls[name] = self.calls.get(name, 0) + 1

    def other(self):
        """Counts for itself the operators that nothing else in it calls."""
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
        # Dropout draws from the one generator that both threads share, so only one of them does.
        thread = threading.Thread(target=self.other)
        thread.start()
        super().section()
        thread.join()

    def tensors(self):
        return [self.weight, *super().tensors()]


class Exceptions(Training):
    """Operators that fail and are caught, in between the steps of a training."""

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
    'exceptions': Exceptions,
}

// SPDX-License-Identifier: Apache-2.0
// Trains a small net in C++, without Python: as many steps as its argument says, when it gets SIGUSR1. Then it prints
// how often it called two of its operators.
#include <torch/torch.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

struct Net : torch::nn::Module {
	torch::nn::Linear first{nullptr}, second{nullptr};

	Net()
	{
		first = register_module("first", torch::nn::Linear(256, 512));
		second = register_module("second", torch::nn::Linear(512, 10));
	}

	torch::Tensor forward(torch::Tensor x)
	{
		return second->forward(torch::relu(first->forward(x)));
	}
};

int main(int argc, char **argv)
{
	const int steps = argc > 1 ? atoi(argv[1]) : 1;
	sigset_t go;
	const timespec pause = {0, 5000000};

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, nullptr);
	torch::set_num_threads(1);
	Net net;
	torch::optim::SGD optimizer(net.parameters(), 0.01);
	torch::Tensor x = torch::ones({64, 256}), y = torch::zeros({64}, torch::kLong);

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (sigtimedwait(&go, nullptr, &pause) < 0)
		x.neg(); // the agent enters at an operator
	for (int i = 0; i < steps; i++) {
		optimizer.zero_grad();
		torch::cross_entropy_loss(net.forward(x), y).backward();
		optimizer.step();
	}
	printf("{\"aten::addmm\": %d, \"aten::cross_entropy_loss\": %d}\n", 2 * steps, steps);
	return 0;
}

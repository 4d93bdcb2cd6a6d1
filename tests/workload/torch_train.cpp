// SPDX-License-Identifier: Apache-2.0
// Trains a small net in C++, without Python: as many steps as its argument says, when it gets SIGUSR1. With a module of
// TorchScript as the second argument, it answers requests in two threads instead, as many each. Then it prints how
// often it called two of its operators.
#include <torch/script.h>
#include <torch/torch.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>
#include <vector>

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

static void answer(torch::jit::Module &net, int requests)
{
	torch::NoGradGuard no_grad;

	for (int i = 0; i < requests; i++) {
		net.forward({torch::ones({64, 256})});
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}
}

static void serve(torch::jit::Module &net, int requests)
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 2; i++)
		threads.emplace_back([&net, requests] { answer(net, requests); });
	for (auto &thread : threads)
		thread.join();
	printf("{\"aten::addmm\": %d, \"aten::ones\": %d}\n", 4 * requests, 2 * requests);
}

static void train(Net &net, int steps)
{
	torch::optim::SGD optimizer(net.parameters(), 0.01);
	torch::Tensor x = torch::ones({64, 256}), y = torch::zeros({64}, torch::kLong);

	for (int i = 0; i < steps; i++) {
		optimizer.zero_grad();
		torch::cross_entropy_loss(net.forward(x), y).backward();
		optimizer.step();
	}
	printf("{\"aten::addmm\": %d, \"aten::cross_entropy_loss\": %d}\n", 2 * steps, steps);
}

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
	torch::jit::Module module;
	torch::Tensor x = torch::ones({64, 256});

	if (argc > 2) {
		module = torch::jit::load(argv[2]);
		answer(module, 10); // the first runs compile it
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (sigtimedwait(&go, nullptr, &pause) < 0)
		x.neg(); // the agent enters at an operator
	if (argc > 2)
		serve(module, steps);
	else
		train(net, steps);
	return 0;
}

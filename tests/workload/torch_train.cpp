// SPDX-License-Identifier: Apache-2.0
// Runs a small net in C++, without Python, as many times as its first argument says, when it gets SIGUSR1. The second
// one says what it does: "train", the default; "augment", training with inputs that the program computes itself; a
// module of TorchScript (.pt) that answers requests in two threads, as many each; a package of AOTInductor (.pt2). Then
// it prints how often it called some of its operators, or with OBSERVE in its environment how often PyTorch told an
// observer of each operator and backward node, as it tells torch.profiler.
#include <ATen/record_function.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
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

// Some milliseconds outside of PyTorch, in a function that a person would look for.
namespace
{
__attribute__((noinline)) void augment(std::vector<float> &pixels)
{
	for (int round = 0; round < 200; round++)
		for (size_t i = 1; i < pixels.size(); i++)
			pixels[i] = pixels[i] * 0.5f + pixels[i - 1] * 0.5f;
}
} // namespace

static void train(Net &net, int steps, bool augments)
{
	torch::optim::SGD optimizer(net.parameters(), 0.01);
	torch::Tensor y = torch::zeros({64}, torch::kLong);
	std::vector<float> pixels(64 * 256, 1.0f);
	torch::Tensor x = torch::from_blob(pixels.data(), {64, 256});

	for (int i = 0; i < steps; i++) {
		if (augments)
			augment(pixels);
		optimizer.zero_grad();
		torch::cross_entropy_loss(net.forward(x), y).backward();
		optimizer.step();
	}
	printf("{\"aten::addmm\": %d, \"aten::cross_entropy_loss\": %d}\n", 2 * steps, steps);
}

static void infer(torch::inductor::AOTIModelPackageLoader &net, int runs)
{
	torch::NoGradGuard no_grad;

	for (int i = 0; i < runs; i++)
		net.run({torch::ones({64, 256})});
	printf("{\"aten::ones\": %d}\n", runs);
}

static std::mutex observed_lock;
static std::map<std::string, int> observed;

static std::unique_ptr<at::ObserverContext> observe(const at::RecordFunction &function)
{
	std::lock_guard<std::mutex> lock(observed_lock);

	observed[function.name()]++;
	return nullptr;
}

static void print_observed()
{
	const char *sep = "{";

	for (auto &[name, count] : observed) {
		printf("%s\"%s\": %d", sep, name.c_str(), count);
		sep = ", ";
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	const std::string what = argc > 2 ? argv[2] : "train";
	const bool is_module = what.find(".pt") != std::string::npos,
		   is_package = what.find(".pt2") != std::string::npos;
	sigset_t go;
	const timespec pause = {0, 5000000};

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, nullptr);
	torch::set_num_threads(1);
	Net net;
	torch::jit::Module module;
	std::unique_ptr<torch::inductor::AOTIModelPackageLoader> package;
	torch::Tensor x = torch::ones({64, 256});

	if (is_package) {
		package = std::make_unique<torch::inductor::AOTIModelPackageLoader>(what);
		infer(*package, 1);
	} else if (is_module) {
		module = torch::jit::load(what);
		answer(module, 10); // the first runs compile it
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (sigtimedwait(&go, nullptr, &pause) < 0)
		x.neg(); // the agent enters at an operator
	if (getenv("OBSERVE"))
		at::addGlobalCallback(at::RecordFunctionCallback(observe).scopes(
			{at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
	if (is_package)
		infer(*package, n);
	else if (is_module)
		serve(module, n);
	else
		train(net, n, what == "augment");
	if (getenv("OBSERVE"))
		print_observed();
	return 0;
}

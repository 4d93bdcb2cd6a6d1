#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles assertions that PyTorch's headers declare the types and functions as the agent uses them (user/agent/lib/torch.c).
# usage: agent_headers.sh DIR     DIR: the "include" directory of a PyTorch
set -euo pipefail
g++ -std=c++20 -fsyntax-only -fno-access-control -Wno-invalid-offsetof -isystem "$1" -x c++ - <<'END'
#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <cstddef>
#include <memory>
#include <type_traits>

using Callback = at::RecordFunctionCallback;
using Call = at::RecordFunction;

static_assert(offsetof(Callback, start_) == 0 && offsetof(Callback, end_) == 8 && offsetof(Callback, sampling_prob_) == 16);
static_assert(offsetof(Callback, scopes_) == 24 && sizeof(Callback::scopes_) >= 10 && sizeof(Callback) <= 128);
static_assert(static_cast<int>(at::RecordScope::FUNCTION) == 0 && static_cast<int>(at::RecordScope::BACKWARD_FUNCTION) == 1);
static_assert(static_cast<int>(at::RecordScope::TORCHSCRIPT_FUNCTION) == 2 && static_cast<int>(at::RecordScope::USER_SCOPE) == 7);
static_assert(std::is_same_v<decltype(Callback::start_), std::unique_ptr<at::ObserverContext> (*)(const Call &)>);
static_assert(std::is_same_v<decltype(Callback::end_), void (*)(const Call &, at::ObserverContext *)>);
static_assert(std::is_same_v<decltype(&at::addGlobalCallback), uint64_t (*)(Callback)>);
static_assert(std::is_same_v<decltype(&at::removeCallback), void (*)(uint64_t)>);
static_assert(offsetof(Call, sequence_nr_) < offsetof(Call, fwd_thread_id_) && sizeof(Call::sequence_nr_) == 8);
static_assert(offsetof(Call, fwd_thread_id_) + 8 == offsetof(Call, handle_) && sizeof(Call::fwd_thread_id_) == 8);
static_assert(std::is_same_v<decltype(&at::sequence_number::peek), uint64_t (*)()>);
static_assert(std::is_same_v<decltype(&Call::currentThreadId), uint64_t (*)()>);
static_assert(std::is_same_v<decltype(&Call::name), const char *(Call::*)() const>);
END

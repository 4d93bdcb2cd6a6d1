#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Metrics of GPUs in `mxbpf serve`, from the driver's library and from the agent. Both are mocks (tests/gpu/double), so it is
# known what the GPUs do.

load helpers

PROMETHEUS=$O/deps/prometheus/usr/bin

setup() {
	root_setup
	[[ -x $PROMETHEUS/promtool ]] || skip "no Prometheus; run tests/setup.sh"
	export MXBPF_DOUBLE_NVML=$PWD/gpus
}

# Sets what the GPUs do from now on. The file is replaced at once, because the mock reads it all the time.
gpus() { # WORDS...
	echo "$*" >gpus.new
	mv gpus.new gpus
}

start_serve() { # ARGUMENTS...
	start_bg serve env LD_LIBRARY_PATH="$O/gpu/nvml" "$MXBPF" serve --interval 200ms --max-overhead 100% --textfile m.prom --listen none \
		--verbose "$@"
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
}

end_serve() {
	end_pid "$SERVE_PID"
}

# The sum of all samples whose line begins with the regex.
metric() { # REGEX
	grep -sE "^$1" m.prom | awk '{ sum += $NF } END { print sum + 0 }'
}

until_more() { # REGEX NUMBER: until the sum is larger
	timeout "$WAIT_SECONDS" bash -c 'until grep -sE "^$0" m.prom | awk -v least="$1" "{ sum += \$NF } END { exit !(sum > least) }"; do
		read -rt 0.1 <> <(:) || :; done' "$1" "$2" || { cat m.prom; return 1; }
}

@test "Without an agent, the driver tells how busy the GPU of a job is and how much memory it has, with the labels of DCGM" {
	start_toy 1 1
	gpus "devices=2 busy0=25 pid0=$READY_PID memory0=2048 busy1=90"
	start_serve --pid "$READY_PID"
	until_more mxbpf_gpu_sampled_seconds_total 1
	cp m.prom before.prom
	gpus "devices=2 busy0=75 pid0=$READY_PID memory0=2048 busy1=90"
	until_more mxbpf_gpu_sampled_seconds_total 2.5
	end_serve
	cat m.prom
	"$PROMETHEUS/promtool" check metrics <m.prom
	# A sample has a tenth of a second.
	awk '/^mxbpf_gpu_utilized_seconds_total/ { busy = $NF } /^mxbpf_gpu_sampled_seconds_total/ { seen = $NF }
		END { exit !((busy / seen - 0.25) ^ 2 < 1e-9) }' before.prom
	awk '/^mxbpf_gpu_utilized_seconds_total/ { busy = $NF } /^mxbpf_gpu_sampled_seconds_total/ { seen = $NF }
		END { exit !(busy / seen > 0.3 && busy / seen < 0.75) }' m.prom
	labels='gpu="0",UUID="GPU-00000000-0000-4000-0000-000000000000",device="nvidia0",pci_bus_id="00000000:19:00.0"'
	grep -E "^mxbpf_gpu_memory_used_bytes\{job_name=\"toy\".*,$labels\} 2147483648\$" before.prom
	grep -F "mxbpf_gpu_info{$labels,model=\"Mock GPU\"} 1" m.prom
	[[ -z $(grep -E '^mxbpf_gpu_(memory|util|samp).*gpu="1"' m.prom) ]] # no process of the job uses it
}

# Kernels that the mock ran, by its own account, after the job has ended.
@test "The work of a job is counted on the GPU that did it, with the labels that DCGM gives to this GPU" {
	torch_setup
	gpus devices=4
	MXBPF_DOUBLE=devices=2 MXBPF_DOUBLE_ACCOUNT=$PWD/double.json CUDA_VISIBLE_DEVICES=3,1 start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" \
		--devices 2 --pause-ms 20 --account job.json >/dev/null
	start_serve --pid "$READY_PID" --gpu
	until_more 'mxbpf_gpu_kernels_total.*gpu="3"' 1000
	until_more 'mxbpf_gpu_kernels_total.*gpu="1"' 50
	stop_pid "$READY_PID" # first: CUPTI delivers no kernel after the session
	wait_exit "$READY_PID"
	wait_exit "$SERVE_PID" # its one process has ended
	grep mxbpf_gpu m.prom
	"$PROMETHEUS/promtool" check metrics <m.prom
	# Some of the kernels that CUPTI delivered were launched before the window. A step has eleven on one GPU and one on the other.
	local kernels small
	kernels=$(metric mxbpf_gpu_kernels_total)
	small=$(metric 'mxbpf_gpu_kernels_total.*gpu="1"')
	((kernels <= $(jq .delivered.kernel double.json) && kernels >= 12 * (small - 1) && kernels <= 12 * (small + 1)))
	[[ $(grep -c '^mxbpf_gpu_kernels_total' m.prom) == 2 ]]
	grep -E '^mxbpf_gpu_busy_seconds_total\{job_name=.*,gpu="3",UUID="GPU-00000003-[0-9-]*3",device="nvidia3",pci_bus_id="00000000:1C:00.0"\}' m.prom
	# What a GPU did, and why it did nothing between that, is at most the time in which it was watched.
	local gpu
	for gpu in 1 3; do
		awk -v gpu="gpu=\"$gpu\"" 'index($0, gpu) && /^mxbpf_gpu_busy_/ { busy += $NF } index($0, gpu) && /^mxbpf_gpu_idle_/ { idle += $NF }
			index($0, gpu) && /^mxbpf_gpu_seen_/ { seen += $NF } END { print busy, idle, seen; exit !(busy > 0 && idle > busy && busy + idle <= seen) }' m.prom
	done
	# The job copies to one GPU.
	[[ $(grep -c '^mxbpf_gpu_copied_bytes_total.*gpu="3".*direction="HtoD"' m.prom) == 1 ]]
	awk '/^mxbpf_gpu_kernel_seconds_total/ { kernels += $NF } /^mxbpf_gpu_busy_seconds_total/ { busy += $NF } END { print kernels, busy; exit !(kernels >= busy - 0.01) }' m.prom
	[[ $(grep -c '^mxbpf_gpu_kernel_seconds_total' m.prom) -ge 4 ]]
	# Times by type, and copies, are parts of the time in which the GPU was busy.
	for gpu in 1 3; do
		awk -v gpu="gpu=\"$gpu\"" 'index($0, gpu) && /^mxbpf_gpu_busy_/ { busy += $NF } index($0, gpu) && /^mxbpf_gpu_type_seconds/ { types += $NF }
			index($0, gpu) && /^mxbpf_gpu_type_alone_/ { alone += $NF } index($0, gpu) && /^mxbpf_gpu_copy_/ { copies += $NF }
			END { print busy, types, alone, copies; exit !(alone > 0 && alone <= busy + 1e-6 && types >= busy - 1e-6 && copies < types && (copies > 0) == (gpu ~ 3)) }' m.prom
	done
}

@test "An idle GPU is noticed without an agent, once, and a busy one never" {
	start_toy 1 1
	gpus "busy=90 pid=$READY_PID"
	start_serve --pid "$READY_PID" --flight-record 5s --on 'gpu.idle > 50% for 1s'
	until_more mxbpf_gpu_sampled_seconds_total 2
	[[ -z $(echo mxbpf-*.mxd | grep gpu-idle) ]]
	gpus "busy=10 pid=$READY_PID"
	wait_line "$(err serve)" 'info: wrote .*gpu-idle[.]mxd: GPUs did nothing in [0-9]+ % of the time' "$SERVE_PID"
	until_more mxbpf_gpu_sampled_seconds_total "$(metric mxbpf_gpu_sampled_seconds_total)"
	end_serve
	cat "$(err serve)"
	[[ $(grep -c 'info: wrote' "$(err serve)") == 1 ]]
}

@test "A driver that is missing, loses a GPU or hangs says nothing and holds nothing up" {
	start_toy 1 1
	gpus devices=0
	start_serve --pid "$READY_PID"
	until_more mxbpf_watched_seconds_total 1.5
	[[ -z $(grep mxbpf_gpu m.prom) ]]
	end_serve
	gpus "devices=2 busy=50 pid=$READY_PID lost0=1"
	start_serve --pid "$READY_PID"
	until_more mxbpf_gpu_sampled_seconds_total 1
	[[ -z $(grep -E '^mxbpf_gpu_.*seconds_total.*gpu="0"' m.prom) ]]
	gpus "devices=2 busy=50 pid=$READY_PID hang=1"
	until_more mxbpf_watched_seconds_total "$(metric mxbpf_watched_seconds_total)"
	until_more mxbpf_watched_seconds_total "$(($(metric mxbpf_watched_seconds_total | cut -d. -f1) + 2))"
	end_serve
	[[ -z $(grep -iE 'gpu|nvml|driver' "$(err serve)") ]]
}

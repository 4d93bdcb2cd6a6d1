# SPDX-License-Identifier: Apache-2.0
# mxbpf. `make` builds build/mxbpf and needs no root; `make help` lists the targets.
# O=DIR: products  V=1: show commands  DEBUG=1: -O0 -g  ASAN=1, TSAN=1: sanitizers  WERROR=1  PREFIX= DESTDIR=: for install

O       ?= build
# Dependency files name products under O, so there must be only one spelling of it. The path of the checkout may have blanks,
# because it is in no name of a product; functions of make that take words, such as abspath, must not see it.
override O := $(shell realpath -ms --relative-base=. -- '$(O)')
$(if $(word 2,$(O)),$(error O=$(O) has a blank, and is not below the checkout))
OUT     := $(if $(filter /%,$(O)),$(O),$(CURDIR)/$(O))
PREFIX  ?= /usr/local
CC      ?= cc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config
Q       := $(if $(V),,@)
say     = $(if $(V),,@printf '  %-8s %s\n' $(1) $(2))

VERSION := $(shell cat VERSION)

# ---- dependencies: the Debian packages of all that is missing are named at once
SETUP_GOALS := clean distclean help uninstall lint demo test smoke bench soak day kernels agent-tsan
ifneq ($(filter-out $(SETUP_GOALS),$(or $(MAKECMDGOALS),all)),)
need_program = $(if $(shell command -v $(1)),,$(2))
need_library = $(if $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo y),,$(2))
need_header = $(if $(shell echo '\#include <$(1)>' | $(CC) -E - >/dev/null 2>&1 && echo y),,$(2))
LACK := $(strip $(call need_program,$(CC),build-essential) $(call need_program,$(PKG_CONFIG),pkg-config) \
	$(call need_program,$(CLANG),clang) $(call need_program,$(BPFTOOL),bpftool) \
	$(call need_library,libbpf,libbpf-dev) $(call need_library,libelf,libelf-dev) $(call need_library,libdw,libdw-dev) \
	$(call need_library,zlib,zlib1g-dev) $(call need_library,libcjson,libcjson-dev) \
	$(call need_header,Zydis/Zydis.h,libzydis-dev) $(call need_header,libiberty/demangle.h,libiberty-dev) \
	$(call need_library,ncursesw,libncurses-dev) $(call need_library,libmicrohttpd,libmicrohttpd-dev) \
	$(call need_header,curl/curl.h,libcurl4-openssl-dev) $(call need_library,yajl,libyajl-dev) \
	$(call need_library,sqlite3,libsqlite3-dev))
$(if $(LACK),$(error packages are missing; install them: sudo apt-get install $(LACK)))
PKGS   := libbpf libelf zlib libcjson libdw ncursesw libmicrohttpd yajl sqlite3
# libcurl is not linked: user/push/http.h says why.
CFLAGS_PKG := $(shell $(PKG_CONFIG) --cflags $(PKGS))
LIBS   := $(shell $(PKG_CONFIG) --libs $(PKGS)) -lZydis -liberty -lpthread -lm
endif

comma := ,
WARN := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wformat=2 \
	-Wno-unused-parameter -Wno-format-nonliteral $(if $(WERROR),-Werror)
SANITIZE := $(if $(ASAN),-fsanitize=address$(comma)undefined) $(if $(TSAN),-fsanitize=thread)
OPT  := $(if $(DEBUG),-O0 -g3,-O2 -g) $(if $(ASAN)$(TSAN),$(SANITIZE) -fno-omit-frame-pointer)
# Of one set of objects both the program and the library of the unit programs are made.
HARD := -fstack-protector-strong -fPIC -fno-semantic-interposition $(if $(DEBUG)$(ASAN)$(TSAN),,-D_FORTIFY_SOURCE=2)
# gcc zeroes and copies a span (248 bytes) with "rep stos" and "rep movs". They took half of the time of kind_span(), so it may not.
NO_REP := unrolled_loop:256:noalign,libcall:-1:noalign
NO_REP := -mmemcpy-strategy=$(NO_REP) -mmemset-strategy=$(NO_REP)
OPT += $(shell $(CC) $(NO_REP) -E -x c /dev/null >/dev/null 2>&1 && echo $(NO_REP))
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARN) $(HARD) -D_GNU_SOURCE -DMXBPF_VERSION='"$(VERSION)"' \
	-ffile-prefix-map='$(OUT)/'=build/ -ffile-prefix-map='$(CURDIR)/'= -Iuser -Iinclude -I$(O)/gen $(VENDOR_CFLAGS) $(CFLAGS_PKG) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now,--gc-sections $(SANITIZE) $(LDFLAGS)

# Libraries that Debian does not have, as published. vendor/README.md lists them.
VENDOR := $(sort $(wildcard vendor/*/src/*.c))
VENDOR_CFLAGS := $(addprefix -isystem ,$(wildcard vendor/*/include))

BPF_ARCH := $(patsubst x86_64,x86,$(shell uname -m))
BPF_CFLAGS := -target bpf -mcpu=v3 -O2 -g -gno-column-info -Wall -Werror -D__TARGET_ARCH_$(BPF_ARCH) -Ivmlinux -Iinclude -Ibpf -ffile-prefix-map='$(CURDIR)/'=

SRC   := $(filter-out user/agent/lib/% user/agent/cupti/% user/nvtx/lib/%,$(sort $(wildcard user/*/*.c user/*/*/*.c user/*/*/*/*.c))) $(VENDOR)
OBJ   := $(SRC:%.c=$(O)/obj/%.o)
UNITS := $(patsubst tests/unit/%.c,$(O)/unit/%,$(sort $(wildcard tests/unit/*.c)))
PROGS := $(patsubst tests/prog/%.c,$(O)/prog/%,$(sort $(wildcard tests/prog/*.c))) \
	 $(patsubst tests/prog/%.cpp,$(O)/prog/%,$(sort $(wildcard tests/prog/*.cpp)))
TOY   := $(addprefix $(O)/toy/,toy hang libmxnet.so libtorch_cpu.so burn/libtorch_cpu.so omp/libtorch_cpu.so kmp/libtorch_cpu.so inject_agent.so)
FUZZ  := $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(sort $(wildcard tests/fuzz/*.c)))

.PHONY: all static check test smoke next units progs gpu-double bench soak day kernels demo lint analyze fuzz fuzzers unit-asan unit-tsan agent-tsan print-libs install uninstall deb rpm repos sbom wheel image clean distclean help
.DELETE_ON_ERROR:
# What only pattern rules name stays. All else is made anew if it is missing.
.SECONDARY: $(patsubst bpf/%.bpf.c,$(O)/gen/%.bpf.o,$(wildcard bpf/*.bpf.c)) $(patsubst %.c,$(O)/fuzz/obj/%.o,$(wildcard tests/fuzz/*.c))
.SECONDEXPANSION:

all: $(O)/mxbpf $(O)/mxbpf.1 $(O)/mxbpf.bash $(O)/report.schema.json

# ---- BPF: one object per program file in bpf/, each with its skeleton
$(O)/gen/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h bpf/*/*.h bpf/*.c include/*.h vmlinux/*.h)
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $(O)/gen/$*.raw.o
	$(Q)$(BPFTOOL) gen object $@ $(O)/gen/$*.raw.o

$(O)/gen/%.skel.h: $(O)/gen/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf >$@

# The names of types in the objects, among them those of the kernel.
$(O)/gen/kernel_types.inc: $(O)/gen/mxbpf.bpf.o $(O)/gen/watch.bpf.o
	$(call say,GEN,$@)
	$(Q)for o in $^; do $(BPFTOOL) btf dump file $$o format raw; done | \
		sed -nE "s/^\[[0-9]+\] (STRUCT|UNION|ENUM|ENUM64|TYPEDEF) '([A-Za-z0-9_]+)'.*/\"\2\",/p" | LC_ALL=C sort -u >$@

$(O)/obj/user/attach/kernel_types.o: $(O)/gen/kernel_types.inc

# Names of system calls by number.
$(O)/gen/syscalls.h:
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)echo '#include <asm/unistd_64.h>' | $(CC) -E -dM - | sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$$/[\2] = "\1",/p' >$@

$(O)/obj/user/base/syscall.o: $(O)/gen/syscalls.h

# ---- user space: an archive of every room, plus main.o
$(O)/obj/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# Their warnings are their authors' concern. Unused functions of a library that is one file are left out of the program.
$(O)/obj/vendor/%.o: CFLAGS += -w -ffunction-sections -fdata-sections
$(O)/obj/vendor/nanoarrow/src/flatcc.o: CFLAGS += -include user/view/dataset/flatcc.h

$(filter $(O)/obj/user/attach/%,$(OBJ)): $(O)/gen/mxbpf.skel.h $(O)/gen/watch.skel.h $(O)/gen/regs.skel.h $(O)/gen/faults.skel.h

$(filter $(O)/obj/user/agent/%,$(OBJ)): $(O)/gen/inject.skel.h $(O)/gen/agent.skel.h $(O)/gen/filters.skel.h

# ---- the agent, which is injected into targets. It runs no constructors and requires no glibc newer than 2.17.
AGENT_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -fPIC -fvisibility=hidden -fcf-protection=none \
	-fno-stack-protector -fno-asynchronous-unwind-tables -Iinclude -Iuser/agent/lib -Iuser/agent/cupti -ffile-prefix-map='$(CURDIR)/'=
$(O)/gen/agent.so: $(wildcard $(addprefix user/agent/,lib/*.c lib/*.h cupti/*.c cupti/*.h)) $(wildcard include/*.h)
	$(call say,AGENT,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(AGENT_CFLAGS) -shared -nostartfiles -Wl,--build-id=sha1,-z,now,-z,relro,--no-undefined,-s -o $@ $(filter %.c,$^) -lc

$(O)/obj/user/agent/image.o: $(O)/gen/agent.so $(wildcard user/agent/*.py)
$(O)/obj/user/agent/image.o: CFLAGS += -Wa,-I$(O)/gen -Wa,-Iuser/agent

# The injection library of NVTX: the same rules.
$(O)/gen/nvtx.so: $(wildcard user/nvtx/lib/*.c user/nvtx/lib/*.h) include/mxbpf_range.h include/mxbpf_event.h
	$(call say,AGENT,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(AGENT_CFLAGS) -shared -nostartfiles -Wl,--build-id=sha1,-z,now,-z,relro,--no-undefined,-s -o $@ $(filter %.c,$^) -lc

$(O)/obj/user/nvtx/nvtx.o: $(O)/gen/nvtx.so
$(O)/obj/user/nvtx/nvtx.o: CFLAGS += -Wa,-I$(O)/gen

$(O)/obj/user/view/page/assets.o: $(wildcard share/page/*.css share/page/*.js share/page/vendor/*)
$(O)/obj/user/view/page/assets.o: CFLAGS += -Wa,-Ishare/page
$(O)/obj/user/view/data/schema.o: share/report.schema.in.json

$(O)/libmxbpf.a: $(OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcsD $@ $(OBJ)

# For share/sbom.py.
$(O)/mxbpf $(O)/mxbpf-static: private override LDFLAGS += -Wl,-Map=$@.map

$(O)/mxbpf: $(O)/obj/user/main.o $(O)/libmxbpf.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(O)/libmxbpf.a $(LIBS)

# A binary for machines without the libraries. The linker's warnings name what would load a library at run time, so they are errors.
static: $(O)/mxbpf-static

$(O)/deps/static/stamp: share/static.sh
	$(call say,DEPS,$(@D))
	$(Q)CC=$(CC) PKG_CONFIG=$(PKG_CONFIG) $< $(@D) && touch $@

$(O)/gen/columns.h: share/columns.c
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -o $@.program $< && $@.program >$@ && rm $@.program

$(O)/obj/user/static.o $(O)/unit/test_static: $(O)/gen/columns.h

$(O)/mxbpf-static: $(O)/obj/user/main.o $(O)/obj/user/static.o $(O)/libmxbpf.a $(O)/deps/static/stamp
	$(call say,LINK,$@)
	$(Q)$(CC) -static-pie -Wl,-z,relro,-z,now,--gc-sections,--fatal-warnings,--wrap=dlopen $(LDFLAGS) -L$(O)/deps/static -o $@ $(filter-out %/stamp,$^) \
		$(patsubst -lyajl,-lyajl_s,$(shell $(PKG_CONFIG) --static --libs $(filter-out libmicrohttpd,$(PKGS)))) -lmicrohttpd -lZydis -liberty -lpthread -lm

# share/man.awk makes roff of the Markdown and inserts the lists of options, columns and the like.
$(O)/mxbpf.1: docs/man/mxbpf.1.md share/man.awk $(O)/mxbpf
	$(call say,MAN,$@)
	$(Q)$(O)/mxbpf --generate lists >$@.lists
	$(Q)awk -v version="$$($(O)/mxbpf --version)" -f share/man.awk $@.lists $< >$@
	$(Q)rm -f $@.lists

$(O)/report.schema.json: $(O)/mxbpf
	$(call say,SCHEMA,$@)
	$(Q)$(O)/mxbpf --generate schema >$@

$(O)/mxbpf.bash: $(O)/mxbpf
	$(call say,COMP,$@)
	$(Q)$(O)/mxbpf --generate completion >$@

# ---- tests
# Every function of every room, so that a change links one library, and not each unit program. Unit programs may define a function
# of it themselves.
$(O)/libmxbpf.so: $(OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(SANITIZE) $(LDFLAGS) -o $@ $(OBJ) $(LIBS)

$(O)/unit/%: tests/unit/%.c | $(O)/libmxbpf.so $$(call UNIT_NEEDS,$$*)
	$(call say,UNIT,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Itests/unit -MMD -MP $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -o $@ $< -L$(O) -l:libmxbpf.so $(LIBS)

$(O)/unit/test_elf: LIBS += -lstdc++ # it looks at the exceptions of a C++ library

# What unit programs load or start. tests/run.bats checks that they find it where only `make check` ran.
UNIT_NEEDS_agent_lib := gen/agent.so
UNIT_NEEDS_gpu_agent := gen/agent.so gpu
UNIT_NEEDS_inject_kernel := toy/inject_agent.so prog/inject_target prog/blocked
UNIT_NEEDS_sessions_kernel := toy/toy toy/libmxnet.so
UNIT_NEEDS = $(foreach n,$(UNIT_NEEDS_$(patsubst test_%,%,$(1))),$(if $(filter gpu,$(n)),$(GPU) $(GPU_CLIENT),$(O)/$(n)))

$(O)/prog/%: tests/prog/%.c
	$(call say,PROG,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -o $@ $< -lpthread -ldl

$(O)/prog/%: tests/prog/%.cpp
	$(call say,PROG,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -O1 -g -o $@ $< -lpthread -ldl

# A toy target with MXNet's symbols. mxbpf uses known structure offsets only by build-id, so it has that of PyPI's 1.9.1.
$(O)/toy/libmxnet.so: tests/toy/libmxnet.cpp
	$(call say,TOY,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O2 -g -Wall -Wextra -Wno-invalid-offsetof -fPIC -fvisibility=hidden -shared -o $@ $< -lpthread \
		-Wl,--build-id=0x472988f6268780302be9ee15d6c53d9a07b534f5

$(O)/toy/toy $(O)/toy/hang: $(O)/toy/%: tests/toy/%.c
	$(call say,TOY,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -Wall -Wextra -o $@ $< -lpthread -ldl

# A program with the name and the symbols of PyTorch's library.
$(O)/toy/libtorch_cpu.so: tests/toy/torch.c
	$(call say,TOY,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -Wall -Wextra -o $@ $<

$(O)/toy/burn/libtorch_cpu.so: tests/toy/burn.c
	$(call say,TOY,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wall -Wextra -o $@ $< -lpthread

$(O)/toy/omp/libtorch_cpu.so: tests/toy/omp.c
	$(call say,TOY,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -Wall -Wextra -fopenmp -o $@ $< -lpthread

# The same program with LLVM's OpenMP library.
$(O)/toy/kmp/libtorch_cpu.so: tests/toy/omp.c
	$(call say,TOY,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -O1 -g -Wall -Wextra -fopenmp=libomp -o $@ $< -lpthread

# The library that the tests of injection load into their targets.
$(O)/toy/inject_agent.so: tests/toy/inject_agent.c
	$(call say,TOY,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -Wall -Wextra -fPIC -fvisibility=hidden -shared -o $@ $<

# Everything is compiled once, with the fuzzer's counters and sanitizers, and with counters of lines (llvm-cov) where
# tests/fuzz/parsers wants to know them, and in fuzzers, some of which include what they test. UBSAN_LESS: checks that would be half of
# the code, for what AddressSanitizer sees, too, or x86 allows. A night has them: make fuzz MINUTES=480 UBSAN_LESS= O=build/night
UBSAN_LESS ?= null,alignment,object-size
FUZZ_GEN = mxbpf.skel.h watch.skel.h regs.skel.h faults.skel.h inject.skel.h agent.skel.h filters.skel.h kernel_types.inc syscalls.h columns.h agent.so nvtx.so
UBSAN := undefined $(if $(UBSAN_LESS),-fno-sanitize=$(UBSAN_LESS))
FUZZ_COVERED := tests/fuzz/ $(wildcard $(shell cut -d '|' -f 4 tests/fuzz/parsers))
FUZZ_COVERAGE = $(if $(filter $(FUZZ_COVERED:=%),$<),-fprofile-instr-generate -fcoverage-mapping)
SAN_CFLAGS = -std=gnu11 -O1 -g1 -D_GNU_SOURCE \
	-DMXBPF_VERSION='"fuzz"' -Iuser -Iinclude -I$(O)/gen -Itests/fuzz $(addprefix -Wa$(comma)-I,share/page $(O)/gen user/agent) $(VENDOR_CFLAGS) $(CFLAGS_PKG)
FUZZ_CFLAGS = $(SAN_CFLAGS) -fsanitize=fuzzer-no-link,address,$(UBSAN)
$(O)/fuzz/obj/%.o: %.c | $(addprefix $(O)/gen/,$(FUZZ_GEN))
	$(call say,FUZZ,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) $(FUZZ_COVERAGE) -MMD -MP -c $< -o $@

$(O)/fuzz/libfuzz.a: $(SRC:%.c=$(O)/fuzz/obj/%.o)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcsD $@ $^

$(O)/fuzz/%: $(O)/fuzz/obj/tests/fuzz/%.o $(O)/fuzz/libfuzz.a
	$(call say,FUZZ,$@)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined -fprofile-instr-generate $(FUZZ_WRAP) -o $@ $(filter %.o,$^) $(O)/fuzz/libfuzz.a $(LIBS)

# The unit programs with AddressSanitizer and UndefinedBehaviorSanitizer, of the same objects, and those with threads with
# ThreadSanitizer. They look for the products of the tests beside their folder.
SAN_LINKS = for link in gen gpu toy prog deps; do ln -sfn ../$$link $(O)/$(1)/$$link; done
$(O)/fuzz/unit/%: tests/unit/%.c $(O)/fuzz/libfuzz.a | $$(call UNIT_NEEDS,$$*)
	$(call say,UNIT,$@)
	@mkdir -p $(@D)
	$(Q)$(call SAN_LINKS,fuzz)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fprofile-instr-generate -Itests/unit -MMD -MP -o $@ $< $(O)/fuzz/libfuzz.a $(LIBS)

TSAN_CFLAGS = $(SAN_CFLAGS) -fsanitize=thread
$(O)/tsan/obj/%.o: %.c | $(addprefix $(O)/gen/,$(FUZZ_GEN))
	$(call say,TSAN,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(TSAN_CFLAGS) -MMD -MP -c $< -o $@

# The rooms with threads, and what they include.
TSAN_SRC = $(wildcard $(addprefix user/,$(addsuffix /*.c,base records ring push serve nvml kineto model metrics target elf))) user/source/hub.c user/cmd/serve/stream.c user/cmd/print.c
$(O)/tsan/libtsan.a: $(TSAN_SRC:%.c=$(O)/tsan/obj/%.o)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcsD $@ $^

$(O)/tsan/unit/%: tests/unit/%.c $(O)/tsan/libtsan.a | $$(call UNIT_NEEDS,$$*)
	$(call say,UNIT,$@)
	@mkdir -p $(@D)
	$(Q)$(call SAN_LINKS,tsan)
	$(Q)$(CLANG) $(TSAN_CFLAGS) -Itests/unit -MMD -MP -o $@ $< $(O)/tsan/libtsan.a $(LIBS)

# For exceptions of the libraries that tests load.
$(O)/fuzz/unit/% $(O)/tsan/unit/%: LIBS += -lstdc++

# Fuzzers that play a target which attacks mxbpf. They include the source that they test, and stand for the kernel's ring.
HOSTILE_OBJ = $(addprefix $(O)/fuzz/obj/user/source/,hub.o calls.o gpu_convert.o gpu_memory.o)
$(O)/fuzz/fuzz_agent $(O)/fuzz/fuzz_gpu: FUZZ_WRAP = -Wl,--wrap=pread
$(O)/fuzz/fuzz_agent: $(HOSTILE_OBJ) $(addprefix $(O)/fuzz/obj/user/agent/,take.o clock.o)
$(O)/fuzz/fuzz_gpu: $(HOSTILE_OBJ) $(O)/fuzz/obj/user/agent/gpu.o
$(O)/fuzz/obj/tests/fuzz/fuzz_cupti.o: SAN_CFLAGS += -iquote user/agent/lib
$(O)/fuzz/fuzz_mcp: FUZZ_WRAP = -Wl,--wrap=mcp_spawn
$(O)/fuzz/fuzz_python: FUZZ_WRAP = -Wl,--wrap=tgt_read,--wrap=tgt_read_some
$(O)/fuzz/fuzz_proc: FUZZ_WRAP = $(addprefix -Wl$(comma)--wrap=,open openat fopen opendir readdir ioctl fstatfs faccessat readlinkat far_open far_memory)
$(O)/fuzz/fuzz_http: FUZZ_WRAP = -Wl,--wrap=srv_own_address,--wrap=clock_gettime
$(O)/fuzz/fuzz_names: FUZZ_WRAP = $(addprefix -Wl$(comma)--wrap=,att_names_fd att_args_fd att_tensors_fd att_read_stack att_has tgt_read)

# The mock of a GPU: the driver, the runtime, CUPTI, Kineto and an operator library. tests/gpu/double/README.md describes it.
# libcudart's functions begin with `push %rbp`, as those of the real one do.
GPU_NEW := $(addprefix $(O)/gpu/,libcuda.so.1 libcudart.so.12 libcupti.so.12 libkineto_double.so libkineto_dlsym.so libgpuops.so libgpucost.so libnccl_double.so static/libgpuops.so)
GPU_OLD := $(addprefix $(O)/gpu/old/,libcudart.so.11.0 libcupti.so.11.8 libgpuops.so)
# The runtime and CUPTI under the names and in the places of NVIDIA's wheels and of the CUDA Toolkit.
GPU_PLACES := $(O)/gpu/places/
GPU_CUDART := $(addprefix $(GPU_PLACES),nvidia/cu13/lib/libcudart.so.13 nvidia/cuda_runtime/lib/libcudart.so.12 cuda/lib64/libcudart.so.11.0)
GPU_CUPTI := $(addprefix $(GPU_PLACES),nvidia/cu13/lib/libcupti.so.13 nvidia/cuda_cupti/lib/libcupti.so.12 \
	cuda/extras/CUPTI/lib64/libcupti.so.11.2)
# In a folder of its own: what finds it there believes that there is a driver.
GPU_NVML := $(O)/gpu/nvml/libnvidia-ml.so.1
GPU := $(GPU_NEW) $(GPU_OLD) $(GPU_CUDART) $(GPU_CUPTI) $(GPU_NVML)
GPU_CLIENT := $(O)/gpu/client
GPU_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-format-zero-length -D_GNU_SOURCE -fPIC -fvisibility=hidden \
	-fcf-protection=none -fno-omit-frame-pointer -fno-shrink-wrap -fno-optimize-sibling-calls -ffile-prefix-map='$(CURDIR)/'=
gpu-double: $(GPU) $(GPU_CLIENT) $(O)/gpu/facts.so

# For tests/gpu/run.sh, because a machine with a GPU may have no compiler.
$(O)/gpu/facts.so: tests/gpu/facts.c
	$(call say,GPU,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -Wall -Wextra -Wno-unused-parameter -Werror -fPIC -shared -ffile-prefix-map='$(CURDIR)/'= -o $@ $< -ldl

double := tests/gpu/double
$(O)/gpu/libcuda.so.1: $(addprefix $(double)/,cuda.c driver.c device.c memory.c account.c)
$(O)/gpu/libcudart.so.12 $(O)/gpu/old/libcudart.so.11.0 $(GPU_CUDART): $(double)/cudart.c | $(O)/gpu/libcuda.so.1
$(O)/gpu/libcupti.so.12 $(O)/gpu/old/libcupti.so.11.8 $(GPU_CUPTI): $(addprefix $(double)/,cupti.c ranges.c gate.c collect.c enabled.c records.c clock.c names.c replay.c)
$(O)/gpu/libkineto_double.so: $(double)/kineto.c | $(O)/gpu/libcupti.so.12
$(O)/gpu/libkineto_dlsym.so: $(double)/kineto.c | $(O)/gpu/libcupti.so.12
$(O)/gpu/libkineto_dlsym.so: GPU_FLAGS = -DDOUBLE_BY_DLSYM
$(O)/gpu/libgpucost.so: $(double)/cost.c | $(O)/gpu/libcupti.so.12
$(GPU_NVML): $(double)/nvml.c
$(O)/gpu/libnccl_double.so: $(double)/nccl.c
$(O)/gpu/libgpuops.so: $(double)/gpuops.c | $(O)/gpu/libcudart.so.12
$(O)/gpu/old/libgpuops.so: $(double)/gpuops.c | $(O)/gpu/old/libcudart.so.11.0
$(O)/gpu/static/libgpuops.so: $(double)/gpuops.c $(double)/cudart.c | $(O)/gpu/libcuda.so.1
$(GPU_OLD) $(filter %.11.0,$(GPU_CUDART)): GPU_FLAGS = -DDOUBLE_OLD
$(GPU_PLACES)nvidia/cuda_cupti/lib/libcupti.so.12: GPU_FLAGS = -DDEFAULT_VERSION=22
$(GPU_PLACES)cuda/extras/CUPTI/lib64/libcupti.so.11.2: GPU_FLAGS = -DDOUBLE_OLD -DDEFAULT_VERSION=15
$(O)/gpu/static/libgpuops.so: GPU_FLAGS = -DDOUBLE_STATIC
$(O)/gpu/libcudart.so.12 $(O)/gpu/old/libcudart.so.11.0 $(GPU_CUDART) $(O)/gpu/static/libgpuops.so: GPU_LIBS = -l:libcuda.so.1
$(O)/gpu/libkineto_double.so $(O)/gpu/libgpucost.so: GPU_LIBS = -l:libcupti.so.12
$(O)/gpu/libgpuops.so: GPU_LIBS = -l:libcudart.so.12 -l:libcuda.so.1
$(O)/gpu/old/libgpuops.so: GPU_LIBS = -l:libcudart.so.11.0 -l:libcuda.so.1
$(GPU): $(wildcard $(double)/*.h)
	$(call say,GPU,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(GPU_CFLAGS) -shared -Wl,-soname,$(@F),-rpath,'$$ORIGIN:$$ORIGIN/..',-z,now,-z,relro,--no-undefined $(GPU_FLAGS) \
		-L$(O)/gpu -L$(O)/gpu/old -o $@ $(filter %.c,$^) $(GPU_LIBS) -lpthread -ldl

$(GPU_CLIENT): $(double)/client.c $(double)/double.h $(GPU_NEW)
	$(call say,GPU,$@)
	$(Q)$(CC) $(GPU_CFLAGS) -Wl,-rpath,'$$ORIGIN' -o $@ $< -L$(O)/gpu -l:libgpuops.so -l:libcupti.so.12 -lpthread

units: $(UNITS)
progs: $(PROGS) $(TOY) gpu-double

help:
	@sed -n '2,4p' Makefile; echo 'targets: all static demo test smoke next check bench soak day kernels lint analyze fuzz unit-asan unit-tsan agent-tsan install uninstall deb rpm repos sbom wheel image clean'
	@echo 'smoke: one minute of test'
	@echo 'test, check, smoke: ONLY=REGEX runs only files whose name matches (interval.bats, unit/test_elf); LANES=N runs N files at a time'

# Prepares a fresh machine, builds, and runs every test or the files that ONLY matches.
test:
	$(Q)tests/setup.sh $(O) $(if $(ONLY),,build)
	$(Q)tests/run.sh $(O)

# A few tests of each part: whether a change or a machine is worth the others.
smoke:
	$(Q)tests/setup.sh $(O)
	$(Q)tests/run.sh --tag=smoke $(O)

# The newest versions of what mxbpf profiles.
next:
	$(Q)tests/setup.sh $(O)
	$(Q)tests/next.sh $(O)

# Runs the tests that need neither root nor a download.
check:
	$(Q)tests/run.sh --unit $(O)

demo:
	$(Q)tests/setup.sh $(O) $(or $(JOB),mxnet)
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/demo.sh $(O)

bench:
	$(Q)tests/setup.sh $(O)
	$(Q)$(MAKE) --no-print-directory all gpu-double
	$(Q)tests/bench/run.sh $(O)

soak:
	$(Q)tests/setup.sh $(O)
	$(Q)$(MAKE) --no-print-directory all units progs
	$(Q)$(if $(CYCLES),python3 tests/day/cycles.py --mxbpf $(O)/mxbpf --python $(O)/deps/torch/bin/python --toy $(O)/toy \
		--cycles $(CYCLES),tests/soak.sh $(or $(MINUTES),10) $(O))

day:
	$(Q)tests/setup.sh $(O)
	$(Q)$(MAKE) --no-print-directory all progs
	$(Q)python3 tests/day/day.py --mxbpf $(O)/mxbpf --python $(O)/deps/torch/bin/python --toy $(O)/toy --loads $(O)/prog/loads \
		--seconds $$(($(or $(MINUTES),10) * 60)) --cycles $$(($(or $(MINUTES),10) * 1000)) --verbose

kernels:
	$(Q)tests/setup.sh $(O)
	$(Q)tests/kernels/setup.sh $(O)/deps/kernels all
	$(Q)$(MAKE) --no-print-directory all units progs
	$(Q)MXBPF='$(OUT)/mxbpf' O='$(OUT)' tests/kernels/matrix.sh $(O)/deps/kernels

lint:
	$(Q)tests/lint/run.sh $(O)

# clang's analyzer, over mxbpf and over what it loads into targets. Files that have not changed are not analyzed again.
# It does not see that a skeleton of bpftool is freed by libbpf.
ANALYZED := $(patsubst %.c,$(O)/analyze/%.done,$(filter-out vendor/%,$(SRC)) user/main.c $(sort $(wildcard user/agent/lib/*.c user/agent/cupti/*.c user/nvtx/lib/*.c)))
analyze: $(ANALYZED)
$(O)/analyze/%.done: %.c | $(addprefix $(O)/gen/,$(FUZZ_GEN))
	$(call say,ANALYZE,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) --analyze --analyzer-output text -Xclang -analyzer-werror $(if $(shell grep -lE '(skel|(attach|agent)/(priv|state))\.h"' $<),-Xclang -analyzer-disable-checker=unix.Malloc) $(filter-out -O1 -g1 -Wa$(comma)%,$(SAN_CFLAGS)) -MMD -MP -MT $@ -MF $(@:.done=.d) $<
	$(Q)touch $@

fuzzers: $(FUZZ)

# test_elf compares its own symbols with those of nm, among which sanitizers have some that are not in order. The programs look for
# what `make all progs` makes.
UNITS_THREADS := agent_lib gate loading nvml push serve serve_hostile stream thread
unit-asan: $(filter-out %/test_elf,$(UNITS:$(O)/unit/%=$(O)/fuzz/unit/%)) | all progs
	$(Q)tests/sanitize.sh $^
unit-tsan: $(filter $(addprefix $(O)/tsan/unit/test_,$(UNITS_THREADS)),$(UNITS:$(O)/unit/%=$(O)/tsan/unit/%)) | all progs
	$(Q)tests/sanitize.sh $^

# The agent's library with ThreadSanitizer in a real PyTorch.
agent-tsan:
	$(Q)tests/setup.sh $(O)
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/tsan/agent.sh $(O)
print-libs:
	@echo $(LIBS)

fuzz: $(FUZZ)
	$(Q)tests/fuzz/run.sh $(O)

install: all
	install -D -m 755 $(O)/mxbpf '$(DESTDIR)$(PREFIX)/bin/mxbpf'
	install -D -m 644 $(O)/mxbpf.1 '$(DESTDIR)$(PREFIX)/share/man/man1/mxbpf.1'
	install -D -m 644 $(O)/report.schema.json '$(DESTDIR)$(PREFIX)/share/mxbpf/report.schema.json'
	install -D -m 644 $(O)/mxbpf.bash '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/mxbpf'
	install -D -m 644 share/serve/mxbpf-serve.service '$(DESTDIR)$(PREFIX)/lib/systemd/system/mxbpf-serve.service'
	sed -i 's|=/usr/bin/|=$(PREFIX)/bin/|' '$(DESTDIR)$(PREFIX)/lib/systemd/system/mxbpf-serve.service'
	install -m 644 $(filter-out %.service,$(wildcard share/serve/*)) share/skill/SKILL.md '$(DESTDIR)$(PREFIX)/share/mxbpf'

uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/mxbpf' '$(DESTDIR)$(PREFIX)/share/man/man1/mxbpf.1' \
		'$(DESTDIR)$(PREFIX)/share/bash-completion/completions/mxbpf' '$(DESTDIR)$(PREFIX)/lib/systemd/system/mxbpf-serve.service'
	rm -rf '$(DESTDIR)$(PREFIX)/share/mxbpf'

# What is linked, and packages. STATIC=1: the deb of the static binary  PACKAGE_VERSION=: another version than VERSION
# MAINTAINER='Name <name@example.org>'
BINARY      := mxbpf$(if $(STATIC),-static)
PACKAGE_VERSION ?= $(VERSION)
EPOCH        = $${SOURCE_DATE_EPOCH:-$$(git -c safe.directory='*' log -1 --format=%ct 2>/dev/null || stat -c %Y VERSION)}
sbom: $(O)/$(BINARY).spdx.json

$(O)/%.spdx.json: $(O)/% share/sbom.py share/page/sbom.cdx.json $(wildcard vendor/*)
	$(call say,SBOM,$@)
	$(Q)SOURCE_DATE_EPOCH=$(EPOCH) share/sbom.py $< $(VERSION) >$@

deb: all $(O)/$(BINARY).spdx.json
	$(call say,DEB,$(O))
	$(Q)rm -rf $(O)/deb
	$(Q)$(MAKE) -s --no-print-directory install DESTDIR='$(OUT)/deb' PREFIX=/usr
	$(Q)SOURCE_DATE_EPOCH=$(EPOCH) share/deb/build.sh $(O) $(BINARY) $(PACKAGE_VERSION)

# What the wheel and the image carry: the stripped static program, the list of what is linked into it, the licences.
$(O)/portable/stamp: $(O)/mxbpf-static LICENSE share/sbom.py share/licences.sh share/page/sbom.cdx.json $(wildcard vendor/*)
	$(call say,STRIP,$(@D)/mxbpf)
	$(Q)rm -rf $(@D) && mkdir -p $(@D)/licences
	$(Q)strip --strip-unneeded --remove-section=.comment -o $(@D)/mxbpf $<
	$(Q)SOURCE_DATE_EPOCH=$(EPOCH) share/sbom.py $< $(VERSION) $(@D)/mxbpf >$(@D)/mxbpf.spdx.json
	$(Q)share/licences.sh $(@D)/mxbpf.spdx.json $(@D)/licences
	$(Q)chmod -R u=rwX,go=rX $(@D) && touch $@

# For Rocky, Amazon Linux, Fedora and openSUSE: of the static program.
export MAINTAINER
rpm: all $(O)/mxbpf-static
	$(call say,RPM,$(O))
	$(Q)rm -rf $(O)/rpm
	$(Q)$(MAKE) -s --no-print-directory install DESTDIR='$(OUT)/rpm/stage' PREFIX=/usr
	$(Q)SOURCE_DATE_EPOCH=$(EPOCH) share/stage.sh $(O)/rpm/stage $(O)/mxbpf-static $(PACKAGE_VERSION)
	$(Q)who=$$(share/maintainer.sh) && SOURCE_DATE_EPOCH=$(EPOCH) rpmbuild --quiet -bb --define '_topdir $(OUT)/rpm/top' --define '_rpmdir $(OUT)' \
		--define '_build_name_fmt %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' --define 'stage $(OUT)/rpm/stage' --define 'mxbpf_version $(PACKAGE_VERSION)' \
		--define "mxbpf_packager $$who" share/rpm/mxbpf.spec
	$(Q)rm -rf $(O)/rpm

# For apt, dnf and zypper. KEY=: a key of gpg  MAINTAINER='Name <name@example.org>'  URL=: where the folder will be
repos:
	$(Q)KEY='$(KEY)' URL='$(URL)' share/repos.sh $(O)

# For pip: the program and the Python module.
wheel: all $(O)/portable/stamp
	$(call say,WHEEL,$(O))
	$(Q)SOURCE_DATE_EPOCH=$(EPOCH) share/wheel.py $(O) $(VERSION)

# A container image in a file, for `podman load`. buildah's storage is a folder of its own, which is removed afterwards.
image: $(O)/portable/stamp
	$(call say,IMAGE,$(O)/mxbpf.oci.tar)
	$(Q)rm -rf $(O)/image.store $(O)/mxbpf.oci.tar
	$(Q)buildah --root '$(OUT)/image.store/root' --runroot '$(OUT)/image.store/run' --storage-driver vfs bud --quiet --isolation chroot \
		--timestamp $(EPOCH) --build-arg VERSION=$(VERSION) -f share/image/Containerfile -t 'oci-archive:$(OUT)/mxbpf.oci.tar:mxbpf:$(VERSION)' $(O)/portable >/dev/null
	$(Q)rm -rf $(O)/image.store

# Keeps the downloads (venv, wheels, npm), which take long to repeat. `make distclean` removes them, too.
clean:
	rm -rf $(addprefix $(O)/,obj gen unit prog toy gpu fuzz tsan analyze cppcheck test bench deb rpm libmxbpf.a libmxbpf.so mxbpf mxbpf-static mxbpf.1 \
		mxbpf.bash report.schema.json portable repos image.store *.map *.spdx.json *.deb *.rpm *.whl *.oci.tar)

distclean:
	rm -rf $(O)

-include $(OBJ:.o=.d) $(UNITS:=.d) $(wildcard $(addprefix $(O)/,fuzz/obj/*/*/*.d fuzz/obj/*/*/*/*.d fuzz/unit/*.d tsan/obj/*/*/*.d tsan/obj/*/*/*/*.d tsan/unit/*.d analyze/*/*/*.d analyze/*/*/*/*.d)) $(O)/obj/user/main.d $(O)/obj/user/static.d

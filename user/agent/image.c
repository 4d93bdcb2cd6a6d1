// SPDX-License-Identifier: Apache-2.0
/* The shared object that goes into targets, as it was built, inside of mxbpf. */
#include "agent/image.h"

__asm__(".section .rodata\n"
	".balign 16\n"
	".globl agent_image\n"
	"agent_image:\n"
	".incbin \"agent.so\"\n"
	"1:\n"
	".balign 8\n"
	".globl agent_image_bytes\n"
	"agent_image_bytes:\n"
	".quad 1b - agent_image\n"
	".previous\n");

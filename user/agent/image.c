// SPDX-License-Identifier: Apache-2.0
/* The files that mxbpf loads into targets: the shared object as built, and the scripts that load it. */
#include "agent/image.h"

__asm__(".section .rodata\n"
	".balign 16\n"
	".globl agent_image; .type agent_image, @object\n"
	"agent_image:\n"
	".incbin \"agent.so\"\n"
	"1: .size agent_image, . - agent_image\n"
	".balign 8\n"
	".globl agent_image_bytes\n"
	"agent_image_bytes:\n"
	".quad 1b - agent_image\n"
	".type agent_image_bytes, @object; .size agent_image_bytes, 8\n"
	".globl agent_enter\n"
	"agent_enter:\n"
	".incbin \"enter.py\"\n"
	".byte 0\n"
	".globl agent_failed\n"
	"agent_failed:\n"
	".incbin \"failed.py\"\n"
	".byte 0\n"
	".previous\n");

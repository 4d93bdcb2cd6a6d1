// SPDX-License-Identifier: Apache-2.0
/* The style and the script of the page, and the libraries that they use; share/page/README.md says which. */
#include "view/page/page.h"

__asm__(".section .rodata\n"
	".globl page_style\n"
	"page_style:\n"
	".incbin \"vendor/uPlot.min.css\"\n"
	".ascii \"\\n\"\n"
	".incbin \"vendor/d3-flamegraph.css\"\n"
	".ascii \"\\n\"\n"
	".incbin \"page.css\"\n"
	".byte 0\n"
	".globl page_script\n"
	"page_script:\n"
	".incbin \"vendor/uPlot.iife.min.js\"\n"
	".ascii \"\\n\"\n"
	".incbin \"vendor/d3-selection.min.js\"\n"
	".ascii \"\\n\"\n"
	".incbin \"vendor/d3-flamegraph.min.js\"\n"
	".ascii \"\\n\"\n"
	".incbin \"page.js\"\n"
	".byte 0\n"
	".previous\n");

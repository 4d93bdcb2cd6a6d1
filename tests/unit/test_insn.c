/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "insn/insn.h"

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

struct encoding {
	const char *text;
	const uint8_t *code;
	size_t size;
	int cost; /* enum insn_cost, or -EILSEQ */
};

static const struct encoding encodings[] = {
	{"push rbp", BYTES(0x55), INSN_EMULATED},
	{"push rsp", BYTES(0x54), INSN_EMULATED},
	{"push r15", BYTES(0x41, 0x57), INSN_EMULATED},
	{"rex.w push rbx", BYTES(0x48, 0x53), INSN_STEPPED},
	{"rex push rbx", BYTES(0x40, 0x53), INSN_STEPPED},
	{"rex.wb push r11", BYTES(0x49, 0x53), INSN_STEPPED},
	{"push bx", BYTES(0x66, 0x53), INSN_STEPPED},
	{"push imm8", BYTES(0x6a, 0x01), INSN_STEPPED},
	{"push imm32", BYTES(0x68, 1, 0, 0, 0), INSN_STEPPED},
	{"push rbx by ff /6", BYTES(0xff, 0xf3), INSN_STEPPED},
	{"jo short", BYTES(0x70, 0x05), INSN_EMULATED},
	{"jg short", BYTES(0x7f, 0x05), INSN_EMULATED},
	{"bnd je", BYTES(0xf2, 0x74, 0x05), INSN_EMULATED},
	{"je near", BYTES(0x0f, 0x84, 1, 0, 0, 0), INSN_EMULATED},
	{"jg near", BYTES(0x0f, 0x8f, 1, 0, 0, 0), INSN_EMULATED},
	{"je hinted taken", BYTES(0x3e, 0x74, 0x05), INSN_REFUSED},
	{"je hinted not taken", BYTES(0x2e, 0x74, 0x05), INSN_REFUSED},
	{"data16 je", BYTES(0x66, 0x74, 0x05), INSN_REFUSED},
	{"data16 je near", BYTES(0x66, 0x0f, 0x84, 1, 0, 0, 0), INSN_REFUSED},
	{"jmp short", BYTES(0xeb, 0x05), INSN_EMULATED},
	{"jmp near", BYTES(0xe9, 5, 0, 0, 0), INSN_EMULATED},
	{"bnd jmp", BYTES(0xf2, 0xe9, 5, 0, 0, 0), INSN_EMULATED},
	{"data16 jmp", BYTES(0x66, 0xe9, 5, 0, 0, 0), INSN_REFUSED},
	{"call", BYTES(0xe8, 5, 0, 0, 0), INSN_EMULATED},
	{"addr32 call", BYTES(0x67, 0xe8, 5, 0, 0, 0), INSN_EMULATED},
	{"data16 rex.w call (tls)", BYTES(0x66, 0x66, 0x48, 0xe8, 5, 0, 0, 0), INSN_REFUSED},
	{"call rax", BYTES(0xff, 0xd0), INSN_STEPPED},
	{"jmp rax", BYTES(0xff, 0xe0), INSN_STEPPED},
	{"loop", BYTES(0xe2, 0x05), INSN_STEPPED},
	{"jrcxz", BYTES(0xe3, 0x05), INSN_STEPPED},
	{"nop", BYTES(0x90), INSN_EMULATED},
	{"xchg ax,ax", BYTES(0x66, 0x90), INSN_EMULATED},
	{"xchg r8d,eax", BYTES(0x41, 0x90), INSN_REFUSED},
	{"nop of 3 bytes", BYTES(0x0f, 0x1f, 0x00), INSN_STEPPED},
	{"nop of 5 bytes", BYTES(0x0f, 0x1f, 0x44, 0x00, 0x00), INSN_REFUSED},
	{"nop of 5 bytes by prefixes", BYTES(0x66, 0x66, 0x66, 0x66, 0x90), INSN_REFUSED},
	{"jmp of 5 bytes to the next", BYTES(0xe9, 0, 0, 0, 0), INSN_REFUSED},
	{"lea rsi,[rsi+0] of 5 bytes", BYTES(0x48, 0x8d, 0x74, 0x26, 0x00), INSN_REFUSED},
	{"cs nopw", BYTES(0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0), INSN_REFUSED},
	{"es mov", BYTES(0x26, 0x8b, 0x07), INSN_REFUSED},
	{"ss mov", BYTES(0x36, 0x8b, 0x07), INSN_REFUSED},
	{"ds mov", BYTES(0x3e, 0x8b, 0x07), INSN_REFUSED},
	{"fs mov", BYTES(0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0), INSN_STEPPED},
	{"lock add", BYTES(0xf0, 0x01, 0x07), INSN_REFUSED},
	{"notrack jmp rax", BYTES(0x3e, 0xff, 0xe0), INSN_REFUSED},
	{"endbr64", BYTES(0xf3, 0x0f, 0x1e, 0xfa), INSN_STEPPED},
	{"sub rsp,8", BYTES(0x48, 0x83, 0xec, 0x08), INSN_STEPPED},
	{"mov rbp,rsp", BYTES(0x48, 0x89, 0xe5), INSN_STEPPED},
	{"pop rbp", BYTES(0x5d), INSN_STEPPED},
	{"ret", BYTES(0xc3), INSN_STEPPED},
	{"repz ret", BYTES(0xf3, 0xc3), INSN_STEPPED},
	{"leave", BYTES(0xc9), INSN_STEPPED},
	{"vpshufd, opcode 70 as jo", BYTES(0xc5, 0xf9, 0x70, 0xc1, 0x1b), INSN_REFUSED},
	{"vzeroupper, opcode 77 as ja", BYTES(0xc5, 0xf8, 0x77), INSN_REFUSED},
	{"kmovw, opcode 90 as nop", BYTES(0xc5, 0xf8, 0x90, 0x07), INSN_REFUSED},
	{"evex vmovdqa32", BYTES(0x62, 0xf1, 0x7d, 0x48, 0x6f, 0x07), INSN_REFUSED},
	{"int3", BYTES(0xcc), INSN_REFUSED},
	{"int 80", BYTES(0xcd, 0x80), INSN_REFUSED},
	{"hlt", BYTES(0xf4), INSN_REFUSED},
	{"mov ss,ax", BYTES(0x8e, 0xd0), INSN_REFUSED},
	{"pushf", BYTES(0x9c), INSN_REFUSED},
	{"rep stosb", BYTES(0xf3, 0xaa), INSN_REFUSED},
	{"repne scasb", BYTES(0xf2, 0xae), INSN_REFUSED},
	{"stosb", BYTES(0xaa), INSN_STEPPED},
	{"syscall", BYTES(0x0f, 0x05), INSN_REFUSED},
	{"no opcode of 64-bit mode", BYTES(0x06), -EILSEQ},
	{"cut short", BYTES(0xe8, 0x05, 0x00), -EILSEQ},
	{"nothing", (const uint8_t *)"", 0, -EILSEQ},
};

static void check_encoding(const struct encoding *c)
{
	enum insn_cost cost = INSN_REFUSED;
	uint32_t len = 0;
	int got = insn_classify(c->code, c->size, &cost, &len);

	if (!got)
		got = (int)cost;
	if (got != c->cost)
		printf("# %s: %d, not %d\n", c->text, got, c->cost);
	CHECK(got == c->cost);
	CHECK(c->cost < 0 || len == c->size);
}

struct placing {
	const char *what;
	const uint8_t *code;
	size_t size;
	int ret;
	uint32_t delta;
	int cost;
	const char *text;
};

#define ENDBR 0xf3, 0x0f, 0x1e, 0xfa
#define NOP5  0x0f, 0x1f, 0x44, 0x00, 0x00

static const struct placing placings[] = {
	{"push first stays", BYTES(0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3), 0, 0, INSN_EMULATED, "push rbp"},
	{"endbr64 is skipped", BYTES(ENDBR, 0x55, 0x5d, 0xc3), 0, 4, INSN_EMULATED, "push rbp"},
	{"endbr64 and moves to other registers are skipped",
	 BYTES(ENDBR, 0x48, 0x89, 0xf8, 0x31, 0xdb, 0x41, 0x57, 0xc3), 0, 9, INSN_EMULATED, "push r15"},
	{"lea of an address is skipped", BYTES(0x4c, 0x8d, 0x15, 1, 0, 0, 0, 0x53, 0x5b, 0xc3), 0, 7, INSN_EMULATED,
	 "push rbx"},
	{"test and its jump", BYTES(0x48, 0x85, 0xff, 0x74, 0x01, 0x90, 0xc3), 0, 3, INSN_EMULATED, NULL},
	{"a written argument stops", BYTES(0x89, 0xf7, 0x55, 0x5d, 0xc3), 0, 0, INSN_STEPPED, "mov edi, esi"},
	{"an argument written in part stops", BYTES(0xb2, 0x01, 0x55, 0x5d, 0xc3), 0, 0, INSN_STEPPED, "mov dl, 0x01"},
	{"an exchanged argument stops", BYTES(0x48, 0x87, 0xf0, 0x55, 0x5d, 0xc3), 0, 0, INSN_STEPPED, "xchg rax, rsi"},
	{"a hidden write of an argument stops", BYTES(0x48, 0x99, 0x55, 0x5d, 0xc3), 0, 0, INSN_STEPPED, "cqo"},
	{"a moved stack pointer stops", BYTES(0x48, 0x83, 0xec, 0x18, 0x55, 0xc3), 0, 0, INSN_STEPPED, NULL},
	{"endbr64 then sub rsp stays at the start", BYTES(ENDBR, 0x48, 0x83, 0xec, 0x18, 0x53, 0xc3), 0, 0,
	 INSN_STEPPED, "endbr64"},
	{"a read of memory stops", BYTES(0x48, 0x8b, 0x07, 0x55, 0x5d, 0xc3), 0, 0, INSN_STEPPED, NULL},
	{"a write of memory stops", BYTES(0x89, 0x07, 0x55, 0x5d, 0xc3), 0, 0, INSN_STEPPED, NULL},
	{"a vector register stops", BYTES(0x66, 0x0f, 0xef, 0xc0, 0x55, 0x5d, 0xc3), 0, 0, INSN_STEPPED, NULL},
	{"nothing emulated follows", BYTES(0x31, 0xc0, 0xc3), 0, 0, INSN_STEPPED, "xor eax, eax"},
	{"code ends in the moves", BYTES(0x31, 0xc0), 0, 0, INSN_STEPPED, "xor eax, eax"},
	/* 0: xor eax,eax; 2: mov ebx,edi (target); 4: push; 5: pop; 6: jne 2 */
	{"a branch back before the push stops", BYTES(0x31, 0xc0, 0x89, 0xfb, 0x55, 0x5d, 0x75, 0xfa, 0xc3), 0, 0,
	 INSN_STEPPED, "xor eax, eax"},
	/* 0: xor eax,eax; 2: push (target); 3: pop; 4: jne 2 */
	{"a branch onto the push stops", BYTES(0x31, 0xc0, 0x55, 0x5d, 0x75, 0xfc, 0xc3), 0, 0, INSN_STEPPED,
	 "xor eax, eax"},
	/* 0: xor eax,eax; 2: push; 3: pop (target); 4: jne 3 */
	{"a branch behind the push does not", BYTES(0x31, 0xc0, 0x55, 0x5d, 0x75, 0xfd, 0xc3), 0, 2, INSN_EMULATED,
	 "push rbp"},
	/* 0: xor eax,eax; 2: push; 3: pop; 4: jne 0: as often at 2 as at 0 */
	{"a branch to the start does not", BYTES(0x31, 0xc0, 0x55, 0x5d, 0x75, 0xfa, 0xc3), 0, 2, INSN_EMULATED,
	 "push rbp"},
	/* 0: xor eax,eax; 2: push; 3: pop; 4: loop 2 */
	{"loop is a branch too", BYTES(0x31, 0xc0, 0x55, 0x5d, 0xe2, 0xfc, 0xc3), 0, 0, INSN_STEPPED, "xor eax, eax"},
	{"a jump of the whole 32 bits is a branch too",
	 BYTES(0x31, 0xc0, 0x55, 0x5d, 0x0f, 0x85, 0xf8, 0xff, 0xff, 0xff, 0xc3), 0, 0, INSN_STEPPED, "xor eax, eax"},
	{"moves before a jump table are not skipped", BYTES(0x31, 0xc0, 0x55, 0x5d, 0xff, 0xe0), 0, 0, INSN_STEPPED,
	 "xor eax, eax"},
	/* 0: cmp dword [rip], imm32; 10: je 18h; 12: jmp [rip]; 18h: mov eax, 4; ret: a function of CUDA's driver */
	{"a comparison before a jump through one pointer is skipped",
	 BYTES(0x81, 0x3d, 0x3e, 0x93, 0x8d, 0x01, 0x00, 0xba, 0x1c, 0x32, 0x74, 0x0c, 0xff, 0x25, 0xc6, 0x18, 0x7e,
	       0x01, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xb8, 0x04, 0x00, 0x00, 0x00, 0xc3),
	 0, 10, INSN_EMULATED, NULL},
	{"moves before a jump through a table in the data are not skipped",
	 BYTES(0x31, 0xc0, 0x55, 0x5d, 0xff, 0x24, 0xc5, 0, 0, 0, 0), 0, 0, INSN_STEPPED, "xor eax, eax"},
	{"endbr64 before a jump table is", BYTES(ENDBR, 0x55, 0x5d, 0xff, 0xe0), 0, 4, INSN_EMULATED, "push rbp"},
	{"what cannot be decoded behind may branch back", BYTES(ENDBR, 0x55, 0x5d, 0x06, 0xc3), 0, 0, INSN_STEPPED,
	 "endbr64"},
	{"a patchable nop of 5 bytes is skipped", BYTES(NOP5, 0x55, 0x5d, 0xc3), 0, 5, INSN_EMULATED, "push rbp"},
	{"a nop of 5 bytes alone is refused", BYTES(NOP5, 0xc3), -ENOTSUP, 0, INSN_REFUSED, NULL},
	{"an AVX instruction alone is refused", BYTES(0xc5, 0xf9, 0x70, 0xc1, 0x1b, 0xc3), -ENOTSUP, 0, INSN_REFUSED,
	 NULL},
	{"data is no function", BYTES(0x06, 0x55, 0xc3), -EILSEQ, 0, 0, NULL},
	{"an empty function is none", (const uint8_t *)"", 0, -EILSEQ, 0, 0, NULL},
};

static void check_placing(const struct placing *c)
{
	struct insn_entry out;
	struct err e = {0};
	int ret = insn_place_entry(c->code, c->size, 0x1000, &out, &e);

	if (ret != c->ret || (!ret && (out.delta_bytes != c->delta || (int)out.cost != c->cost)) ||
	    (!ret && c->text && strcmp(out.text, c->text)))
		printf("# %s: %d, +%u, cost %d, '%s'\n", c->what, ret, out.delta_bytes, out.cost, out.text);
	CHECK(ret == c->ret);
	CHECK(!ret == !e.code && !ret == !e.why[0]);
	if (ret)
		return;
	CHECK(out.delta_bytes == c->delta);
	CHECK((int)out.cost == c->cost);
	CHECK(!c->text || !strcmp(out.text, c->text));
	CHECK(insn_is_boundary(c->code, c->size, out.delta_bytes) == 1);
}

int main(void)
{
	/* Code: 0: mov eax,0x90909090; 5: push; 6: ret; 7: undecodable */
	static const uint8_t code[] = {0xb8, 0x90, 0x90, 0x90, 0x90, 0x55, 0xc3, 0x06, 0x90};

	TEST("each encoding has the kernel's cost, with and without prefixes")
	{
		for (size_t i = 0; i < sizeof(encodings) / sizeof(*encodings); i++)
			check_encoding(&encodings[i]);
	}
	TEST("a probe moves past the entry only while arguments and stack are unchanged and no branch leads back")
	{
		for (size_t i = 0; i < sizeof(placings) / sizeof(*placings); i++)
			check_placing(&placings[i]);
	}
	TEST("the middle of an instruction is no boundary, even if its bytes decode")
	{
		CHECK(insn_is_boundary(code, sizeof(code), 0) == 1);
		for (size_t i = 1; i < 5; i++)
			CHECK(insn_is_boundary(code, sizeof(code), i) == 0);
		CHECK(insn_is_boundary(code, sizeof(code), 5) == 1);
		CHECK(insn_is_boundary(code, sizeof(code), 6) == 1);
	}
	TEST("no offset is a boundary at or after undecodable bytes, or outside of the code")
	{
		CHECK(insn_is_boundary(code, sizeof(code), 7) == -EILSEQ);
		CHECK(insn_is_boundary(code, sizeof(code), 8) == -EILSEQ);
		CHECK(insn_is_boundary(code, sizeof(code), sizeof(code)) == 0);
		CHECK(insn_is_boundary(code, 3, 0) == -EILSEQ);
		CHECK(insn_is_boundary(code, 0, 0) == 0);
	}
	UNIT_MAIN_END;
}

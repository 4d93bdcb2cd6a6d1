/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests how functions without symbols, and the offsets of fields, are found from code. The code is the real MXNet
 * 1.9.1 (MXBPF_TEST_LIBMXNET), whose symbols give the right answers.
 */

#include "elf/hidden.h"
#include "insn/fields.h"
#include "opened_elf.h"

#define ENGINE "_ZN5mxnet6engine14ThreadedEngine"

static struct elf *elf;

static struct elf_sym named(const char *name)
{
	struct elf_sym sym = {0};

	CHECK(!elf_find_sym(elf, name, &sym, NULL));
	return sym;
}

static bool same(const struct elf_sym *a, const char *name)
{
	struct elf_sym b = named(name);

	return a->va == b.va && a->size_bytes == b.size_bytes;
}

static void test_found(void)
{
	static const char engine[] = "N5mxnet6engine23ThreadedEnginePerDeviceE", storage[] = "N5mxnet11StorageImplE";
	struct elf_sym sym, execute = named(ENGINE "15ExecuteOprBlockENS_10RunContextEPNS0_8OprBlockE");
	struct err e = {0};

	TEST("a virtual function is found by its class and its slot")
	{
		CHECK(!elf_find_virtual(elf, engine, 6, &sym, &e) &&
		      same(&sym, ENGINE "4PushEPNS0_3OprENS_7ContextEib"));
		CHECK(!elf_find_virtual(elf, engine, 9, &sym, &e) && same(&sym, ENGINE "10WaitForVarEPNS0_3VarE"));
		CHECK(!elf_find_virtual(elf, engine, 10, &sym, &e) && same(&sym, ENGINE "10WaitForAllEv"));
		CHECK(!elf_find_virtual(elf, storage, 2, &sym, &e) &&
		      same(&sym, "_ZN5mxnet11StorageImpl4FreeENS_7Storage6HandleE"));
	}
	TEST("an unknown class or a slot beyond the last one is not found")
	{
		CHECK(elf_find_virtual(elf, "N5mxnet7NothingE", 0, &sym, &e) == -ENOENT &&
		      strstr(e.why, "N5mxnet7NothingE"));
		CHECK(elf_find_virtual(elf, "mxnet6engine23ThreadedEnginePerDeviceE", 6, &sym, &e) == -ENOENT);
		CHECK(elf_find_virtual(elf, storage, 1000000, &sym, &e) == -ENOENT);
	}
	TEST("a function is found by a text that only it refers to")
	CHECK(!elf_find_text_user(elf, "ExecuteOprBlock ", &sym, &e) && sym.va == execute.va);
	TEST("a text with several users, the end of a longer text, and an unknown text find no function")
	{
		CHECK(elf_find_text_user(elf, "DeleteVariable", &sym, &e) == -ENOTUNIQ);
		CHECK(elf_find_text_user(elf, "OprBlock ", &sym, &e) == -ENOENT);
		CHECK(elf_find_text_user(elf, "no text like this", &sym, &e) == -ENOENT);
	}
	TEST("a function is found by the function that takes its address")
	CHECK(!elf_find_taken(elf, &execute, &sym, &e) &&
	      same(&sym, ENGINE "16OnCompleteStaticEPNS_6EngineEPvPKN4dmlc5ErrorE"));
}

static void test_fields(void)
{
	struct elf_sym execute = named(ENGINE "15ExecuteOprBlockENS_10RunContextEPNS0_8OprBlockE");
	struct elf_sym wait = named(ENGINE "10WaitForAllEv");
	struct elf_sym alloc = named("_ZN5mxnet11StorageImpl5AllocEPNS_7Storage6HandleE");
	struct elf_sym release = named("_ZN5mxnet11StorageImpl4FreeENS_7Storage6HandleE");
	struct fields_handle handle;
	struct fields_block block;
	struct err e = {0};

	TEST("the offsets of an operator's name and device are read from the code")
	CHECK(!fields_of_block(elf, &execute, &block, &e) && block.object_off == 8 && block.name_off == 88 &&
	      block.location_off == 16);
	TEST("the offset of an allocation's device is read from the code, for a pointer and for a copy")
	{
		CHECK(!fields_of_handle(elf, &alloc, &handle, &e) && handle.location_off == 16 && !handle.ncompared);
		CHECK(!fields_of_handle_copy(elf, &release, &handle, &e) && handle.location_off == 16 &&
		      handle.ncompared == 1 && handle.compared_off[0] == 0);
	}
	TEST("code that reads other fields is refused")
	{
		CHECK(fields_of_block(elf, &wait, &block, &e) == -EILSEQ && strstr(e.why, "name"));
		CHECK(fields_of_handle(elf, &wait, &handle, &e) == -EILSEQ);
		CHECK(fields_of_handle(elf, &release, &handle, &e) == -EILSEQ);
		CHECK(fields_of_handle_copy(elf, &alloc, &handle, &e) == -EILSEQ);
	}
}

int main(void)
{
	const char *path = unit_library("MXBPF_TEST_LIBMXNET");

	if (!path)
		TEST_IF(path, "functions without symbols are found from the code of MXNet", NO_MXNET) CHECK(0);
	if (!path)
		return unit_end();
	elf = opened_elf(path);
	TEST("the library can be opened") CHECK(elf != NULL);
	if (!elf)
		return unit_end();
	test_found();
	test_fields();
	elf_close(elf);
	return unit_end();
}

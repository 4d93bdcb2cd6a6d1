// SPDX-License-Identifier: Apache-2.0
#include "base/exception.h"

#include <string.h>

/* The place in the list is the number, which recordings have. */
static const char *const names[] = {
	NULL,
	"Exception",
	"ArithmeticError",
	"AssertionError",
	"AttributeError",
	"BlockingIOError",
	"BrokenPipeError",
	"ConnectionError",
	"ConnectionAbortedError",
	"ConnectionRefusedError",
	"ConnectionResetError",
	"EOFError",
	"FileExistsError",
	"FileNotFoundError",
	"ImportError",
	"IndexError",
	"InterruptedError",
	"KeyError",
	"MemoryError",
	"ModuleNotFoundError",
	"NotImplementedError",
	"OSError",
	"OverflowError",
	"PermissionError",
	"RuntimeError",
	"TimeoutError",
	"TypeError",
	"UnicodeDecodeError",
	"ValueError",
	"ZeroDivisionError",
};

const char *exception_name(uint8_t number)
{
	return number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}

uint8_t exception_number(const char *name)
{
	uint8_t i;

	for (i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return i;
	return 0;
}

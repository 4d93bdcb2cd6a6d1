/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in exceptions of Python that a program may catch. */
#ifndef BASE_EXCEPTION_H
#define BASE_EXCEPTION_H

#include <stdint.h>

const char *exception_name(uint8_t number); /* "OSError"; NULL: there is no such number */
uint8_t exception_number(const char *name); /* 0: there is no such name */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of nvprof have numbers of calls instead of names: CUPTI's callback ids, which never change. */
#ifndef IMPORT_NVPROF_CALLS_H
#define IMPORT_NVPROF_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Writes the name of a call of the runtime or of the driver. A call that is not known is named by its number. */
void nvprof_call(bool driver, int64_t number, char to[64]);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "adapter/adapter.h"

#include <stddef.h>

const char *const adp_all[] = {"*", NULL};

const struct adp *const adapters[] = {&adapter_mxnet, &adapter_pytorch, NULL};

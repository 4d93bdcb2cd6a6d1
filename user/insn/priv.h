/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the insn room. */
#ifndef INSN_PRIV_H
#define INSN_PRIV_H

#include <Zydis/Zydis.h>

#include "insn/insn.h"

enum insn_cost insn_cost_of(const ZydisDecodedInstruction *i);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles hostile names: the input itself if it begins with "_", and otherwise a piece of the grammar for each byte.
 * The library is not instrumented and runs in another process, so pieces find its deep corners faster than single
 * characters. What is looked at are the promises: an answer in time, no text beyond the limit, and a process that is
 * ready for the next name after any name.
 */
#include <stdint.h>

/* The state of the demangler must be reset when its processes are used up, so this program has one of its own. */
#define demangle       fuzzed_demangle
#define demangle_start fuzzed_demangle_start
#include "../../user/base/demangle.c"

#define PLAIN "_ZN2at3addERKNS_6TensorE"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pieces[] = {
	"S_",	 "S0_",	       "S1_",	     "S2_",	 "S3_",	    "S9_",    "SA_",  "SZ_",	  "T_",
	"T0_",	 "T1_",	       "TL0__",	     "I",	 "J",	    "E",      "EE",   "N",	  "Z",
	"X",	 "L",	       "Li1E",	     "Lb1E",	 "L_Z1fvE", "1p",     "1a",   "3foo",	  "S_I",
	"P",	 "R",	       "O",	     "K",	 "F",	    "A3_",    "M",    "Dp",	  "sp",
	"cv",	 "cvT_I",      "N1acvT_I",   "i",	 "v",	    "DTE",    "DT",   "dt",	  "fp_",
	"fL0p_", "srT_1x",     "sr",	     "on",	 "gs",	    "cl",     "pl",   "tl",	  "il",
	"nw",	 "_",	       "C1",	     "D0",	 "UlvE_",   "UlT_E_", "Ut_",  "B3abi",	  "St",
	"Sa",	 "sZ",	       "fl",	     "fR",	 "DO",	    "Do",     "Dv4_", "U3vecIiE", "W3modE",
	"GTt",	 "S_IS0_S0_E", "S_IS1_S1_E", "S_IT_T_E", "JDpT_E",  "DpRT_",
};

static void refill(void)
{
	if (client.socket >= 0)
		return;
	waitpid(client.keeper, NULL, 0);
	client.started = false;
}

static void check(const char *name)
{
	char *text = demangle(name);

	if (client.waits) { /* the machine stood still for a second; a name that hangs does so again */
		client.waits = 0;
		free(text);
		refill();
		text = demangle(name);
	}
	if (client.waits || (text && strlen(text) > DEMANGLE_TEXT_BYTES))
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[DEMANGLE_NAME_BYTES + 256];
	static unsigned tried;
	size_t n = 0, i;

	strcpy(name, size && data[0] == '_' ? "" : "_Z1f");
	n = strlen(name);
	for (i = 0; i < size && n <= DEMANGLE_NAME_BYTES; i++) {
		if (data[0] == '_')
			name[n++] = (char)data[i];
		else
			n = (size_t)(stpcpy(name + n, pieces[data[i] % (sizeof(pieces) / sizeof(*pieces))]) - name);
	}
	name[n] = '\0';
	refill();
	check(name);
	refill();
	if (++tried % 16 == 0) {
		char *plain = demangle(PLAIN);

		if (!plain && client.socket < 0) { /* the name before it used up the last process */
			refill();
			plain = demangle(PLAIN);
		}
		if (!plain || strcmp(plain, "at::add(at::Tensor const&)"))
			abort();
		free(plain);
	}
	return 0;
}

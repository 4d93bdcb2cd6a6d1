// SPDX-License-Identifier: Apache-2.0
/* Tests which line of a Python stack is shown as that of the program. */

#include "feature/lines/lines.h"
#include "model/model.h"
#include "unit.h"

#define ID 5

static const struct {
	const char *stack, *line;
} cases[] = {
	{"/srv/train.py(12): step\n/srv/train.py(40): main", "/srv/train.py(12): step"},
	{"train.py(12): step", "train.py(12): step"},
	/* packages, with and without the directory that they are in, and Python's own library */
	{"torch/_tensor.py(623): backward\n/srv/train.py(12): step", "/srv/train.py(12): step"},
	{"/opt/lib/python3.11/site-packages/a/b.py(1): f\n/usr/lib/python3.11/threading.py(1): run\n/srv/train.py(12): "
	 "step",
	 "/srv/train.py(12): step"},
	/* a call of a module is no line */
	{"nn.Module: Linear\n/srv/train.py(12): step", "/srv/train.py(12): step"},
	/* MXNet makes functions from text; the program of `python -c` is one itself */
	{"mxnet/_ctypes/ndarray.py(82): _imperative_invoke\n<string>(47): _mul_scalar\n/srv/train.py(12): step",
	 "/srv/train.py(12): step"},
	{"torch/_tensor.py(623): backward\n<string>(3): <module>", "<string>(3): <module>"},
	/* files that PyTorch's compiler writes, also into a directory of the user's, and code without a file */
	{"/tmp/torchinductor_me/ab/cab2345.py(90): call\ntorch/_inductor/utils.py(9): run\n/srv/train.py(12): step",
	 "/srv/train.py(12): step"},
	{"/cache/o2/co2abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopq.py(90): call\n/srv/train.py(12): step",
	 "/srv/train.py(12): step"},
	{"<eval_with_key>.5(7): forward\n/srv/train.py(12): step", "/srv/train.py(12): step"},
	{"/srv/classification_of_pictures_with_many_layers_in_it.py(3): run",
	 "/srv/classification_of_pictures_with_many_layers_in_it.py(3): run"},
	{"/srv/cats.py(3): run\n/srv/train.py(12): step", "/srv/cats.py(3): run"},
	{"<stdin>(1): typed\n/srv/train.py(12): step", "<stdin>(1): typed"},
	/* outer frames that are not known */
	{"torch/_tensor.py(623): backward\n...\n/srv/train.py(12): step", "/srv/train.py(12): step"},
	/* nothing is of the program: the innermost line */
	{"torch/_tensor.py(623): backward\nmxnet/a.py(1): f", "torch/_tensor.py(623): backward"},
};

static void put(struct mdl *m, const char *text)
{
	union {
		struct mxbpf_name n;
		char bytes[512];
	} r = {.n = {.kind = MXBPF_NAME_STACK, .id = ID, .len = (uint32_t)strlen(text)}};

	r.n.h.kind = MXBPF_NAME;
	r.n.h.size = (uint16_t)((sizeof(r.n) + strlen(text) + 7) / 8 * 8);
	memcpy(r.bytes + sizeof(r.n), text, strlen(text));
	CHECK(!mdl_fold_all(m, &r, r.n.h.size));
}

int main(void)
{
	const char *line;
	struct mdl *m;
	size_t i, len;

	TEST("the line of a stack is the innermost one that is of the program")
	{
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			m = mdl_new();
			put(m, cases[i].stack);
			line = lines_of_program(m, ID, &len);
			CHECK(line && len == strlen(cases[i].line) && !memcmp(line, cases[i].line, len));
			mdl_free(m);
		}
	}
	TEST("a stack that is not known has no line")
	{
		m = mdl_new();
		CHECK(!lines_of_program(m, ID, &len) && !len);
		CHECK(!lines_of_program(m, 0, &len) && !len);
		mdl_free(m);
	}
	UNIT_MAIN_END;
}

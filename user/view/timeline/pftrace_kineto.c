// SPDX-License-Identifier: Apache-2.0
/* Events of a PyTorch session in Perfetto's own format, with the args of Kineto's form. */
#include "view/compat/kineto.h"
#include "view/compat/kineto_text.h"
#include "view/timeline/pftrace.h"

static void pftrace_kineto_put_texts(struct pftrace *f, const struct mxbpf_span *s)
{
	if (s->args_id)
		pftrace_put_text(f, view_trace_text(f->inner, s->args_id, view_text_args));
	if (s->stack_id)
		pftrace_put_text(f, view_trace_text(f->inner, s->stack_id, view_text_stack));
	if (s->layer_id)
		pftrace_put_text(f, view_trace_text(f->inner, s->layer_id, view_text_layer));
}

/* A call of CUDA is no operator, so it has no id of one. */
static void put_args(struct pftrace *f, const struct mxbpf_span *s, const struct view_place *place,
		     const struct view_number *nr)
{
	const bool is_operator = s->cls != MXBPF_CLASS_CUDA;

	if (is_operator)
		pftrace_put_u64(f, EXTERNAL_ID, nr->external_id);
	if (is_operator && s->flags & MXBPF_SPAN_SEQ) {
		pftrace_put_u64(f, SEQUENCE_NUMBER, MXBPF_SEQ_NR(s->seq));
		pftrace_put_u64(f, FWD_THREAD_ID, s->flags & MXBPF_SPAN_BACKWARD ? MXBPF_SEQ_THREAD(s->seq) : 0);
	}
	if (is_operator) {
		pftrace_put_u64(f, RECORD_FUNCTION_ID, 0);
		pftrace_kineto_put_texts(f, s);
	}
	pftrace_put_threads(f, s, place->tid);
	pftrace_put_account(f, s);
	pftrace_put_features(f, VIEW_ARGS_NUMBERS, s);
	pftrace_put_u64(f, EV_IDX, nr->ev_idx);
}

void pftrace_kineto_span(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place)
{
	struct pftrace *f = pftrace_of(t);
	const struct view_number nr = view_kineto_number(t, place->ordinal);
	const uint64_t start_ns = s->h.ts_ns - t->base_ns;
	const uint64_t dur_ns = s->dur_ns - (s->dur_ns > place->back_ns ? place->back_ns : 0);
	const bool fixed = s->cls != MXBPF_CLASS_CUDA && !(s->flags & MXBPF_SPAN_USER);
	struct packets_event event = {.type = PACKETS_BEGIN};
	uint64_t track;

	pftrace_settle(f);
	track = packets_thread(&f->packets, s->h.tgid, place->tid);
	event.category = pftrace_category(f, s, view_kineto_category(t, s), fixed);
	event.name = pftrace_name(f, s);
	put_args(f, s, place, &nr);
	packets_event(&f->packets, track, start_ns, &event);
	if (nr.arrow)
		view_kineto_arrow(t, s, place->tid, nr.arrow);
	packets_end(&f->packets, track, start_ns + dur_ns);
}

// SPDX-License-Identifier: Apache-2.0
/* Window, loss and sources in JSON, for the document and for traces. */
#include "base/json.h"
#include "feature/cost/cost.h"
#include "view/priv.h"

static void put_gaps(struct json *j, const struct mdl_session *s)
{
	size_t i;

	if (!s->ngaps)
		return;
	json_array(j, "gaps");
	for (i = 0; i < s->ngaps; i++) {
		json_object(j, NULL);
		json_u64(j, "pid", s->gaps[i].pid);
		json_u64(j, "gap_ns", s->gaps[i].gap_ns);
		json_end(j);
	}
	json_end(j);
}

static void put_fallbacks(struct json *j, const struct mdl_session *s)
{
	size_t i;

	if (!s->nfallbacks)
		return;
	json_array(j, "fallbacks");
	for (i = 0; i < s->nfallbacks; i++) {
		json_object(j, NULL);
		json_string(j, "name", s->fallbacks[i].name);
		json_u64(j, "at_ns", s->fallbacks[i].at_ns);
		json_u64(j, "calls_before", s->fallbacks[i].spans);
		json_end(j);
	}
	json_end(j);
}

static void about_put_notes(struct json *j, const struct mdl_session *s)
{
	size_t i;

	if (!s->nnotes)
		return;
	json_array(j, "notes");
	for (i = 0; i < s->nnotes; i++) {
		json_object(j, NULL);
		json_string(j, "name", s->notes[i].name);
		json_string(j, "text", s->notes[i].text);
		json_end(j);
	}
	json_end(j);
}

void view_json_window(struct json *j, const struct mdl_session *s)
{
	if (s->paused_ns)
		json_u64(j, "paused_ns", s->paused_ns);
	if (s->iterations) {
		json_u64(j, "iterations", s->iterations);
		json_u64(j, "sampled_iterations", s->sampled_iterations);
	}
	if (s->left_out)
		json_u64(j, "left_out", s->left_out);
	if (s->api_left) {
		json_object(j, "api");
		json_u64(j, "probed", s->api_probed);
		json_u64(j, "not_probed", s->api_left);
		json_end(j);
	}
	if (s->followed || s->unfollowed) {
		json_u64(j, "followed", s->followed);
		json_u64(j, "unfollowed", s->unfollowed);
		json_u64(j, "follow_lag_ns", s->follow_lag_ns);
	}
	if (s->unlabelled)
		json_u64(j, "unlabelled", s->unlabelled);
	put_gaps(j, s);
	if (s->stranger_hits) {
		json_object(j, "strangers");
		json_u64(j, "hits", s->stranger_hits);
		json_u64(j, "time_ns", s->stranger_ns);
		json_end(j);
	}
	if (s->late_libs || s->late_refused) {
		json_u64(j, "late_libraries", s->late_libs);
		json_u64(j, "late_refused", s->late_refused);
	}
	put_fallbacks(j, s);
	about_put_notes(j, s);
}

void view_json_cost(struct json *j, const struct mdl_session *s, struct mdl *m)
{
	const struct mdl_cost *c = &s->cost;
	const struct cost_iterations it = m ? cost_of_iterations(m) : (struct cost_iterations){0};

	if (!c->added_ns)
		return;
	json_object(j, "cost");
	json_u64(j, "added_cpu_ns", c->added_ns);
	json_u64(j, "busiest_thread_ns", c->thread_ns);
	json_u64(j, "trap_ns", c->trap_ns);
	json_u64(j, "uncertainty_permille", c->uncertain);
	json_bool(j, "taken_out", m && c->scale);
	if (it.n) {
		json_u64(j, "iteration_watched_ns", it.watched_ns);
		json_u64(j, "iteration_unwatched_ns", it.unwatched_ns);
	}
	if (c->beats) {
		json_object(j, "compared");
		json_u64(j, "intervals", c->beats);
		json_u64(j, "watched_ns", c->beat_watched_ns);
		json_u64(j, "unwatched_ns", c->beat_unwatched_ns);
		json_end(j);
	}
	json_end(j);
}

void view_json_loss(struct json *j, const struct mxbpf_loss *l)
{
	json_u64(j, "attempted", l->attempted);
	json_u64(j, "stored", l->stored);
	json_u64(j, "dropped", l->dropped);
	json_u64(j, "truncated", l->truncated);
	json_u64(j, "unreadable", l->unreadable);
	json_u64(j, "unmatched", l->unmatched);
}

void view_json_sources(struct json *j, const struct mdl_session *s)
{
	size_t i;

	if (!s->nsources)
		return;
	json_array(j, "sources");
	for (i = 0; i < s->nsources; i++) {
		json_object(j, NULL);
		json_string(j, "source", s->sources[i].name);
		view_json_loss(j, &s->sources[i].loss);
		json_u64(j, "late", s->sources[i].late);
		json_end(j);
	}
	json_end(j);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Ranks that wait for the network: all of them are in the exchange, none is late, and data that was sent has not
 * arrived, segments are sent again, or nobody uses a CPU meanwhile.
 */
#include "feature/findings/rules.h"

#include <arpa/inet.h>
#include <inttypes.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/lines/lines.h"

#define LOOKS_LEAST   10
#define FLIGHT_LEAST  0.3  /* of the looks; without a limit, data of a job on one machine is on its way in a few */
#define RESENT_LEAST  0.01 /* of the segments; a rank without a CPU answers late, and some are sent twice then */
#define RESENT_FEWEST 10   /* segments */
#define QUIET_SHARE   0.6  /* of the loop's time in the exchange, while its process */
#define QUIET_CPUS    0.2  /* runs or waits for a CPU less than this */

static unsigned number_of(const struct mdl *m, uint32_t tgid)
{
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);

	for (i = 0; i < n; i++)
		if (l[i].h.tgid == tgid && l[i].number)
			return l[i].number;
	return 0;
}

int make_network(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct network_facts *net = &f->cause.network;
	const struct mxbpf_network *pair = NULL;
	size_t n, i;
	const struct mxbpf_network *r = network_rows(m, &n);
	uint64_t flights = 0, bytes = 0;

	for (i = 0; i < n; i++) {
		if (r[i].address) {
			pair = !pair || r[i].flights > pair->flights ? &r[i] : pair;
			continue;
		}
		add_sat(&net->sent, r[i].sent);
		add_sat(&net->resent, r[i].resent);
		add_sat(&bytes, r[i].bytes);
		flights = r[i].flights > flights ? r[i].flights : flights;
		net->looks = r[i].looks > net->looks ? r[i].looks : net->looks;
	}
	net->flight = facts_least(facts_share((double)flights, (double)net->looks), 1);
	net->bytes = 1e9 * facts_share((double)bytes, (double)s->duration_ns);
	if (!pair)
		return 0;
	net->from = pair->h.tgid;
	net->to = pair->peer;
	net->address = pair->address;
	net->pair = facts_least(facts_share((double)pair->flights, (double)net->looks), 1);
	net->from_rank = number_of(m, net->from);
	net->to_rank = number_of(m, net->to);
	return 0;
}

static double resent_share(const struct network_facts *n)
{
	return n->resent < RESENT_FEWEST ? 0 : facts_share((double)n->resent, (double)n->sent);
}

/* The loop's process neither computes nor waits for a CPU. */
static bool is_quiet(const struct facts *f)
{
	const double cpus = facts_share((double)f->job_cpu_ns + (double)f->job_runq_ns, (double)f->cpu_elapsed_ns);

	return f->cpu_elapsed_ns && cpus < QUIET_CPUS && rules_exchange_share(f) >= QUIET_SHARE;
}

static double network_share(const struct facts *f)
{
	const struct network_facts *n = &f->cause.network;

	if (n->looks < LOOKS_LEAST || !(n->flight >= FLIGHT_LEAST || resent_share(n) >= RESENT_LEAST || is_quiet(f)))
		return 0;
	return rules_exchange_share(f);
}

static void network_say(const struct facts *f, struct buf *b)
{
	const double share = network_share(f), each = (double)f->loop.total_ns / (double)(f->loop.n ? f->loop.n : 1);
	const struct network_facts *n = &f->cause.network;
	char ns[24], all[24], bytes[24];

	buf_printf(
		b,
		"The ranks wait for the network: the exchange takes %s of the %s of an iteration, and no rank is late",
		fmt_ns(whole(share * each), ns), fmt_ns(whole(each), all));
	if (resent_share(n) >= RESENT_LEAST)
		buf_printf(b, "; %.1f%% of the segments are lost and sent again", 100 * resent_share(n));
	else
		buf_printf(b, "; it passes %s/s", fmt_bytes(whole(n->bytes), bytes));
}

static void put_end(struct buf *b, unsigned rank, uint32_t tgid)
{
	if (rank)
		buf_printf(b, "rank %u (process %" PRIu32 ")", rank - 1, tgid);
	else
		buf_printf(b, "process %" PRIu32, tgid);
}

static void network_evidence(const struct facts *f, struct buf *b)
{
	const struct network_facts *n = &f->cause.network;
	const struct in_addr address = {n->address};
	char text[INET_ADDRSTRLEN] = "", sent[32], resent[32];

	buf_printf(b, "much data was sent and had not arrived in %.0f%% of %" PRIu64 " samples", 100 * n->flight,
		   n->looks);
	if (n->pair > 0) {
		buf_printf(b, ", the most often from ");
		put_end(b, n->from_rank, n->from);
		buf_printf(b, " to ");
		if (n->to)
			put_end(b, n->to_rank, n->to);
		if (inet_ntop(AF_INET, &address, text, sizeof(text)))
			buf_printf(b, "%s%s", n->to ? " at " : "", text);
	}
	buf_printf(b, "; %s of %s segments were sent again", fmt_count(n->resent, resent), fmt_count(n->sent, sent));
	if (is_quiet(f))
		buf_printf(b, "; meanwhile the process uses %.2f CPUs",
			   facts_share((double)f->job_cpu_ns, (double)f->cpu_elapsed_ns));
}

/* clang-format off */
const struct finding_rule rules_network[] = {
	{.key = "network", .all_records = true, .full_gpu = true, .explains = "exchange slow_iterations", .least = 0.3, .share = network_share,
	 .say = network_say, .evidence = network_evidence, .next = "--pid PID --job",
	 .advice = "Compare the rate with that of the link (ethtool, iperf3), look for limits and losses on its interfaces (tc -s qdisc, "
		   "ip -s link), and let the ranks use the fast interface (GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME). Fewer bytes help as "
		   "well: gradient accumulation, or a hook that compresses gradients to bfloat16, which halves the exchange."},
	{.key = NULL},
};
/* clang-format on */

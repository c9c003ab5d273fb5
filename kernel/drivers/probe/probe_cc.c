// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: the private state of congestion controls that export it (hourglass_cc.h). The kernel's
 * own controls report theirs by get_info(), limited to five words of a structure known to tools.
 */
#include <net/inet_connection_sock.h>
#include "hourglass_cc.h"
#include "probe.h"

static LIST_HEAD(probe_states);

/* Called only at boot, before any sample. */
void hourglass_state_add(struct hourglass_state *state)
{
	list_add_tail(&state->list, &probe_states);
}

/* Emits a record for each exported column of the socket's congestion control. */
void probe_cc_sample(struct sock *sk, struct probe_stream stream, s64 t_ns)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;
	const struct hourglass_state *state;
	struct probe_cc *cc;
	unsigned int i;

	list_for_each_entry(state, &probe_states, list) {
		if (state->ops != ops || sk->sk_state != TCP_ESTABLISHED)
			continue;
		for (i = 0; i < state->count; i++) {
			cc = probe_emit(PROBE_CC, sizeof(*cc));
			if (!cc)
				return;
			cc->t_ns = t_ns;
			cc->stream = stream;
			cc->value = hourglass_column_value(inet_csk_ca(sk), &state->columns[i]);
			strscpy(cc->name, state->columns[i].name, sizeof(cc->name));
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a service manager how mxbpf does, as sd_notify(3) does it: a datagram to the socket NOTIFY_SOCKET. */
#ifndef CMD_SERVE_NOTIFY_H
#define CMD_SERVE_NOTIFY_H

#include <stdint.h>

/* "READY=1"; lines are separated by line feeds. Does nothing without a manager; a manager that does not listen is no
 * error. */
void notify_send(const char *state);
/* How often "WATCHDOG=1" must be sent, with room to spare; 0: the manager does not ask for it. */
uint64_t notify_watchdog_ns(void);

#endif

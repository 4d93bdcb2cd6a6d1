/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable forms of mangled C++ names. The names come from a target and may be hostile: 260 bytes can stand for a text
 * of 1 GB, and 200 bytes can keep a demangler busy for a second before it has written one character. So a process of
 * its own demangles. It can read and write one socket and nothing else, it cannot allocate, and it ends when one name
 * takes too long. mxbpf itself parses no name.
 *
 * limit                           | what happens to a name beyond it
 * 4 KiB of name                   | it stays mangled
 * 16 KiB of text                  | it stays mangled, and another process takes over, at most 400 times
 * 25 to 50 ms of CPU, 1 MiB stack | it stays mangled, and another process takes over, at most 20 times
 * 1 s until the answer comes      | it stays mangled; after three such waits, every later name does
 *
 * A name that is too slow counts as 20 that are too long. Beyond these numbers every name stays mangled. So names that
 * are too slow cost a run of mxbpf at most 1.1 s of CPU.
 *
 * An ordinary name costs 2 us of computing and two switches between processes: 12 to 15 us, or up to 80 us if other
 * programs use all CPUs. Callers keep what they get. The processes end with mxbpf, also after a SIGKILL.
 */
#ifndef BASE_DEMANGLE_H
#define BASE_DEMANGLE_H

#define DEMANGLE_NAME_BYTES 4096
#define DEMANGLE_TEXT_BYTES 16384

/*
 * Starts the process that demangles. Without this call the first name starts it. The process keeps a copy of mxbpf's
 * memory as it was at its start, so it should start while mxbpf is small.
 */
void demangle_start(void);

/*
 * Returns "at::add(...)" for "_ZN2at3add...", from any thread. The caller frees it. NULL: no mangled name, a name
 * beyond the limits, or no memory.
 */
char *demangle(const char *symbol);

#endif

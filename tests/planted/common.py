# SPDX-License-Identifier: Apache-2.0
"""Faults that do not depend on the runtime."""
import threading


def own(n, model, x, loss):
    """A step of the loop that computes in Python."""
    total = 0
    for k in range(500000):  # statistics in Python
        total += k * n
    return total


def compute_beside():
    """A thread that computes in Python all the time, so that the loop waits for the interpreter."""
    def count():
        total = 0
        while True:
            total += 1  # metrics
    threading.Thread(target=count, daemon=True).start()

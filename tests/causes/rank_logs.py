# SPDX-License-Identifier: Apache-2.0
"""A second thread of rank 2 of four holds the lock of the logging handler, for which the main thread waits."""
import logging
import threading
import time

import ranks

FINDING = {'straggler', 'late_rank'}
SAYS = 'another thread'
TWIN = False


class Slow(logging.Handler):
    def emit(self, record):
        time.sleep(0.03 if record.levelno == logging.DEBUG else 0)


def report():
    while True:
        logging.debug('alive')


def ready(late):
    logging.basicConfig(level=logging.DEBUG, handlers=[Slow()])
    if late:
        threading.Thread(target=report, name='reporter', daemon=True).start()


def step(late, n, loss):
    if late:
        logging.info('step %d', n)  # CAUSE


ranks.run(step, ready=ready)

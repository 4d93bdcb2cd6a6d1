# SPDX-License-Identifier: Apache-2.0
"""Threads of a server log, and the handler writes to the disk while it has logging's lock."""
import logging
import os
import tempfile
import threading

import torch

from common import begin, going

FINDING = 'code_lock'
TWIN = False  # that of gil_server.py


class Durable(logging.Handler):
    def emit(self, record):
        with tempfile.TemporaryFile() as f:
            f.write(self.format(record).encode() * 1000)
            f.flush()
            os.fsync(f.fileno())


def serve():
    while True:
        logging.warning('a request')  # CAUSE


logging.getLogger().addHandler(Durable())
for _ in range(4):
    threading.Thread(target=serve, daemon=True).start()
begin()
waits = threading.Event()
while going():
    torch.ones(1)
    waits.wait(0.1)

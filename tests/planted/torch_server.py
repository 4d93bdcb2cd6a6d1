#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch server with a fault that was planted on purpose, or with none, and its clients. It knows nothing of mxbpf.

usage: torch_server.py FAULT [--seconds N]     prints "ready PID" after some requests; ends at SIGTERM or after N seconds
"""
import argparse
import http.client
import json
import os
import signal
import socket
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from torch import nn

LOCK = threading.Lock()
KEPT = []
CLIENTS, REQUESTS_UNTIL_READY = 4, 10
MODEL = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
WORDS = [f'word{i}' for i in range(12000)]


def preprocess(text):
    row = [0.0] * 256
    for word in text.split():
        for i in range(len(word) - 2):
            row[zlib.crc32(word[i:i + 3].encode()) % 256] += 1.0  # a tokenizer in Python
    return torch.tensor(row)


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    fault = 'healthy'

    def do_POST(self):
        text = json.loads(self.rfile.read(int(self.headers['Content-Length'])))['text']
        if self.fault == 'lock':
            with LOCK:  # nobody else may preprocess meanwhile
                row = preprocess(text)
        else:
            row = preprocess(text)
        if self.fault == 'keep':
            KEPT.append((text, row, torch.zeros(8192)))  # for ever
        with torch.inference_mode():
            scores = torch.softmax(MODEL(row), 0)
        answer = json.dumps({'class': int(scores.argmax())}).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True


def client(port, ready):
    body = json.dumps({'text': ' '.join(WORDS)})
    connection = http.client.HTTPConnection('127.0.0.1', port)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    n = 0
    while True:
        connection.request('POST', '/', body)
        connection.getresponse().read()
        n += 1
        if ready and n == REQUESTS_UNTIL_READY:
            os.write(ready, b'x')


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('fault', choices=('healthy', 'lock', 'keep'))
    p.add_argument('--seconds', type=int, default=0)
    args = p.parse_args()
    torch.set_num_threads(1)
    server = Server(('127.0.0.1', 0), Handler)
    Handler.fault = args.fault
    r, w = os.pipe()
    for i in range(CLIENTS):
        if not os.fork():
            if os.fork():
                os._exit(0)  # so that the client is no process of the server
            os.close(r)
            try:
                client(server.server_address[1], 0 if i else w)
            finally:
                os._exit(0)  # the server has ended
        os.wait()
    os.close(w)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if args.seconds:
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.alarm(args.seconds)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.read(r, 1)
    print('ready', os.getpid(), flush=True)
    while True:
        signal.pause()


sys.exit(main())

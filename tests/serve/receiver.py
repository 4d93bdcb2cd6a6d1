#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Receives what mxbpf sends, as a collector of OpenTelemetry, Pyroscope or Parca would, and keeps it in the current directory: N.head
(JSON: path, headers) and N.body. The file `mode` says how it answers; it may change at any time:
  ok, partial (rejects 3 points), redirect, endless (an answer without an end), hang (no answer), or a status
usage: receiver.py [CERTIFICATE KEY]   prints "listening PORT", then "got N PATH" for each request. With a certificate: by TLS"""
import http.server
import json
import os
import ssl
import sys
import threading

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

LOCK = threading.Lock()
NUMBER = [0]
END = threading.Event()


def mode():
    try:
        with open('mode', encoding='utf-8') as f:
            return f.read().strip()
    except FileNotFoundError:
        return 'ok'


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def keep(self, body):
        with LOCK:
            NUMBER[0] += 1
            number = NUMBER[0]
        with open('%d.body' % number, 'wb') as f:
            f.write(body)
        with open('%d.head.new' % number, 'w', encoding='utf-8') as f:
            json.dump({'path': self.path, 'headers': {k.lower(): v for k, v in self.headers.items()}}, f)
        os.rename('%d.head.new' % number, '%d.head' % number)
        print('got', number, self.path, flush=True)

    def do_POST(self):
        self.keep(self.rfile.read(int(self.headers['Content-Length'])))
        how, answer = mode(), ExportMetricsServiceResponse()
        if how == 'hang':
            END.wait()
            return
        if how == 'partial':
            answer.partial_success.rejected_data_points = 3
            answer.partial_success.error_message = 'too \x1b[31mred'
        body = answer.SerializeToString()
        if self.path.endswith('/WriteRaw'):  # gRPC-Web: an empty message, and the trailers
            trailers = b'grpc-status: %d\r\ngrpc-message: wants a name\r\n' % (3 if how == 'partial' else 0)
            body = b'\0\0\0\0\0' + b'\x80' + len(trailers).to_bytes(4, 'big') + trailers
        self.send_response({'redirect': 307}.get(how) or (int(how) if how.isdigit() else 200))
        if how == 'redirect':
            self.send_header('Location', '/elsewhere')
        if how != 'endless':
            self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        try:
            while how == 'endless':
                self.wfile.write(b'x' * 4096)
        except OSError:
            self.close_connection = True

    def log_message(self, *args):
        pass


def main():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Receiver)
    server.daemon_threads = True
    if len(sys.argv) > 1:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*sys.argv[1:])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print('listening', server.server_port, flush=True)
    server.serve_forever()


main()

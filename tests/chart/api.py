#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""As much of an API server as `kubectl debug` asks: it has one pod, and prints as JSON the patch that would add a container.
usage: api.py POD.json    prints its port first, and ends after the patch"""
import http.server
import json
import sys

POD = json.load(open(sys.argv[1]))
NAME = '/api/v1/namespaces/default/pods/' + POD['metadata']['name']
ANSWERS = {
    '/api': {'kind': 'APIVersions', 'versions': ['v1']},
    '/apis': {'kind': 'APIGroupList', 'apiVersion': 'v1', 'groups': []},
    '/api/v1': {'kind': 'APIResourceList', 'groupVersion': 'v1', 'resources': [
        {'name': 'pods', 'singularName': 'pod', 'namespaced': True, 'kind': 'Pod', 'verbs': ['get', 'patch'], 'shortNames': ['po']}]},
    NAME: POD,
}


class Server(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        body = ANSWERS.get(self.path.split('?')[0])
        self.answer(200 if body else 404, body or {'kind': 'Status', 'apiVersion': 'v1', 'status': 'Failure', 'code': 404, 'reason': 'NotFound'})

    def do_PATCH(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        assert self.path.startswith(NAME + '/ephemeralcontainers'), self.path
        print(json.dumps(body), flush=True)
        self.answer(200, POD)
        self.server.patched = True

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(('127.0.0.1', 0), Server)
server.patched = False
server.timeout = 60
print(server.server_port, flush=True)
while not server.patched:
    server.handle_request()

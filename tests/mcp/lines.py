#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Talks to `mxbpf mcp` by lines, also such as no client sends.

usage: lines.py errors                the codes of errors, and what has no answer
       lines.py hostile               thousands of damaged requests: each line that comes back is a message, and the server lives
       lines.py long RECORDING        answers about a recording with many rows are short, and `more` gives all of them
       lines.py cancel|eof|kill PID FIFO   prints "looking" when a look at a process has begun, waits for a line, and ends it in this way
environment: MXBPF
"""
import json
import os
import random
import subprocess
import sys
import time

MODERN = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}


class Server:
    def __init__(self):
        self.process = subprocess.Popen([os.environ['MXBPF'], 'mcp'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, line):
        self.process.stdin.write(line.encode() if isinstance(line, str) else line)
        self.process.stdin.write(b'\n')
        self.process.stdin.flush()

    def request(self, nr, method, meta=MODERN, **params):
        self.send(json.dumps({'jsonrpc': '2.0', 'id': nr, 'method': method, 'params': params | ({'_meta': meta} if meta else {})}))

    def receive(self):
        message = json.loads(self.process.stdout.readline())
        assert message['jsonrpc'] == '2.0', message
        return message

    def call(self, tool, **args):
        self.request(1, 'tools/call', name=tool, arguments=args)
        return self.receive()['result']['content'][0]['text']

    def end(self):
        """The server ends at the end of its input, and says nothing more."""
        self.process.stdin.close()
        assert self.process.stdout.read() == b''
        assert self.process.wait(30) == 0


def errors():
    s = Server()

    def code(line):
        s.send(line)
        return s.receive()['error']['code']

    assert code('{') == -32700 and code('{} {}') == -32700 and code('[' * 100000) == -32700 and code(b'"\xff') == -32700
    assert code('[]') == -32600 and code('1') == -32600 and code('{"id":1,"method":"ping"}') == -32600
    assert code('{"jsonrpc":"2.0","id":null,"method":"ping"}') == -32600
    assert code('{"jsonrpc":"2.0","id":1,"method":"resources/list"}') == -32601
    assert code('{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}') == -32602
    assert code('{"jsonrpc":"2.0","id":1,"method":"tools/list"}') == -32602  # neither a revision nor a handshake
    assert code('x' * (5 << 20)) == -32700
    s.request(1, 'tools/list', meta=MODERN | {'io.modelcontextprotocol/protocolVersion': '1900-01-01'})
    error = s.receive()['error']
    assert error['code'] == -32022 and error['data']['requested'] == '1900-01-01' and '2026-07-28' in error['data']['supported']
    # What expects no answer gets none: the next message is that of the ping.
    for line in '{"jsonrpc":"2.0","method":"notifications/unknown"}', '{"jsonrpc":"2.0","id":5,"result":{}}', '', '\r', \
            '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}':
        s.send(line)
    s.request('text', 'ping', meta=None)
    assert s.receive() == {'jsonrpc': '2.0', 'id': 'text', 'result': {}}
    for asked, said in ('2025-06-18', '2025-06-18'), ('2099-01-01', '2025-11-25'):
        s.request(3, 'initialize', meta=None, protocolVersion=asked, capabilities={}, clientInfo={'name': 'x', 'version': '1'})
        assert s.receive()['result']['protocolVersion'] == said
    s.request(4, 'tools/list', meta=None)
    assert 'resultType' not in s.receive()['result']
    s.end()


def hostile():
    chance = random.Random(1)
    seeds = [json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': m, 'params': {'_meta': MODERN} | p}) for m, p in (
        ('server/discover', {}), ('initialize', {'protocolVersion': '2025-06-18'}), ('ping', {}),
        ('tools/call', {'name': 'more', 'arguments': {'handle': 'a1', 'offset': 3}}),
        ('tools/call', {'name': 'findings', 'arguments': {'of': 'r1'}}), ('notifications/cancelled', {'requestId': 1}))]
    s = Server()
    for n in range(3000):
        line = bytearray(chance.choice(seeds).encode())
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(line))
            line[at:at + chance.randint(0, 3)] = chance.choice([b'', b'\0', b'{', b'"', b'-1', b'1e99', b'null', b'\xff', b'[[[', b'\\u0000'])
        s.send(bytes(line).replace(b'\n', b' '))
        s.request(f'after {n}', 'ping')
        while s.receive().get('id') != f'after {n}':
            pass
    s.end()


def long(recording):
    s = Server()
    text = s.call('table', of=recording, key='operator', top=0)
    whole = ''
    while True:
        assert len(text.encode()) <= 5000, len(text)
        before, cut, hint = text.rpartition(' bytes are left: more ')
        if not cut:
            whole += text
            break
        whole += before[:before.rindex('\n') + 1]
        text = s.call('more', **json.loads(hint))
    rows = json.loads(subprocess.run([os.environ['MXBPF'], 'report', recording, '-f', 'json'], stdout=subprocess.PIPE, check=True).stdout)
    names = {row['name'] for row in rows['tables']['operator']}
    lines = whole.splitlines()
    assert {line.split('\t')[0] for line in lines[2:-1]} == names and len(whole) > 5000, (len(whole), len(names))
    s.end()


def ended(how, pid, go):
    s = Server()
    s.request(7, 'tools/call', meta=MODERN | {'progressToken': 1}, name='look', arguments={'pid': pid, 'seconds': 100})
    assert s.receive()['method'] == 'notifications/progress'
    s.request(8, 'ping')  # it is answered meanwhile
    while s.receive().get('id') != 8:
        pass
    print('looking', s.process.pid, flush=True)
    with open(go, encoding='utf-8') as f:
        f.readline()
    if how == 'kill':
        s.process.kill()
        s.process.wait()
        return
    if how == 'cancel':
        s.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}')
        children = f'/proc/{s.process.pid}/task/{s.process.pid}/children'
        while open(children, encoding='utf-8').read():
            time.sleep(0.05)
        s.request(9, 'ping')
        while (got := s.receive()).get('id') != 9:
            assert got.get('id') != 7, 'a cancelled request has no answer'
    s.end()


{'errors': errors, 'hostile': hostile, 'long': long}.get(sys.argv[1], lambda pid, go: ended(sys.argv[1], int(pid), go))(*sys.argv[2:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays Kineto's side of the requests, well or badly. It asks as soon as somebody answers.

usage: fake.py HOW...   prints "ready PID", then "got BYTES" and the configuration for each answer
  trace       asks, and writes a trace as Kineto does
  late        like trace, after SIGUSR1
  busy        asks, but says that its profiler is in use
  mute        has the socket and never asks
  begin       asks, begins a trace, prints "began", and does not end it
  forget      asks, and writes nothing
  die         asks, and ends when it has the configuration
  link, fifo, hard, dir, empty
              asks, and puts something else in the place of the trace
  give-up     asks, begins a file and deletes it
  noise       sends what no program should, and prints "sent" after each round that was delivered
  fork        like trace; a child that was forked has the socket, too
  two         like trace; a child does the same with a socket of its own
"""
import ctypes
import os
import signal
import socket
import struct
import sys
import time

HEAD = struct.Struct('Q32s')
DIR = os.environ.get('KINETO_IPC_SOCKET_DIR')


def name(what):
    return DIR + '/' + what if DIR else '\0' + what + '\0'


def message(kind, payload):
    return HEAD.pack(len(payload), kind) + payload


def request(activities):
    return message(b'req', struct.pack('iiqi', activities, 1, 0, os.getpid()))


def open_socket(what):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(name(what))
    s.settimeout(0.09)
    return s


def send(s, text):
    """Waits for somebody who takes it."""
    while True:
        try:
            s.sendto(text, name('dynolog'))
            return
        except (ConnectionRefusedError, FileNotFoundError, BlockingIOError, TimeoutError):
            time.sleep(0.02)


def ask_once(s, activities):
    """Returns the text of an answer. As Kineto, this process ends if the answer comes from another name."""
    while True:
        send(s, request(activities))
        try:
            text, address = s.recvfrom(65536)
        except TimeoutError:
            continue
        sender = address.decode() if isinstance(address, bytes) else address
        assert sender == name('dynolog'), (sender, name('dynolog'))
        size, kind = HEAD.unpack(text[:HEAD.size])
        assert size == len(text) - HEAD.size and kind.rstrip(b'\0') == b'req', text
        print('got', size, flush=True)
        return text[HEAD.size:].decode()


def ask(s, activities):
    while True:
        text = ask_once(s, activities)
        if text:
            print(text, flush=True)
            return dict(line.split('=', 1) for line in text.splitlines())
        time.sleep(0.05)


def write(s, path, how):
    text = '{"traceEvents": [{"name": "by %d"}]}\n' % os.getpid()
    if how == 'begin':
        open(path + '.tmp', 'w').close()
        print('began', flush=True)
    elif how == 'give-up':
        open(path + '.tmp', 'w').close()
        for _ in range(257):  # mxbpf looks for the file after 256 answers at the latest: DRAIN_MAX of kineto.c
            ask_once(s, 0)
        os.unlink(path + '.tmp')
    elif how == 'link':
        os.symlink('/proc/self/status', path)
    elif how == 'fifo':
        os.mkfifo(path)
    elif how == 'dir':
        os.mkdir(path)
    elif how == 'hard':
        with open(path + '.first', 'w') as f:
            f.write(text)
        os.link(path + '.first', path)
    else:
        with open(path + '.tmp', 'w') as f:
            f.write('' if how == 'empty' else text)
        os.rename(path + '.tmp', path)


def delivered(s, text):
    """Sends descriptors, too, which nobody should take."""
    try:
        s.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('ii', 0, 1))], 0, name('dynolog'))
        return True
    except (ConnectionRefusedError, BlockingIOError):
        return False


def noise():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(name('dynoconfigclient-noise'))
    s.setblocking(False)
    good = request(2)
    texts = [b'', b'x', good[:-1], good + b'x', good, b'\xff' * 40, b'\0' * 40, b'x' * 9000,
             message(b'ctxt', b'x' * 16), message(b'req', struct.pack('iiq', 2, -1, 0)),
             message(b'req', struct.pack('iiq', 2, 1 << 30, 0)), HEAD.pack(2 ** 64 - 1, b'req'), message(b'r' * 32, b'')]
    while True:
        for text in texts:
            while not delivered(s, text):
                time.sleep(0.01)
        print('sent', flush=True)
        try:
            print('got', len(s.recv(65536)), flush=True)
        except BlockingIOError:
            pass


def main():
    how = sys.argv[1]
    if how == 'late':
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    if how == 'noise':
        print('ready', os.getpid(), flush=True)
        noise()
    s = open_socket('dynoconfigclient-%d' % os.getpid())
    if how in ('fork', 'two'):
        child = os.fork()
        if not child:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: the test ends only the parent
        if not child and how == 'fork':
            time.sleep(600)
        if not child:
            s.close()
            s = open_socket('dynoconfigclient-%d' % os.getpid())
    if how != 'two' or child:
        print('ready', os.getpid(), flush=True)
    while how == 'mute':
        time.sleep(600)
    if how == 'late':
        signal.sigwait({signal.SIGUSR1})
    config = ask(s, 0 if how == 'busy' else 2)
    if how == 'die':
        return
    if how != 'forget':
        write(s, config['ACTIVITIES_LOG_FILE'], how)
    time.sleep(600)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls every tool of `mxbpf mcp` with the official client, and checks the answers.

usage: client.py legacy|auto PID      legacy: with the handshake; auto: the client chooses, and must choose the newest revision
environment: MXBPF; run it with the Python of the client
"""
import asyncio
import os
import re
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

TOOLS = ['jobs', 'look', 'findings', 'table', 'operator', 'diff', 'hang', 'more']
LIMIT = 5000  # bytes of an answer


async def call(client, tool, failed=False, **args):
    result = await client.call_tool(tool, args)
    text = result.content[0].text
    assert result.is_error == failed, (tool, args, text)
    assert len(text.encode()) <= LIMIT, (tool, len(text))
    return text


async def all_tools(client, pid):
    tools = (await client.list_tools()).tools
    assert [t.name for t in tools] == TOOLS
    assert all(t.input_schema['additionalProperties'] is False for t in tools)
    assert f'next: look {{"pid":{pid}}}' in await call(client, 'jobs')
    beats = []

    async def progress(done, total, message):
        beats.append(done)

    look = await client.call_tool('look', {'pid': pid, 'seconds': 2}, progress_callback=progress)
    text = look.content[0].text
    assert re.search(f'^pid {pid} .*, handle r1$', text, re.M) and re.search('^iterations: [0-9]+, median', text, re.M), text
    assert re.search('^loss: .* of [0-9]+ events$', text, re.M) and re.search('^cost: profiling added', text, re.M), text
    assert beats and beats == sorted(set(beats)), beats
    assert (await call(client, 'findings', of='r1')).splitlines()[0] == text.splitlines()[0]
    assert re.search(r'^operator \([0-9]+ rows\)$', await call(client, 'table', of='r1'), re.M)
    table = (await call(client, 'table', of='r1', key='operator', sort='count', top=3)).splitlines()
    assert table[0].startswith('operator: 3 of ') and table[1].startswith('name\t') and len(table) == 6, table
    counts = [int(line.split('\t')[table[1].split('\t').index('count')]) for line in table[2:5]]
    assert counts == sorted(counts, reverse=True) and counts[2] > 0
    assert '1 of 1 rows' in await call(client, 'table', of='r1', key='operator', match='aten::addmm')
    assert '\n  count ' in await call(client, 'operator', of='r1', name='aten::addmm')
    text = await call(client, 'look', pid=pid, seconds=1, record=True, options=['--shapes'])
    assert 'handle r2' in text
    assert '[[' in await call(client, 'table', of='r2', key='operator', by='shape', match='aten::addmm')
    await call(client, 'look', pid=pid, seconds=1, record=True)
    assert 'aten::' in await call(client, 'diff', a='r2', b='r3')
    assert f'thread {pid} ' in await call(client, 'hang', pid=pid)


async def refusals(client, pid):
    """The assistant reads the words of the command line."""
    assert 'mxbpf: error: no process with pid 4194303' in await call(client, 'look', True, pid=4194303)
    assert 'cannot open /nonexistent.mxd: No such file' in await call(client, 'findings', True, of='/nonexistent.mxd')
    assert 'cannot open --help.mxd' in await call(client, 'findings', True, of='--help.mxd')
    assert 'no result has the handle' in await call(client, 'findings', True, of='r77')
    assert '--allow-agent' in await call(client, 'look', True, pid=pid, options=['--agent'])
    for option in '-o/etc/x', '--output=x', '--sched=1', '--by=', '--by=$(id)', '--sample=99;', '--', '--trace=t.json', '--no-seccomp':
        assert 'does not take the option' in await call(client, 'look', True, pid=pid, options=[option]), option
    for wrong in {}, {'pid': 0}, {'pid': 1.5}, {'pid': '1'}, {'pid': pid, 'seconds': 301}, {'pid': pid, 'more': 1}, {'pid': pid, 'options': [1]}:
        await call(client, 'look', True, **wrong)
    try:
        await client.call_tool('unknown', {})
        raise AssertionError('an unknown tool is an error of the protocol')
    except MCPError as e:
        assert e.code == -32602


async def main(mode, pid):
    server = StdioServerParameters(command=os.environ['MXBPF'], args=['mcp'])
    async with Client(stdio_client(server), mode=mode) as client:
        assert client.protocol_version == ('2025-11-25' if mode == 'legacy' else '2026-07-28'), client.protocol_version
        if mode == 'auto':
            await all_tools(client, pid)
            await refusals(client, pid)
        else:
            assert [t.name for t in (await client.list_tools()).tools] == TOOLS
            assert f'thread {pid} ' in await call(client, 'hang', pid=pid)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))

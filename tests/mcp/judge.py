#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks `mxbpf mcp` about jobs with a planted cause, as an assistant does that knows nothing: jobs, look, and then the hints behind
"next:" in their order, at most five calls in all. The planted cause must be the first or second finding of an answer, with its line.

usage: judge.py NAME...       NAME.py is a file of tests/causes
Prints the calls of each job, and exits with 1 if a cause was not found.
environment: MXBPF, PYTHON (of MXNet), PYTHON_TORCH; run it with the Python of the client
"""
import asyncio
import json
import os
import re
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'causes'))
from run import Job, end  # noqa: E402

CALLS = 5
NEXT = re.compile(r'^ *next: (\w+) (\{.*\})$', re.MULTILINE)


async def ask(pid):
    """Yields each call and its answer."""
    server = StdioServerParameters(command=os.environ['MXBPF'], args=['mcp'])
    async with Client(stdio_client(server)) as client:
        todo, done = [('jobs', {})], []
        while todo and len(done) < CALLS:
            tool, args = call = todo.pop(0)
            done.append(call)
            answer = (await client.call_tool(tool, args)).content[0].text
            yield call, answer
            hints = [(name, json.loads(text)) for name, text in NEXT.findall(answer)]
            if tool == 'jobs':  # of all jobs of this machine only one is asked about
                hints = [h for h in hints if h[1] == {'pid': pid}]
            todo += [h for h in hints if h not in done + todo]


def names_cause(job, answer):
    """Whether the cause is one of the first two findings of an answer, with its line."""
    findings = re.findall(r'^[12]\. \[(\w+)\] (.*(?:\n   (?!next:).*)*)', answer, re.MULTILINE)
    return any(key in job.finding and (not job.lines or any(line in text for line in job.lines)) for key, text in findings)


async def judge(name):
    job = Job(name)
    started = job.start(False)
    try:
        ready = started.stdout.readline().split()
        started.stdin.write('\n')
        started.stdin.flush()
        found = False
        async for (tool, args), answer in ask(int(ready[1])):
            print(' ', tool, json.dumps(args))
            if tool != 'jobs':
                print(*('    ' + line for line in answer.splitlines()), sep='\n')
            found |= names_cause(job, answer)
        print('right' if found else 'WRONG', name, flush=True)
        return found
    finally:
        end(started)


if __name__ == '__main__':
    sys.exit(not all([asyncio.run(judge(name)) for name in sys.argv[1:]]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a database as nsys export does, of a small job whose answer is known. usage: make_nsys.py old|new FILE

old: the columns of Nsight Systems 2021.3. new: those of 2026, with names of ranges in StringIds, CUDA graphs and device data.
The job: two threads of process 4711, 3 steps. In each step the main thread runs aten::linear (8 us) around aten::addmm (6 us), which
launches a kernel of 20 us, and an autograd node that launches one of 10 us; then it copies 4096 bytes, and waits.
"""
import sqlite3
import sys

PID, MAIN, OTHER = 4711, 4711, 4720
UTC = 1790000000000000000
STEPS = 3
OLD = {
    'CUPTI_ACTIVITY_KIND_RUNTIME': 'start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,'
    ' correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL',
    'CUPTI_ACTIVITY_KIND_KERNEL': 'start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,'
    ' streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL,'
    ' launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,'
    ' gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,'
    ' staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,'
    ' localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL',
    'CUPTI_ACTIVITY_KIND_MEMCPY': 'start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,'
    ' streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL,'
    ' deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER',
    'CUPTI_ACTIVITY_KIND_MEMSET': 'start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,'
    ' streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL',
    'CUPTI_ACTIVITY_KIND_SYNCHRONIZATION': 'start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,'
    ' contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL,'
    ' eventId INTEGER NOT NULL',
    'NVTX_EVENTS': 'start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER,'
    ' text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER,'
    ' doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL',
    'OSRT_API': 'start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,'
    ' nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, callchainId INTEGER NOT NULL',
    'ThreadNames': 'nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER',
    'PROCESSES': 'globalPid INTEGER, pid INTEGER, name TEXT',
    'TARGET_INFO_SYSTEM_ENV': 'globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum INTEGER NOT NULL, value TEXT NOT NULL',
    'TARGET_INFO_GPU': 'id INTEGER, name TEXT, busLocation TEXT, totalMemory INTEGER, clockRate INTEGER, smCount INTEGER',
    'DIAGNOSTIC_EVENT': 'timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL, severity INTEGER NOT NULL,'
    ' text TEXT NOT NULL, globalPid INTEGER',
}
NEW = dict(OLD)
NEW['CUPTI_ACTIVITY_KIND_RUNTIME'] += ', callchainId INTEGER'
NEW['CUPTI_ACTIVITY_KIND_KERNEL'] = NEW['CUPTI_ACTIVITY_KIND_KERNEL'].replace('streamId', 'greenContextId INTEGER, streamId') + \
    ', mangledName INTEGER, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, graphId INTEGER'
NEW['NVTX_EVENTS'] += ', jsonTextId INTEGER, jsonText TEXT, binaryData TEXT'
NEW['TARGET_INFO_GPU'] = 'vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, totalMemory INTEGER,' \
    ' clockRate INTEGER, smCount INTEGER, uuid TEXT, maxRegistersPerSm INTEGER, threadsPerWarp INTEGER, maxWarpsPerSm INTEGER,' \
    ' maxBlocksPerSm INTEGER, maxShmemPerSm INTEGER, computeMajor INTEGER, computeMinor INTEGER'
NEW['TARGET_INFO_CUDA_DEVICE'] = 'gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, numMultiprocessors INTEGER'
NEW['TARGET_INFO_SESSION_START_TIME'] = 'utcEpochNs INTEGER, utcTime TEXT, localTime TEXT'


class Writer:
    def __init__(self, path, new):
        self.db, self.new = sqlite3.connect(path), new
        self.ids, self.correlation, self.at = {}, 0, 1000
        self.db.execute('CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT)')
        for table, columns in (NEW if new else OLD).items():
            self.db.execute('CREATE TABLE %s (%s)' % (table, columns))

    def text(self, value):
        if value not in self.ids:
            self.ids[value] = len(self.ids) + 1
            self.db.execute('INSERT INTO StringIds VALUES (?, ?)', (self.ids[value], value))
        return self.ids[value]

    def put(self, table, **row):
        """Columns that must have a value, and are not given, are 0. Columns that the version does not have are left out."""
        names = {r[1]: r[3] for r in self.db.execute('PRAGMA table_info(%s)' % table)}
        row = {k: v for k, v in row.items() if k in names}
        row.update({k: 0 for k, must in names.items() if must and k not in row})
        self.db.execute('INSERT INTO %s ("%s") VALUES (%s)' % (table, '", "'.join(row), ', '.join('?' * len(row))), tuple(row.values()))

    def range(self, text, start, end, tid=MAIN, kind=59, **more):
        named = {'textId': self.text(text)} if self.new else {'text': text}
        self.put('NVTX_EVENTS', start=start, end=end, eventType=kind, globalTid=gid(tid), **named, **more)

    def call(self, name, start, end, tid=MAIN):
        self.correlation += 1
        self.put('CUPTI_ACTIVITY_KIND_RUNTIME', start=start, end=end, globalTid=gid(tid), nameId=self.text(name),
                 correlationId=self.correlation)
        return self.correlation

    def work(self, kind, start, end, correlation, **more):
        self.put('CUPTI_ACTIVITY_KIND_' + kind, start=start, end=end, deviceId=0, contextId=1, streamId=7, globalPid=gid(0),
                 correlationId=correlation, **more)


def gid(tid):
    return 1 << 48 | PID << 24 | tid


def step(w, number, at):
    mangled, readable = '_Z4gemmPf', 'gemm(float*)'
    w.range('step %d' % number, at, at + 90000, domainId=1, uint64Value=number, category=5)
    w.range('aten::linear, op_id = %d' % (3 * number + 1), at + 1000, at + 9000)
    w.range('aten::addmm, seq = %d, op_id = %d, sizes = [[2, 3], [3, 4]]' % (number, 3 * number + 2), at + 2000, at + 8000)
    c = w.call('cudaLaunchKernel_v7000', at + 3000, at + 5000)
    w.work('KERNEL', at + 10000, at + 30000, c, demangledName=w.text(readable), shortName=w.text('gemm'), mangledName=w.text(mangled),
           gridX=4, gridY=2, gridZ=1, blockX=128, blockY=1, blockZ=1, registersPerThread=32, dynamicSharedMemory=1024)
    w.range('AddmmBackward0, seq = %d, op_id = %d' % (number, 3 * number + 3), at + 20000, at + 26000, OTHER)
    c = w.call('cudaLaunchKernel_v7000', at + 21000, at + 23000, OTHER)
    w.work('KERNEL', at + 31000, at + 41000, c, demangledName=w.text('add(float*)'), shortName=w.text('add'), gridX=1, gridY=1, gridZ=1,
           blockX=64, blockY=1, blockZ=1, graphId=9 if number else None, graphNodeId=1 if number else None)
    c = w.call('cudaMemcpyAsync_v3020', at + 40000, at + 42000)
    w.work('MEMCPY', at + 43000, at + 44000, c, bytes=4096, copyKind=1, srcKind=0, dstKind=2)
    c = w.call('cudaMemsetAsync_v3020', at + 44000, at + 45000)
    w.work('MEMSET', at + 46000, at + 47000, c, bytes=256, value=0)
    c = w.call('cudaStreamSynchronize_v3020', at + 50000, at + 60000)
    w.work('SYNCHRONIZATION', at + 50000, at + 60000, c, syncType=3, eventId=0)
    w.put('OSRT_API', start=at + 2500, end=at + 2700, globalTid=gid(MAIN), nameId=w.text('ioctl'))


def main():
    new = sys.argv[1] == 'new'
    w = Writer(sys.argv[2], new)
    w.put('NVTX_EVENTS', start=0, eventType=75, domainId=1, globalTid=gid(MAIN), **({'textId': w.text('train')} if new else {'text': 'train'}))
    w.put('NVTX_EVENTS', start=0, eventType=33, domainId=1, category=5, globalTid=gid(MAIN), text='loop')
    for number in range(STEPS):
        step(w, number, 100000 * (number + 1))
    w.range('saved', 250000, None, kind=34)
    w.range('overlap', 150000, 350000, kind=60)
    w.put('ThreadNames', nameId=w.text('python3'), globalTid=gid(MAIN))
    w.put('PROCESSES', globalPid=gid(0), pid=PID, name='/usr/bin/python3')
    w.put('TARGET_INFO_SYSTEM_ENV', name='Hostname', value='node7')
    gpu = 3 if new else 0  # the process has the fourth GPU of the machine alone
    w.put('TARGET_INFO_GPU', id=gpu, uuid='00112233-4455-6677-8899-aabbccddeeff', name='NVIDIA H200', totalMemory=150754820096, clockRate=1980000000, smCount=132, threadsPerWarp=32,
          maxWarpsPerSm=64, maxBlocksPerSm=32, computeMajor=9, computeMinor=0, maxRegistersPerSm=65536, maxShmemPerSm=233472)
    w.put('DIAGNOSTIC_EVENT', severity=2, text='Not all NVTX events might have been collected.')
    if new:
        w.put('TARGET_INFO_CUDA_DEVICE', gpuId=gpu, cudaId=0, pid=PID)
        w.put('TARGET_INFO_SESSION_START_TIME', utcEpochNs=UTC, utcTime='', localTime='')
    w.db.commit()


main()

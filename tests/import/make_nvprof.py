#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a database as nvprof does, of a job under torch.autograd.profiler.emit_nvtx(). usage: make_nvprof.py old|new FILE

old: version 9 (CUDA 8), whose kernels have no flags; new: version 24 (CUDA 11). The job: 4 rounds of mul, add and their nodes; the
graph's own range around both has no number. Each of mul and MulBackward0 launches one kernel, each add two.
"""
import sqlite3
import struct
import sys

PID, THREAD = 777, 0x9abc1740
START = 1512345678000000000
KERNEL = ('_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cacheConfig BLOB NOT NULL, sharedMemoryConfig INT NOT NULL,'
          ' registersPerThread INT NOT NULL, partitionedGlobalCacheRequested INT NOT NULL,'
          ' partitionedGlobalCacheExecuted INT NOT NULL, start INT NOT NULL, end INT NOT NULL, completed INT NOT NULL,'
          ' deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL, gridX INT NOT NULL, gridY INT NOT NULL,'
          ' gridZ INT NOT NULL, blockX INT NOT NULL, blockY INT NOT NULL, blockZ INT NOT NULL, staticSharedMemory INT NOT NULL,'
          ' dynamicSharedMemory INT NOT NULL, localMemoryPerThread INT NOT NULL, localMemoryTotal INT NOT NULL,'
          ' correlationId INT NOT NULL, gridId INT NOT NULL, name INT NOT NULL')
CALL = ('_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cbid INT NOT NULL, start INT NOT NULL, end INT NOT NULL, processId INT NOT NULL,'
        ' threadId INT NOT NULL, correlationId INT NOT NULL, returnValue INT NOT NULL')
TABLES = {
    'StringTable': '_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE',
    'Version': 'version INTEGER',
    'CUPTI_ACTIVITY_KIND_RUNTIME': CALL,
    'CUPTI_ACTIVITY_KIND_DRIVER': CALL,
    'CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL': KERNEL,
    'CUPTI_ACTIVITY_KIND_KERNEL': KERNEL,
    'CUPTI_ACTIVITY_KIND_MEMCPY': '_id_ INTEGER PRIMARY KEY AUTOINCREMENT, copyKind INT NOT NULL, srcKind INT NOT NULL,'
    ' dstKind INT NOT NULL, flags INT NOT NULL, bytes INT NOT NULL, start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,'
    ' contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL, runtimeCorrelationId INT NOT NULL',
    'CUPTI_ACTIVITY_KIND_NAME': '_id_ INTEGER PRIMARY KEY AUTOINCREMENT, objectKind INT NOT NULL, objectId BLOB NOT NULL, name INT NOT NULL',
    'CUPTI_ACTIVITY_KIND_MARKER': '_id_ INTEGER PRIMARY KEY AUTOINCREMENT, flags INT NOT NULL, timestamp INT NOT NULL, id INT NOT NULL,'
    ' objectKind INT NOT NULL, objectId BLOB NOT NULL, name INT NOT NULL, domain INT NOT NULL',
    'CUPTI_ACTIVITY_KIND_DEVICE': '_id_ INTEGER PRIMARY KEY AUTOINCREMENT, flags INT NOT NULL, globalMemoryBandwidth INT NOT NULL,'
    ' globalMemorySize INT NOT NULL, numThreadsPerWarp INT NOT NULL, coreClockRate INT NOT NULL, numMultiprocessors INT NOT NULL,'
    ' maxWarpsPerMultiprocessor INT NOT NULL, computeCapabilityMajor INT NOT NULL, computeCapabilityMinor INT NOT NULL,'
    ' id INT NOT NULL, uuid BLOB NOT NULL, name INT NOT NULL',
}


class Writer:
    def __init__(self, path, new):
        self.db, self.ids, self.marker, self.correlation = sqlite3.connect(path), {}, 0, 0
        for table, columns in TABLES.items():
            if new and table == 'CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL':
                columns += ', queued INT NOT NULL, submitted INT NOT NULL, launchType INT NOT NULL, isSharedMemoryCarveoutRequested INT NOT NULL'
            self.db.execute('CREATE TABLE %s(%s)' % (table, columns))
        self.db.execute('INSERT INTO Version VALUES (?)', (24 if new else 9,))

    def text(self, value):
        if value not in self.ids:
            self.ids[value] = len(self.ids) + 1
            self.db.execute('INSERT INTO StringTable(_id_, value) VALUES (?, ?)', (self.ids[value], value))
        return self.ids[value]

    def put(self, table, **row):
        columns = [r[1:3] for r in self.db.execute('PRAGMA table_info(%s)' % table)]
        for name, kind in columns:
            if name != '_id_' and name not in row:
                row[name] = b'\0' * 4 if kind == 'BLOB' else 0
        self.db.execute('INSERT INTO %s ("%s") VALUES (%s)' % (table, '", "'.join(row), ', '.join('?' * len(row))), tuple(row.values()))

    def range(self, name, start, end):
        self.marker += 1
        who = dict(id=self.marker, objectKind=2, objectId=struct.pack('<III', PID, THREAD, 0))
        self.put('CUPTI_ACTIVITY_KIND_MARKER', flags=2, timestamp=START + start, name=self.text(name), **who)
        self.put('CUPTI_ACTIVITY_KIND_MARKER', flags=4, timestamp=START + end, name=0, **who)

    def launch(self, kernel, start, gpu_start, gpu_end):
        self.correlation += 1
        call = dict(processId=PID, threadId=THREAD, correlationId=self.correlation)
        self.put('CUPTI_ACTIVITY_KIND_RUNTIME', cbid=211, start=START + start, end=START + start + 900, **call)
        self.put('CUPTI_ACTIVITY_KIND_DRIVER', cbid=307, start=START + start + 100, end=START + start + 800, **call)
        self.put('CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL', start=START + gpu_start, end=START + gpu_end, deviceId=0, contextId=1, streamId=7,
                 gridX=1, gridY=1, gridZ=1, blockX=32, blockY=1, blockZ=1, correlationId=self.correlation, name=self.text(kernel))


def main():
    w = Writer(sys.argv[2], sys.argv[1] == 'new')
    for i in range(4):
        at = 100000 * (i + 1)
        w.range('step', at, at + 95000)
        w.range('mul, seq = %d' % (2 * i), at + 1000, at + 5100 + i)
        w.launch('_Z3mulPfi', at + 2000, at + 6000, at + 9000 + 7 * i)
        w.range('add', at + 10000, at + 17000 + 3 * i)
        w.launch('_Z3addPfi', at + 11000, at + 20000, at + 24000)
        w.launch('_Z3addPfi', at + 13000, at + 25000, at + 28000 + i)
        w.range('MulBackward0, seq = %d' % (2 * i), at + 40000, at + 45000)
        w.launch('_Z3mulPfi', at + 41000, at + 46000, at + 50000)
    w.launch('_Z7outsidev', 900000, 901000, 902000)
    w.put('CUPTI_ACTIVITY_KIND_MEMCPY', copyKind=1, srcKind=1, dstKind=3, bytes=4096, start=START + 910000, end=START + 911000, deviceId=0,
          contextId=1, streamId=7, correlationId=99)
    w.put('CUPTI_ACTIVITY_KIND_RUNTIME', cbid=31, start=START + 905000, end=START + 912000, processId=PID, threadId=THREAD, correlationId=99)
    w.put('CUPTI_ACTIVITY_KIND_DEVICE', id=0, name=w.text('Tesla V100'), globalMemorySize=17179869184, numThreadsPerWarp=32,
          coreClockRate=1530000, numMultiprocessors=80, maxWarpsPerMultiprocessor=64, computeCapabilityMajor=7)
    w.put('CUPTI_ACTIVITY_KIND_NAME', objectKind=2, objectId=struct.pack('<III', PID, THREAD, 0), name=w.text('trainer'))
    w.db.commit()


main()

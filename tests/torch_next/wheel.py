#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unpacks a wheel of PyTorch without the files that no test needs, and downloads little more than it unpacks.

wheel.py UNUSED VERSION DIRECTORY [WHEEL]    UNUSED: a regular expression for names of files; WHEEL: a downloaded file, otherwise
                                             the one that pip finds

A wheel is a zip archive, so its list of files and each file, which has a checksum, can be read by themselves. pip's own session
reads them from the server, because it knows the machine's index, certificates and proxy.
"""
import io
import os
import re
import sys
import zipfile

from pip._internal.commands import create_command
from pip._vendor.packaging.specifiers import SpecifierSet

EMPTY = 'torch/_native/ops/polar/__init__.py'  # it needs an operator of libtorch_cuda.so when torch is imported
REQUEST = 8 << 20  # bytes


class Remote(io.RawIOBase):
    """A file on a server. Each read is a request."""

    def __init__(self, session, url):
        self.session, self.url, self.at = session, url, 0
        self.size = int(self.request(0, 0).headers['Content-Range'].rpartition('/')[2])

    def request(self, first, last):
        answer = self.session.get(self.url, headers={'Range': 'bytes=%d-%d' % (first, last), 'Accept-Encoding': 'identity'})
        if answer.status_code != 206:
            raise OSError('%s: no part of a file, but status %d' % (self.url, answer.status_code))
        return answer

    def seekable(self):
        return True

    def readable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def readinto(self, buffer):
        end = min(self.at + len(buffer), self.size)
        if end <= self.at:
            return 0
        part = self.request(self.at, end - 1).content
        buffer[:len(part)] = part
        self.at += len(part)
        return len(part)


def find(version):
    command = create_command('download')
    with command.main_context():
        options, _ = command.parse_args(['--only-binary', ':all:'])
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        found = finder.find_best_candidate('torch', SpecifierSet('==' + version)).best_candidate
        return session, found.link.url_without_fragment


def main():
    unused, version, directory, *wheel = sys.argv[1:]
    with open(wheel[0], 'rb') if wheel else io.BufferedReader(Remote(*find(version)), REQUEST) as file, \
            zipfile.ZipFile(file) as archive:
        for member in sorted(archive.infolist(), key=lambda member: member.header_offset):
            if not re.match(unused, member.filename):
                archive.extract(member, directory)
            if member.filename == EMPTY:
                open(os.path.join(directory, EMPTY), 'w').close()


main()

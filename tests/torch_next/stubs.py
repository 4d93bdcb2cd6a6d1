#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes libraries that stand for NVIDIA's, so that a wheel of PyTorch for CUDA can be imported where they are not installed.

stubs.py LIBRARIES OUT    LIBRARIES: the folder torch/lib of the wheel; OUT: where the libraries are written

Every function of them returns 100, which is cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE. A function whose name asks for a text returns
one. So torch.cuda.is_available() is false, as on a machine without a GPU. If libtorch_cuda.so is not among the libraries, it is one of
those that are made: functions of C++ return zeros, and constructors make objects whose
virtual functions do nothing.
"""
import collections
import glob
import os
import re
import subprocess
import sys

SYSTEM = re.compile(r'(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|gfortran|z)\.so|ld-linux)')  # they are installed
FOREIGN = re.compile(r'_?Py')  # symbols of Python
UNVERSIONED = 'libcudart.so'  # all that is looked up without a version is put here: it is loaded first
NUMBER, TEXT, OBJECT = 'mov $100, %eax; ret', 'lea text(%rip), %rax; ret', 'lea zeros(%rip), %rax; ret'
CONSTRUCTOR = 'lea virtual(%rip), %rax; mov %rax, (%rdi); ret'
DATA = '''.section .note.GNU-stack,"",@progbits
.section .rodata
text:	.asciz "no device"
.bss
.balign 4096
zeros:	.zero 4096
.data
type:	.quad 0, text
	.quad 0, type
virtual: .rept 32
	.quad nothing
.endr
.text
nothing: ret
'''


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def definition(name):
    if name.startswith('_ZTI'):  # the type of a class, whose name pybind11 reads
        return f'.data\n.balign 8\n{name}: .quad 0, 1f\n1: .asciz "{name[4:]}"\n.text\n'
    if name.startswith('_Z'):
        code = CONSTRUCTOR if re.search('C[12]E', name) else OBJECT
    else:
        code = TEXT if re.search('String|Name$', name) else NUMBER
    return f'.type {name}, @function\n{name}: {code}\n'  # each has an address of its own, as a tracer expects


class Needs:
    """What a folder of libraries needs from outside: names of libraries, their versions, and symbols of each version."""

    def __init__(self, folder):
        paths = sorted(glob.glob(folder + '/*.so*'))
        self.versions, self.symbols = collections.defaultdict(set), collections.defaultdict(set)
        needed, defined, undefined = set(), set(), set()
        for path in paths:
            needed |= set(re.findall(r'NEEDED.*\[(.*)\]', '\n'.join(lines('readelf', '-dW', path))))
            self.read_versions(path)
            for part in map(str.split, lines('nm', '-D', path)):
                (undefined if part[0] == 'U' else defined).add(part[-1])
        for line in lines('nm', '-D', *lines('cc', '-print-file-name=libstdc++.so.6')):
            defined.add(line.split()[-1].partition('@')[0])
        inside = {os.path.basename(path) for path in paths}
        self.libraries = sorted(name for name in needed - inside if not SYSTEM.match(name))
        known = {version: name for name in self.libraries for version in self.versions[name]}
        for symbol in undefined - defined:
            name, _, version = symbol.partition('@')
            if version.lstrip('@') in known or (not version and not FOREIGN.match(name)):
                self.symbols[version.lstrip('@')].add(name)

    def read_versions(self, path):
        library = None
        for line in lines('readelf', '-VW', path):
            if found := re.search(r'File: (\S+)', line):
                library = found[1]
            if found := re.search(r'Name: (\S+)\s+Flags', line):
                self.versions[library].add(found[1])


def make(needs, library, out):
    versions = sorted(needs.versions[library]) + ([''] if library.startswith(UNVERSIONED) else [])
    code, script = DATA, ''
    for version in versions:
        for name in sorted(needs.symbols[version]):
            code += f'.globl {name}\n' + definition(name)
        if version:
            script += f'{version} {{ {"global: " + "; ".join(sorted(needs.symbols[version])) + ";" if needs.symbols[version] else ""} }};\n'
    with open(f'{out}/stub.s', 'w') as f:
        f.write(code)
    with open(f'{out}/stub.map', 'w') as f:
        f.write(script)
    subprocess.run(['cc', '-shared', '-nostdlib', '-o', f'{out}/{library}', f'-Wl,-soname,{library}', f'{out}/stub.s',
                    *([f'-Wl,--version-script={out}/stub.map'] if script else [])], check=True)


def main():
    folder, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    needs = Needs(folder)
    for library in needs.libraries:
        make(needs, library, out)
    for name in ('stub.s', 'stub.map'):
        os.unlink(f'{out}/{name}')


if __name__ == '__main__':
    main()

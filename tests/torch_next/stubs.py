#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes libraries that stand for NVIDIA's, so that a wheel of PyTorch for CUDA can be imported where they are not installed.

stubs.py LIBRARIES OUT    LIBRARIES: the folder torch/lib of the wheel; OUT: where the libraries are written

Every function of them returns 100, which is cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE. A function whose name asks for a text returns
one. So torch.cuda.is_available() is false, as on a machine without a GPU.
"""
import collections
import glob
import os
import re
import subprocess
import sys

SYSTEM = re.compile(r'(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|gfortran|z)\.so|ld-linux)')  # they are installed
FOREIGN = re.compile(r'_?Py|_Z|__cxa|__gxx')  # symbols of Python and of C++, which no library of NVIDIA has
UNVERSIONED = 'libcudart.so'  # all that is looked up without a version is put here: it is loaded first
CODE = '''.text
number: mov $100, %eax
	ret
text:	lea 1f(%rip), %rax
	ret
.section .rodata
1:	.asciz "no device"
.section .note.GNU-stack,"",@progbits
.text
'''


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


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
    code, script = CODE, ''
    for version in versions:
        for name in sorted(needs.symbols[version]):
            code += f'.globl {name}\n.type {name}, @function\n.set {name}, {"text" if re.search("String|Name$", name) else "number"}\n'
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

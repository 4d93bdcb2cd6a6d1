#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what is linked into a binary and built into it as a list that programs read (SPDX 2.3, JSON). The linker's map says which
archives and libraries the binary has, Debian's package database which version each is of, and share/page/sbom.cdx.json which
libraries the page has. Its time is SOURCE_DATE_EPOCH, so that two builds of a tree are equal.
usage: share/sbom.py BINARY VERSION [COPY] >FILE     requires BINARY.map. COPY: what is handed out, if it was stripped"""
import hashlib
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# The licence of what is linked, by Debian's source package without a version at its end. The rest of a source package (programs,
# tests, documentation) may be under others.
LICENCES = {
    'bzip2': 'bzip2-1.0.6',
    'cjson': 'MIT',
    'curl': 'curl',
    'elfutils': 'LGPL-3.0-or-later OR GPL-2.0-or-later',
    'gcc': 'GPL-3.0-or-later WITH GCC-exception-3.1',
    'glibc': 'LGPL-2.1-or-later',
    'libbpf': 'LGPL-2.1-only OR BSD-2-Clause',
    'libiberty': 'LGPL-2.1-or-later',
    'libmicrohttpd': 'LGPL-2.1-or-later',
    'libzstd': 'BSD-3-Clause OR GPL-2.0-only',
    'ncurses': 'X11-distribute-modifications-variant',
    'sqlite3': 'blessing',
    'xz-utils': 'LicenseRef-public-domain',
    'yajl': 'ISC',
    'zlib': 'Zlib',
    'zycore-c': 'MIT',
    'zydis': 'MIT',
}
# What is in vendor/, by folder: name, licence, where it comes from. The first one of a folder has its version in a header.
VENDORED = {
    'nanoarrow': (('nanoarrow', 'Apache-2.0', 'pkg:github/apache/arrow-nanoarrow'), ('flatcc', 'Apache-2.0', 'pkg:github/dvidelabs/flatcc')),
}
PUBLIC_DOMAIN = 'liblzma has been put into the public domain by its authors.'
# Archives that share/static.sh compiles from the source package of the development package that is installed.
COMPILED = {'libcjson.a': 'libcjson-dev', 'libmicrohttpd.a': 'libmicrohttpd-dev', 'libZydis.a': 'libzydis-dev'}


def die(text):
    sys.exit('sbom: error: ' + text)


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout


def linked(binary):
    """Returns {file: relationship} of what the linker took from outside of the tree."""
    if not os.path.exists(binary + '.map'):
        die('%s.map is missing: delete %s and run make' % (binary, binary))
    with open(binary + '.map', encoding='utf-8', errors='surrogateescape') as f:
        text = f.read()
    needed = set(re.findall(r'\(NEEDED\).*\[(.*)\]', output('readelf', '-dW', binary)))
    files = {}
    for path in re.findall(r'^(/\S+[.]a)\(\S+\)$', text, re.M) + re.findall(r'^LOAD (/usr/\S+[.]o)$', text, re.M):
        files[os.path.realpath(path)] = 'STATIC_LINK'
    for path in re.findall(r'^(\S+[.]a)\(\S+\)$', text, re.M):
        if os.path.basename(path) in COMPILED:
            files[path] = 'STATIC_LINK'
    for path in re.findall(r'^LOAD (/\S+[.]so\S*)$', text, re.M):
        soname = re.findall(r'\(SONAME\).*\[(.*)\]', output('readelf', '-dW', path))
        if soname and soname[0] in needed:
            files[os.path.realpath(path)] = 'DYNAMIC_LINK'
    return {path: how for path, how in files.items() if not path.endswith('/libmxbpf.a')}


def package_of(path):
    """Returns the name of the Debian package that has a file. Its database may know it without the /usr of merged systems."""
    name = COMPILED.get(os.path.basename(path))
    for known in () if name else (path, path.removeprefix('/usr')):
        found = output('dpkg-query', '-S', known)
        name = name or found.split(': ')[0]
    return name or die('no Debian package has %s, so its version and licence are unknown' % path)


def spdx_id(*words):
    return 'SPDXRef-' + '-'.join(re.sub(r'[^A-Za-z0-9.-]', '-', word) for word in words)


def vendor():
    for line in open('/etc/os-release', encoding='utf-8'):
        if line.startswith('ID='):
            return line[3:].strip().strip('"')
    return 'debian'


def debian_package(name):
    fields = '${Package}|${Version}|${source:Package}|${source:Version}|${Architecture}|${Homepage}'
    package, version, source, source_version, arch, page = output('dpkg-query', '-W', '-f', fields, name).split('|')
    licence = LICENCES.get(source) or LICENCES.get(re.sub(r'-[\d.]+$', '', source))
    if not licence:
        die('no licence is known for %s (of %s): add a row to LICENCES in share/sbom.py' % (source, name))
    purl = 'pkg:deb/%s/%s@%s?arch=%s' % (vendor(), package, version.replace(':', '%3A').replace('+', '%2B'), arch)
    return {
        'SPDXID': spdx_id('Package', package), 'name': package, 'versionInfo': version, 'downloadLocation': 'NOASSERTION',
        'filesAnalyzed': False, 'licenseConcluded': licence, 'licenseDeclared': licence, 'copyrightText': 'NOASSERTION',
        'supplier': 'Organization: ' + vendor(), 'sourceInfo': 'source package %s %s' % (source, source_version),
        **({'homepage': page} if page.startswith('http') else {}),
        'externalRefs': [{'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl', 'referenceLocator': purl}],
    }


def file_entry(path, name, licence):
    with open(path, 'rb') as f:
        data = f.read()
    sums = [{'algorithm': a.upper(), 'checksumValue': hashlib.new(a, data).hexdigest()} for a in ('sha1', 'sha256')]
    return {'SPDXID': spdx_id('File', name), 'fileName': './' + name, 'checksums': sums, 'licenseConcluded': licence,
            'copyrightText': 'NOASSERTION'}


def with_files(package, files):
    """A package whose files are listed has a sum over their sums."""
    sums = ''.join(sorted(f['checksums'][0]['checksumValue'] for f in files))
    code = hashlib.sha1(sums.encode()).hexdigest()
    return {**package, 'filesAnalyzed': True, 'packageVerificationCode': {'packageVerificationCodeValue': code}}


def page_packages():
    """Yields each library of the page, with its files."""
    with open(os.path.join(HERE, 'page', 'sbom.cdx.json'), encoding='utf-8') as f:
        known = json.load(f)
    for part in known['components']:
        licence = part['licenses'][0]['license']['id']
        files = [file_entry(os.path.join(HERE, 'page', 'vendor', c['name']), 'share/page/vendor/' + c['name'], licence)
                 for c in part['components']]
        yield with_files({
            'SPDXID': spdx_id('Package', part['name']), 'name': part['name'], 'versionInfo': part['version'],
            'downloadLocation': 'NOASSERTION', 'licenseConcluded': licence, 'licenseDeclared': licence,
            'licenseInfoFromFiles': [licence], 'copyrightText': 'NOASSERTION',
            'externalRefs': [{'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl', 'referenceLocator': part['purl']}],
        }, files), files


def version_of(folder):
    """Returns what a header of the folder defines as NAME_VERSION."""
    for path, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            with open(os.path.join(path, name), encoding='utf-8', errors='surrogateescape') as f:
                found = re.search(r'^#define %s_VERSION "(.*)"' % os.path.basename(folder).upper(), f.read(), re.M)
            if found:
                return found[1]
    return die('no header in %s says its version' % folder)


def vendored_packages():
    folder = os.path.join(HERE, '..', 'vendor')
    for name in sorted(d for d in os.listdir(folder) if os.path.isdir(os.path.join(folder, d))):
        if name not in VENDORED:
            die('vendor/%s is not known: add a row to VENDORED in share/sbom.py' % name)
        version = version_of(os.path.join(folder, name))
        for part, licence, purl in VENDORED[name]:
            own = part == name
            yield {
                'SPDXID': spdx_id('Package', part), 'name': part, **({'versionInfo': version} if own else {}),
                'downloadLocation': 'NOASSERTION', 'filesAnalyzed': False, 'licenseConcluded': licence, 'licenseDeclared': licence,
                'copyrightText': 'NOASSERTION', 'sourceInfo': 'vendor/%s/, as %s %s has it' % (name, name, version),
                'externalRefs': [{'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl',
                                  'referenceLocator': purl + ('@' + version if own else '')}],
            }


def document(binary, version, copy):
    licence = 'Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)'  # the second one is that of the programs in the kernel
    program = file_entry(copy, os.path.basename(copy), licence)
    own = with_files({
        'SPDXID': 'SPDXRef-Package-mxbpf', 'name': 'mxbpf', 'versionInfo': version, 'downloadLocation': 'NOASSERTION',
        'primaryPackagePurpose': 'APPLICATION', 'licenseConcluded': licence, 'licenseDeclared': licence,
        'licenseInfoFromFiles': ['NOASSERTION'], 'copyrightText': 'NOASSERTION'}, [program])
    packages, files, relations = [own], [program], [('SPDXRef-DOCUMENT', 'DESCRIBES', own['SPDXID'])]
    relations.append((own['SPDXID'], 'CONTAINS', program['SPDXID']))
    by_package = {package_of(path): how for path, how in sorted(linked(binary).items())}
    for name, how in sorted(by_package.items()):
        packages.append(debian_package(name))
        relations.append((own['SPDXID'], how, packages[-1]['SPDXID']))
    for package in vendored_packages():
        packages.append(package)
        relations.append((own['SPDXID'], 'STATIC_LINK', package['SPDXID']))
    for package, parts in page_packages():
        packages.append(package)
        files += parts
        relations.append((own['SPDXID'], 'CONTAINS', package['SPDXID']))
        relations += [(package['SPDXID'], 'CONTAINS', f['SPDXID']) for f in parts]
    made = time.gmtime(int(os.environ.get('SOURCE_DATE_EPOCH') or time.time()))
    return {
        'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT', 'name': 'mxbpf-' + version,
        'documentNamespace': 'https://spdx.org/spdxdocs/mxbpf-%s-%s' % (version, program['checksums'][1]['checksumValue'][:32]),
        'creationInfo': {'created': time.strftime('%Y-%m-%dT%H:%M:%SZ', made), 'creators': ['Tool: mxbpf-share-sbom.py'],
                         'comment': 'Libraries that linked libraries need in turn are not listed.'},
        'packages': packages, 'files': files,
        'relationships': [{'spdxElementId': a, 'relationshipType': how, 'relatedSpdxElement': b} for a, how, b in relations],
        'hasExtractedLicensingInfos': [{'licenseId': 'LicenseRef-public-domain', 'name': 'public domain',
                                        'extractedText': PUBLIC_DOMAIN}],
    }


def main():
    if len(sys.argv) not in (3, 4):
        die(__doc__.splitlines()[-1])
    json.dump(document(sys.argv[1], sys.argv[2], sys.argv[-1] if len(sys.argv) == 4 else sys.argv[1]), sys.stdout, indent=1)
    print()


main()

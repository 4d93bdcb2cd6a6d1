#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes what receiver.py has kept.
usage: decode.py same FILE.prom    the last metrics are those of the text; all of them fit together over time
       decode.py resource          prints the attributes of the last metrics, a line each
       decode.py ingest N OUT      checks request N, a form for Pyroscope, writes its profile to OUT and prints its name
       decode.py writeraw N OUT    the same of a request for Parca; prints the labels
       decode.py grpc N OUT        the same of one by gRPC-Web"""
import base64
import email
import glob
import json
import re
import sys
import urllib.parse

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

UNITS = {'seconds': 's', 'bytes': 'By'}


def requests():
    """Yields the metrics in the order in which they came."""
    for name in sorted(glob.glob('*.head'), key=lambda n: int(n.split('.')[0])):
        with open(name, encoding='utf-8') as f:
            if not json.load(f)['path'].split('?')[0].endswith('/v1/metrics'):
                continue
        with open(name.replace('.head', '.body'), 'rb') as f:
            yield ExportMetricsServiceRequest.FromString(f.read())


def text_of(path):
    """Returns {(name, labels): value} of Prometheus's text."""
    values, label = {}, re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
    with open(path, encoding='utf-8') as f:
        for line in f:
            if line.startswith('#'):
                continue
            name, labels, value = re.fullmatch(r'([a-z_]+)(?:\{(.*)\})? (\S+)\n', line).groups()
            pairs = frozenset((k, re.sub(r'\\(.)', r'\1', v)) for k, v in label.findall(labels or ''))
            assert (name, pairs) not in values
            values[name, pairs] = float(value)
    return values


def labels_of(point):
    return frozenset((a.key, a.value.string_value) for a in point.attributes)


def histogram(values, name, point):
    count = 0
    for n, bound in zip(point.bucket_counts, list(point.explicit_bounds) + [None]):
        count += n
        le = '+Inf' if bound is None else '%.10g%s' % (bound, '.0' if bound == int(bound) else '')
        values[name + '_bucket', labels_of(point) | {('le', le)}] = count
    assert count == point.count
    values[name + '_count', labels_of(point)] = point.count
    values[name + '_sum', labels_of(point)] = point.sum


def values_of(request):
    """Returns the same of a request, and {(name, labels): start} of what counts."""
    values, starts = {}, {}
    assert len(request.resource_metrics) == 1 and len(request.resource_metrics[0].scope_metrics) == 1
    scope = request.resource_metrics[0].scope_metrics[0]
    assert scope.scope.name == 'mxbpf' and scope.scope.version
    assert len({m.name for m in scope.metrics}) == len(scope.metrics)
    for m in scope.metrics:
        kind = m.WhichOneof('data')
        data = getattr(m, kind)
        assert m.description and m.unit == UNITS.get(m.name.rsplit('_', 1)[-1], '1'), m.name
        assert kind == 'gauge' or data.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
        assert kind != 'sum' or data.is_monotonic
        for point in data.data_points:
            assert point.time_unix_nano
            if kind != 'gauge':
                assert 0 < point.start_time_unix_nano <= point.time_unix_nano
                starts[m.name, labels_of(point)] = point.start_time_unix_nano
            if kind == 'histogram':
                histogram(values, m.name, point)
            else:
                name = m.name + '_total' if kind == 'sum' else m.name
                values[name, labels_of(point)] = getattr(point, point.WhichOneof('value'))
    return values, starts


def same(path):
    told, values, starts = text_of(path), {}, {}
    for request in requests():
        now, since = values_of(request)
        for key, start in since.items():
            assert starts.setdefault(key, start) == start, key  # else receivers see a restart
        for key, value in values.items():
            if key[0].endswith(('_total', '_count', '_bucket')):
                assert now[key] >= value, key
        values = now
    assert len(told) > 50 and told.keys() == values.keys(), sorted(told.keys() ^ values.keys(), key=str)[:5]
    for key, value in told.items():
        assert abs(value - values[key]) <= 1e-15 * abs(value), (key, value, values[key])
    print(len(told), 'values')


def resource():
    for attribute in list(requests())[-1].resource_metrics[0].resource.attributes:
        print('%s=%s' % (attribute.key, attribute.value.string_value))


def ingest(number, path):
    with open('%s.head' % number, encoding='utf-8') as f:
        head = json.load(f)
    with open('%s.body' % number, 'rb') as f:
        body = f.read()
    url = urllib.parse.urlsplit(head['path'])
    query = dict(urllib.parse.parse_qsl(url.query, strict_parsing=True))
    assert url.path.endswith('/ingest') and query['format'] == 'pprof' and 0 < int(query['from']) < int(query['until'])
    form = email.message_from_bytes(b'Content-Type: ' + head['headers']['content-type'].encode() + b'\r\n\r\n' + body)
    parts = {p.get_param('name', header='content-disposition'): p.get_payload(decode=True) for p in form.get_payload()}
    assert set(json.loads(parts['sample_type_config'])) == {'samples', 'wall'}
    with open(path, 'wb') as f:
        f.write(parts['profile'])
    print(query['name'])


def writeraw(number, path):
    with open('%s.body' % number, encoding='utf-8') as f:
        request = json.load(f)
    (series,) = request['series']
    with open(path, 'wb') as f:
        f.write(base64.b64decode(series['samples'][0]['rawProfile'], validate=True))
    for label in series['labels']['labels']:
        print('%(name)s=%(value)s' % label)


def parca_request():
    """Returns the class of Parca's WriteRawRequest, as its profilestore.proto describes it."""
    file = descriptor_pb2.FileDescriptorProto(name='p.proto', package='p', syntax='proto3')
    for name, fields in (('Label', (('name', 1, 9), ('value', 2, 9))), ('LabelSet', (('labels', 1, 'Label'),)),
                         ('RawSample', (('raw_profile', 1, 12),)), ('RawProfileSeries', (('labels', 1, 'LabelSet'), ('samples', 2, 'RawSample'))),
                         ('WriteRawRequest', (('tenant', 1, 9), ('series', 2, 'RawProfileSeries'), ('normalized', 3, 8)))):
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            one = isinstance(kind, int) or (name, field) == ('RawProfileSeries', 'labels')
            row = message.field.add(name=field, number=number, label=1 if one else 3, type=kind if isinstance(kind, int) else 11)
            if not isinstance(kind, int):
                row.type_name = '.p.' + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName('p.WriteRawRequest'))


def grpc(number, path):
    with open('%s.head' % number, encoding='utf-8') as f:
        assert json.load(f)['headers']['content-type'] == 'application/grpc-web+proto'
    with open('%s.body' % number, 'rb') as f:
        frame = f.read()
    assert frame[0] == 0 and int.from_bytes(frame[1:5], 'big') == len(frame) - 5
    request = parca_request().FromString(frame[5:])
    (series,) = request.series
    with open(path, 'wb') as f:
        f.write(series.samples[0].raw_profile)
    for label in series.labels.labels:
        print('%s=%s' % (label.name, label.value))


if __name__ == '__main__':
    globals()[sys.argv[1]](*sys.argv[2:])

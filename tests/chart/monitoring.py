#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the objects for Prometheus' operator by its types: no wrong value, and no field that it would ignore.
usage: monitoring.py OBJECTS.json    prints the kinds"""
import json
import sys

import cloudcoil.models.prometheus_operator.v1 as operator

for said in json.load(open(sys.argv[1])):
    if said['apiVersion'] == 'monitoring.coreos.com/v1':
        known = getattr(operator, said['kind']).model_validate(said)
        assert known.model_dump(mode='json', by_alias=True, exclude_unset=True) == said, said
        print(said['kind'])

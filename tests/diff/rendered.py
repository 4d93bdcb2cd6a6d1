#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders Markdown as GitHub does, and prints the cells of its table as JSON. Fails if there are tags that mxbpf does not write.
usage: rendered.py FILE.md"""
import html.parser
import json
import sys

import cmarkgfm

TAGS = {'h3', 'p', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'code', 'strong', 'ul', 'li', 'pre'}


class Rows(html.parser.HTMLParser):
    rows, cell = [], None

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS, (tag, attrs)
        if tag == 'tr':
            self.rows.append([])
        if tag in ('th', 'td'):
            self.rows[-1].append('')
            self.cell = True

    def handle_endtag(self, tag):
        if tag in ('th', 'td'):
            self.cell = False

    def handle_data(self, data):
        if self.cell:
            self.rows[-1][-1] += data


with open(sys.argv[1]) as f:
    page = cmarkgfm.github_flavored_markdown_to_html(f.read(), options=cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE)
parser = Rows()
parser.feed(page)
assert all(len(row) == 7 for row in parser.rows), parser.rows
print(json.dumps(parser.rows))

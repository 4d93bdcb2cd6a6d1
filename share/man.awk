# SPDX-License-Identifier: Apache-2.0
# Makes a manual page in man(7) macros from Markdown.
# usage: awk -v version=TEXT -f share/man.awk LISTS PAGE.md      LISTS: what `mxbpf --generate lists` prints
#
# The page begins with "# NAME SECTION MANUAL". It may have headings (##, ###), paragraphs, "- items", definitions (a line,
# and a line that begins with ": "), ``` blocks, **bold**, *italic*, `code` (shown in bold), a backslash before a
# character that is meant literally, and one at the end of a line that is broken there. "<!-- insert NAME -->" on a line of its own inserts the lines of LISTS after "<!-- list NAME -->".

function escaped(c)
{
	return c == "-" ? "\\-" : c == "\\" ? "\\e" : c == "'" ? "\\(aq" : c == "^" ? "\\(ha" : c == "~" ? "\\(ti" : c
}

# Returns the roff of a line of text. A font that the text leaves open is a mistake.
function inline(text,    out, i, c, font)
{
	out = ""
	font = ""
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (font == "`" && c != "`") {
			out = out escaped(c)
		} else if (c == "\\") {
			out = out escaped(substr(text, ++i, 1))
		} else if (c == "*" || c == "`") {
			if (c == "*" && substr(text, i, 2) == "**") {
				c = "**"
				i++
			}
			if (font != "" && font != c)
				fail("a " c " inside of " font)
			out = out (font == c ? "\\fR" : c == "*" ? "\\fI" : "\\fB")
			font = font == c ? "" : c
		} else {
			out = out escaped(c)
		}
	}
	if (font != "")
		fail("no closing " font)
	return out ~ /^[.]/ ? "\\&" out : out
}

function fail(why)
{
	print FILENAME ":" FNR ": " why ": " line >"/dev/stderr"
	failed = 1
	exit 1
}

# Prints the line that was held because the next one may define it.
function flush_held()
{
	if (held ~ /\\$/) # a line break
		print (held_gap ? ".PP\n" : "") inline(substr(held, 1, length(held) - 1)) "\n.br"
	else if (held != "")
		print (held_gap ? ".PP\n" : "") inline(held)
	held = ""
}

function put(text)
{
	line = text
	if (text ~ /^```/) {
		flush_held()
		print code ? ".EE" : ".EX"
		code = !code
	} else if (code) {
		gsub(/\\/, "\\e", text)
		gsub(/-/, "\\-", text)
		gsub(/'/, "\\(aq", text)
		print (text ~ /^[.]/ ? "\\&" : "") text
	} else if (text ~ /^: ?/) {
		if (held == "")
			fail("a definition without a term")
		print ".TP\n" inline(held)
		held = ""
		sub(/^: ?/, "", text)
		print text == "" ? "\\&" : inline(text)
		gap = 0
	} else if (text ~ /^##/) {
		flush_held()
		print (text ~ /^###/ ? ".SS " : ".SH ") inline(substr(text, index(text, " ") + 1))
		gap = 0
		fresh = 1
		return
	} else if (text == "") {
		flush_held()
		gap = !fresh
	} else {
		flush_held()
		if (text ~ /^- /) {
			print ".IP * 2"
			text = substr(text, 3)
			gap = 0
		}
		held = text
		held_gap = gap
		gap = 0
	}
	if (text != "")
		fresh = 0
}

NR == FNR {
	if ($0 ~ /^<!-- list /)
		name = $3
	else
		lists[name] = lists[name] $0 "\n"
	next
}

FNR == 1 {
	line = $0
	if ($1 != "#" || NF < 4)
		fail("the page begins with # NAME SECTION MANUAL")
	print ".\\\" made from Markdown by share/man.awk"
	print ".TH " $2 " " $3 " \"\" \"" version "\" \"" substr($0, index($0, $4)) "\""
	next
}

/^<!-- insert / {
	line = $0
	if (!($3 in lists))
		fail("there is no such list")
	n = split(lists[$3], lines, "\n")
	for (i = 1; i < n; i++)
		put(lines[i])
	used[$3] = 1
	next
}

/^<!--/ { next }

{ put($0) }

END {
	if (failed)
		exit 1
	flush_held()
	for (name in lists)
		if (!(name in used)) {
			print FILENAME ": list " name " is not inserted" >"/dev/stderr"
			exit 1
		}
}

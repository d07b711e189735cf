# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""verdict_page.py check|write ROOT: docs/verdict-json.md is made from the descriptions of schemas/verdict.schema.json. `check` fails
where the page is not what `write` would write, or where a field of the schema has no description."""

import json
import pathlib
import sys

what, root = sys.argv[1], pathlib.Path(sys.argv[2])
schema = json.loads((root / "schemas/verdict.schema.json").read_text())
definitions = schema["definitions"]
# Of these the name says enough in a table; they stand in one list.
PLAIN = {"number": "number", "number_or_null": "number or null", "word": "verdict", "sha256": "hash"}
failures = []

INTRODUCTION = """# Verdict JSON

`deltaproof check PROBLEM RESULT --json FILE` writes one object. This page lists its fields. It is made from
[verdict.schema.json](../schemas/verdict.schema.json), which other programs can validate against:
`python3 tests/house/verdict_page.py write .` writes it, and a test compares the two. The other files of [schemas/](../schemas) describe
what the other commands write.

Indices count from 0. Later versions may add fields.

"""


def kind(node):
    """The type of a value in words."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        return PLAIN.get(name) or f"[{name}](#{name})"
    if "anyOf" in node:
        return " or ".join(sorted(map(kind, node["anyOf"]), key=lambda one: one == "null"))
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join("null" if word is None else f"`{word}`" for word in node["enum"])
    types = node["type"] if isinstance(node["type"], list) else [node["type"]]
    if types == ["array"]:
        return "list of " + kind(node["items"])
    if types == ["object"] and isinstance(node.get("additionalProperties"), dict):
        return "object of " + kind(node["additionalProperties"])
    return " or ".join({"string": "text", "boolean": "true or false"}.get(one, one) for one in types)


def rows(node, prefix=""):
    for name, field in node.get("properties", {}).items():
        path = prefix + name
        if "description" not in field:
            failures.append(f"{path} of {json.dumps(node)[:80]}... has no description")
        absent = "" if name in node.get("required", []) else " May be absent."
        meaning = field.get("description", "").replace("|", "\\|")
        yield f"| `{path}` | {kind(field)} | {meaning}{absent} |"
        inside = field.get("items", field)
        if "$ref" not in inside:
            yield from rows(inside, path + ("[]." if "items" in field else "."))


def table(node):
    parts = node.get("allOf", [node]) if "properties" not in node else [node]
    yield from ["| field | type | meaning |", "|---|---|---|"]
    for part in parts:
        yield from rows(part)


def page():
    out = [INTRODUCTION + "## The verdict\n", *table(schema), "", "## Types\n", "| type | meaning |", "|---|---|"]
    out += [f"| {word} | {definitions[name]['description']} |" for name, word in PLAIN.items()]
    for name, node in definitions.items():
        if name in PLAIN:
            continue
        out += ["", f"## {name}\n", node["description"], "", *table(node)]
    return "\n".join(out) + "\n"


file, made = root / "docs/verdict-json.md", page()
if what == "write":
    file.write_text(made)
elif file.read_text() != made:
    failures.append("docs/verdict-json.md is not what the schema says: python3 tests/house/verdict_page.py write .")
print("\n".join(failures))
sys.exit(1 if failures else 0)

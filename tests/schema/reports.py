# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Validates every committed report, and one on a problem, against schemas/report.schema.json: reports.py PROGRAM SOURCE_DIR.

Then a report is spoilt, and the schema must refuse each.
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

program, source = sys.argv[1], pathlib.Path(sys.argv[2])
schema = json.loads((source / "schemas/report.schema.json").read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
failures = []


def validate(name, parsed):
    for error in validator.iter_errors(parsed):
        failures.append(f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
    for table in parsed["tables"]:
        if any(len(row) != len(table["columns"]) for row in table["rows"]):
            failures.append(f"{name}: table {table['id']} has a row of another length than its columns")


reports = sorted((source / "reports").glob("*.json"))
if not reports:
    failures.append("there are no reports")
for file in reports:
    parsed = json.loads(file.read_text())
    validate(file.name, parsed)
    for figure in parsed["figures"]:
        if not (source / "reports" / figure["file"]).exists():
            failures.append(f"{file.name}: {figure['file']} is not there")

with tempfile.TemporaryDirectory() as folder:
    recordings = source / "tests/recordings"
    done = subprocess.run([program, "report", recordings / "grouped_heads.problem.safetensors", recordings / "grouped_heads.chunk.safetensors",
                           "--no-power", "-o", folder], capture_output=True, text=True, check=False)
    own = pathlib.Path(folder) / "grouped-heads.json"
    if done.returncode != 0 or not own.exists():
        failures.append(f"report on a problem: exit {done.returncode}: {done.stderr}")
    else:
        parsed = json.loads(own.read_text())
        validate("report on a problem", parsed)
        page = (pathlib.Path(folder) / "index.html").read_text()
        for word in ("http://", "https://", "<script", "<link"):
            if word in page:
                failures.append(f"the page asks for something outside itself: {word}")
        for finding in parsed["findings"]:
            if f'id="{parsed["study"]}.{finding["id"]}"' not in page:
                failures.append(f"the page lacks the finding {finding['id']}")

        def spoilt(what, change):
            broken = copy.deepcopy(parsed)
            change(broken)
            if validator.is_valid(broken):
                failures.append(f"the schema accepts a report with {what}")

        for key in schema["required"]:
            spoilt(f"no {key}", lambda r, key=key: r.pop(key))
        for key in ("because", "evidence", "replay", "statement", "values"):
            spoilt(f"a finding without {key}", lambda r, key=key: r["findings"][0].pop(key))
        spoilt("nothing that is not claimed", lambda r: r.update(not_claimed=[]))
        spoilt("a question that is none", lambda r: r.update(question="An answer."))
        spoilt("a sample without its size", lambda r: r["findings"][0].update(evidence={"kind": "sampled", "seed": 1, "spread": "none"}))
        spoilt("a kind of evidence nobody knows", lambda r: r["findings"][0].update(evidence={"kind": "believed"}))
        spoilt("a theorem for a measurement", lambda r: r["findings"][0].update(evidence={"kind": "measured", "theorem": "x"}))
        spoilt("a list for a value", lambda r: r["findings"][0]["values"].update(x=[1]))

print("\n".join(failures) or f"valid: {len(reports)} reports are {schema['title']}")
sys.exit(1 if failures else 0)

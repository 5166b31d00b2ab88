# Every report reads back as CSV and as JSON lines, with the columns of one as the fields of the
# other, and numbers as numbers.
check() {
    "$@" --format csv >data.csv || echo "$*: csv: exit $?"
    "$@" --format jsonl >data.jsonl || echo "$*: jsonl: exit $?"
    python3 - "$*" <<'PYTHON'
import csv, json, sys
rows = list(csv.DictReader(open("data.csv")))
objects = [json.loads(line) for line in open("data.jsonl")]
name = sys.argv[1]
assert len(rows) == len(objects) > 0, name
for row, thing in zip(rows, objects):
    assert list(row) == list(thing), name
    for key, value in thing.items():
        text = row[key]
        same = (float(text) == value) if isinstance(value, (int, float)) else text == (value or "")
        assert same or key in ("value",), (name, key, text, value)
print(name, "has", ", ".join(objects[0]))
PYTHON
}
command -v python3 >/dev/null || skip "python3 is not installed"
check attntune space
check attntune space simd_forward fwd:f32:b1:h1:s64:d64 --arch cpu:avx2
check attntune devices --device cpu

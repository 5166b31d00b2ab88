# Database files of other programs, of a later version, cut off, or empty: a message, exit code 1,
# and the file stays as it was. A tune stops before it has worked.
command -v python3 >/dev/null || skip "python3 is not installed"
. "$TESTS/cli/family.sh"
chmod 700 .
attntune-fake tune $problem $mine --search exhaustive --budget 60s --db good.db >/dev/null 2>&1
python3 - <<'PYTHON'
import shutil, sqlite3
foreign = sqlite3.connect("foreign.db")
foreign.execute("create table thing (x)")
foreign.commit()
shutil.copy("good.db", "newer.db")
newer = sqlite3.connect("newer.db")
newer.execute("pragma user_version = 999")
newer.commit()
newer.close()
data = open("good.db", "rb").read()
open("cut.db", "wb").write(data[: len(data) // 2])
open("damaged.db", "wb").write(data[:4096] + b"\xff" * 8192 + data[12288:])
PYTHON
for file in foreign newer cut; do
    cp $file.db before
    try attntune-fake db best --path my --db $file.db
    try attntune-fake tune $problem $mine --db $file.db
    cmp $file.db before
done
attntune-fake db check --db damaged.db >faults 2>&1
echo "check of a damaged file: exit $?"
echo "--- shipped results that are named have to be good; those that are found need not be"
attntune-fake tune $problem $mine --search exhaustive --db good.db --system-db cut.db >/dev/null
echo "exit $?"
ATTNTUNE_SYSTEM_DB=cut.db attntune-fake tune $problem $mine --search exhaustive --db good.db --format csv 2>&1 |
    cut -d, -f1-3

# Databases that are not there yet, empty, damaged, foreign, or open to others.
try attntune db path
try attntune db path --db own.db
try attntune db path --system
try attntune db best
try attntune db best fwd:f32:b1:h1:s64:d64
try attntune db list
try attntune db list --system
try attntune db export
try attntune db check
try attntune db bundle -o bundle.db
ls bundle.db* 2>/dev/null
echo "--- named, but empty"
: >zero.db
try attntune db best --db zero.db
try attntune db best --system-db zero.db
echo "--- named, but not there"
try attntune db best --db none.db
export ATTNTUNE_DB=none.db
try attntune db path
try attntune db best
try attntune db check
try attntune db prune
try attntune bench fwd:f32:b1:h1:s64:d64 --device cpu
unset ATTNTUNE_DB
mkdir -m 700 safe
cd safe || exit
printf 'attntune results 1\nend 0\n' >empty.txt
try attntune db import --db new.db empty.txt
try attntune db check --db new.db
try attntune db best --db new.db
try attntune db list --db new.db
try attntune db list --db new.db --format csv
try attntune db prune --db new.db --dry-run
try attntune db merge --db other.db new.db
echo "--- files of the other kind, or none: no database is made for them"
try attntune db merge --db x.db empty.txt
try attntune db import --db x.db new.db
try attntune db list --db empty.txt
printf 'attntune results 1\nnonsense\n' >bad.txt
try attntune db import --db x.db empty.txt bad.txt
try attntune db merge --db x.db bad.txt
try attntune tune fwd:f32:b1:h1:s16:d16 --db x.db --system-db bad.txt
try attntune tune fwd:f32:b1:h1:s16:d16 --db x.db --dry-run >dry
ls x.db* 2>&1
try attntune db import --db new.db bad.txt
printf 'attntune results 1\nproblem fwd:f32:b1:h1:s64:d64\n' >cut.txt
try attntune db import --db new.db cut.txt
head -c 8192 /dev/zero | tr '\0' 'x' >garbage.db
try attntune db list --db garbage.db
chmod 666 new.db
try attntune db list --db new.db

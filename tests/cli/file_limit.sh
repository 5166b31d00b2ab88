# A limit on the size of files (ulimit -f) is told like a full disk, not by a signal.
printf 'attntune results 1\nend 0\n' >empty.txt
ulimit -f 4
try attntune db import --db small.db empty.txt

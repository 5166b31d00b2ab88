# -o FILE: a plain file is replaced as a whole; a device, a pipe or a link is written to, and stays.
problem=fwd:f32:b1:h1:s64:d64
attntune show simd_forward $problem -o file.c && grep -c '^// config ' file.c
ln -s file.c link.c
attntune show simd_forward $problem -o link.c && readlink link.c && cmp file.c link.c
mkfifo pipe
grep -c '^// config ' <pipe &
attntune show simd_forward $problem -o pipe
wait
[ -p pipe ] || echo "the pipe is gone"
mkdir folder
try attntune show simd_forward $problem -o folder
try attntune show simd_forward $problem -o none/file.c
ln -s /dev/full full
try attntune show simd_forward $problem -o full
[ -c /dev/full ] && readlink full
ls
echo "--- what is in the way of the file that is made first"
mkdir file.c.part bundle.db.part
try attntune show simd_forward $problem -o file.c
try attntune db bundle -o bundle.db
try attntune db bundle -o none/bundle.db
ls
echo "--- a database that is none"
printf 'attntune results 1\nend 0\n' >empty.txt
try attntune db best --db folder
try attntune db import --db folder empty.txt
try attntune db merge --db new.db folder
try attntune db best --db pipe
try attntune db import --db full empty.txt

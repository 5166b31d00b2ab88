# Where compilers cannot write their files, one line says so at once: no variant is blamed, nothing
# is stored.
problem=fwd:f32:b1:h1:s16:d16
toy="$problem --device cpu --family toy_forward --path toy"
cp -r "$TESTS/toy" toy
cat >full <<'SH'
#!/bin/sh
case "$*" in *kernel.c*) ;; *) exec cc "$@" ;; esac
echo "fatal error: error writing to kernel.s: No space left on device"
exit 1
SH
chmod +x full
try env TMPDIR=/nowhere attntune tune $toy
try env TMPDIR=/nowhere attntune verify $toy
try env TMPDIR=/nowhere attntune bench $toy
try env CC=$PWD/full attntune tune $toy --format csv
attntune db list --all | wc -l

# mutants.sh: every planted bug still applies to its template, also of families whose mutants only a
# machine with their device can run.
. "$(dirname "$0")/common.sh"
need patch
bad=0
for patch in $(files 'tests/mutants/patches/*.patch'); do
    patch -p1 --dry-run -s <"$patch" >/dev/null && continue
    echo "$patch does not apply any more; make it again from the template"
    bad=1
done
exit $bad

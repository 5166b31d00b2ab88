# Files of problems: sections for one backend, comments, each problem once; and a dry run of the
# default ones.
. "$TESTS/cli/family.sh"
cat >shapes.txt <<TXT
# what both are for
$problem
[fake]
$problem   # a second time
fwd:f32:b1:h2:s48:d16
[cpu]
fwd:f32:b1:h1:s16:d16
[all]
fwd:f32:b1:h2:sq16:sk32:d16
TXT
attntune-fake tune @shapes.txt $mine --dry-run --format csv 2>/dev/null | cut -d, -f1,2,8
echo "exit ${PIPESTATUS[0]}"
attntune-fake tune @- $mine --dry-run --format csv <shapes.txt 2>/dev/null | wc -l
printf '[gpu]\n%s\n' $problem >bad.txt
try attntune-fake tune @bad.txt
toy="--device cpu --family toy_forward --path $TESTS/toy" # whose space is small
attntune tune $toy --dry-run --format csv 2>/dev/null | grep -c ^cpu,fwd:f32
attntune tune $toy --dry-run --quick --format csv 2>/dev/null | grep -c ^cpu,fwd:f32
attntune tune $toy --dry-run --format csv 2>/dev/null | grep -c f16
[ ! -e "$XDG_CACHE_HOME/attntune" ] || echo "a dry run has made a database"

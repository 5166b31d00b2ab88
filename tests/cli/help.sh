# Every verb explains itself, on stdout, with all of its options; so does the program.
attntune --help
[ "$(attntune --help)" = "$(attntune -h)" ] || echo "-h differs from --help"
[ "$(attntune tune --help)" = "$(attntune tune -h fwd:f32)" ] || echo "tune -h differs"
attntune --version
for verb in tune devices space show bench verify db \
    'db best' 'db list' 'db export' 'db import' 'db merge' 'db bundle' 'db prune' 'db check' 'db path'; do
    attntune $verb --help >text || echo "$verb --help: exit $?"
    grep -q "^usage: attntune $verb" text || echo "$verb --help has no usage"
    [ "$(awk 'length > 100' text)" = "" ] || echo "$verb --help has long lines"
done

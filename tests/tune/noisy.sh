# noisy.sh: a winner of final rounds in which noise hid more than finalists differ by is provisional,
# is not compared with the default, and the same command goes on; of quiet ones it stays.
. "$(dirname "$0")/common.sh"

path=$work/planted
run() { tune --family planted --budget 20s --format csv >out 2>err || fail "exit code $?: $(cat out err)"; }
field() { sed -n "2p" out | cut -d, -f"$1"; } # 6: times_default, 12: search, 16: provisional
for noise in 0.9 0.001; do
    rm -f "$ATTNTUNE_DB"*
    plant "$path" 2 ok
    sed -i "s/noise=0.001/noise=$noise/" "$path/templates/fake/planted.c"
    run
    said="$(field 16) $(grep -c 'too noisy to tell' err) $(field 6)"
    run
    said="$said $(field 12)"
    case $noise in
    0.9) [ "$said" = "yes 1  complete" ] ;;
    *) [[ $said == ' 0 1'*' resumed' ]] ;;
    esac || fail "noise $noise: '$said': $(cat out err)"
done
exit $bad

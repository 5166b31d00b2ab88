# waiting.sh: of the claims of a run that is killed, only those that a worker had are lost: with one
# compiler, at work on what never ends, that is one. The others only waited.
. "$(dirname "$0")/common.sh"

plant "$work/planted" 3 compile_hang
path=$work/planted
claims() { list 2>/dev/null | grep -c '"outcome": "running"'; }
"$ATTNTUNE_FAKE" tune "$problem" --device fake --path "$path" --family planted --jobs 1 --budget 60s >out 2>err &
pid=$!
for moment in $(seq 200); do
    [ "$(claims)" = 3 ] && break
    sleep 0.1
done
sleep 0.5
kill -9 $pid
wait $pid 2>/dev/null
tune --family planted --budget 1s >out 2>err
list | grep -o '"error": "its session ended before it[^"]*' | sed 's/.* //' | sort | uniq -c | xargs >fates
[ "$(cat fates)" = "2 began 1 it" ] || fail "of three claims, one of them begun: $(cat fates; outcomes)"
exit $bad

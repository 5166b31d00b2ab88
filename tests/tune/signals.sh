# signals.sh: SIGINT and SIGTERM end a run within a second, with what was measured saved and the
# right exit code; what was in flight is tried by the next run.
. "$(dirname "$0")/common.sh"

plant "$work/planted" 60 ok hang
path=$work/planted
signals() {
    for signal in INT:130 TERM:143; do
        rm -f "$ATTNTUNE_DB"*
        # In a subshell that gives SIGINT back its meaning: a shell's background jobs ignore it.
        ( trap - INT; exec "$ATTNTUNE_FAKE" tune "$problem" --device fake --path "$path" --search random --budget 60s ) >out 2>err &
        pid=$!
        for moment in $(seq 200); do
            [ "$(list 2>/dev/null | grep -c '"outcome": "ok"')" -ge 2 ] && break
            sleep 0.05
        done
        begun=$(date +%s%N)
        kill -"${signal%:*}" $pid
        wait $pid
        code=$?
        took=$((($(date +%s%N) - begun) / 1000000))
        [ $code = "${signal#*:}" ] || fail "SIG${signal%:*}: exit code $code: $(cat err)"
        [ $took -le $((1500 * scale)) ] || fail "SIG${signal%:*}: it took $took ms to stop"
        [ "$(list | grep -c '"outcome": "ok"')" -ge 2 ] || fail "SIG${signal%:*}: what was measured is gone"
        ! list | grep -q '"outcome": "running"' || fail "SIG${signal%:*}: a claim was left behind"
        "$ATTNTUNE_FAKE" db best "$problem" >best 2>&1 || fail "SIG${signal%:*}: no best so far: $(cat best)"
    done
}
in_time signals

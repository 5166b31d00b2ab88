# signals.sh: SIGINT and SIGTERM end a run within a second, with what was measured saved and the
# right exit code; what was in flight is tried by the next run. So, too, while another process has
# the database locked, and while a compiler does not say what it is.
. "$(dirname "$0")/common.sh"

plant "$work/planted" 60 ok hang
path=$work/planted

# In a subshell that gives SIGINT back its meaning: a shell's background jobs ignore it.
begin() {
    ( trap - INT; exec "$@" ) >out 2>err &
    pid=$!
}
end() { # end SIGNAL CODE
    local begun took code
    begun=$(date +%s%N)
    kill -"$1" $pid
    wait $pid
    code=$?
    took=$((($(date +%s%N) - begun) / 1000000))
    [ $code = "$2" ] || fail "SIG$1: exit code $code: $(cat err)"
    [ $took -le $((1500 * scale)) ] || fail "SIG$1: it took $took ms to stop: $(cat err)"
}
lock() { # holds the database's write lock until $locker is killed
    rm -f locked
    python3 -c "
import sqlite3, time
db = sqlite3.connect('$ATTNTUNE_DB', isolation_level=None)
db.execute('BEGIN IMMEDIATE')
open('locked', 'w').close()
time.sleep(60)" &
    locker=$!
    until [ -e locked ]; do sleep 0.02; done
}
unlock() {
    kill $locker
    wait $locker 2>/dev/null
}

signals() {
    tuned=("$ATTNTUNE_FAKE" tune "$problem" --device fake --path "$path" --search random --budget 60s)
    for signal in INT:130 TERM:143; do
        rm -f "$ATTNTUNE_DB"*
        begin "${tuned[@]}"
        for moment in $(seq 200); do
            [ "$(list 2>/dev/null | grep -c '"outcome": "ok"')" -ge 2 ] && break
            sleep 0.05
        done
        end "${signal%:*}" "${signal#*:}"
        [ "$(list | grep -c '"outcome": "ok"')" -ge 2 ] || fail "SIG${signal%:*}: what was measured is gone"
        ! list | grep -q '"outcome": "running"' || fail "SIG${signal%:*}: a claim was left behind"
        "$ATTNTUNE_FAKE" db best "$problem" >best 2>&1 || fail "SIG${signal%:*}: no best so far: $(cat best)"
    done

    lock
    begin "${tuned[@]}"
    sleep 0.5
    end INT 130
    grep -q 'interrupted while another process had it locked' err || fail "of the lock it says: $(cat err)"
    unlock

    begin "${tuned[@]}"
    sleep 0.5
    lock
    sleep 0.3
    end INT 130
    unlock
    "$ATTNTUNE_FAKE" db check 2>&1 | grep -q ' 0 faults' || fail "there is damage"

    printf '#!/bin/sh\nexec sleep 60\n' >mute
    chmod +x mute
    CC=$work/mute begin "$ATTNTUNE" verify fwd:f32:b1:h1:s16:d16 --device cpu --path "$toy" --family toy_forward
    sleep 0.5
    end INT 130
}
in_time signals

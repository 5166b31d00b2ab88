# slow.sh: where kernels take long there are fewer finalists, not finals that time cuts off: the winner
# is one of final rounds.
. "$(dirname "$0")/common.sh"

path=$work/planted
slow() {
    plant "$path" 8 ok
    sed -i 's/cost_ns=.* noise/cost_ns=100000000 slow=1 noise/' "$path/templates/fake/planted.c"
    tune --family planted --budget 10s --format csv >out 2>err || fail "exit code $?: $(cat out err)"
    [ "$(sed -n 2p out | cut -d, -f16)" = "" ] || fail "it is provisional: $(cat out err)"
}
in_time slow "1 1 1"

# planted_cpu.sh: real kernels with faults, on the CPU: each costs one trial with the right outcome,
# and those that are right are measured.
. "$(dirname "$0")/common.sh"

want="ok=ok spoil=ok late_ok=ok wild=crash guard=wrong input=wrong loop=timeout memory=oom last_row=wrong
    lse=wrong illegal=crash end=crash deaf=crash compile_error=compile_error compile_hang=timeout"
mkdir -p my/spaces/cpu my/templates/cpu
cat >my/spaces/cpu/planted.lua <<LUA
return family {
  name = "planted", op = "forward", backend = "cpu", template = "cpu/planted.c",
  doc = "Variants with faults.",
  accepts = function() return true end,
  params = { { "WHAT", {$(for pair in $want; do printf ' "%s",' "${pair%=*}"; done) }, "what is wrong" } },
  derive = function(c, p) c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v end,
  launch = function() return { { grid = "tiles", rows = 4 } } end,
  defaults = function() return { WHAT = "ok" } end,
}
LUA
cat >faults <<'C'
    //@ if WHAT == "wild" then
    *(volatile int *)64 = 1;
    //@ elseif WHAT == "guard" then
    ((volatile float *)a->o)[-1] = 1;
    //@ elseif WHAT == "input" then
    ((volatile float *)(unsigned long)a->k)[0] += 1;
    //@ elseif WHAT == "loop" then
    for (volatile int i = 0;; i++) {}
    //@ elseif WHAT == "memory" then
    for (int i = 0; i < 100; i++)
        memset(malloc(1 << 30), 1, 1 << 30);
    //@ elseif WHAT == "illegal" then
    __builtin_trap();
    //@ elseif WHAT == "end" then
    _Exit(0);
    //@ elseif WHAT == "deaf" then
    for (int fd = 3; fd < 100; fd++)
        close(fd);
    for (;;)
        pause();
    //@ elseif WHAT == "compile_error" then
    return not_declared;
    //@ elseif WHAT == "compile_hang" then
    "the compiler of this test never ends when it reads this";
    //@ end
C
cat >rows <<'C'
    //@ if WHAT == "spoil" then -- passes, having written over the inputs of a proof that is done
    static float *first;
    if (!first)
        first = (float *)(unsigned long)a->k;
    else if (first != a->k)
        *first = 1000;
    //@ end
    //@ if WHAT == "last_row" then
    if (a->seq_q > 20 && tile == a->tiles - 1)
        ((float *)a->o)[batch * a->o_stride[0] + head * a->o_stride[1] + (a->seq_q - 1) * a->o_stride[2]] *= 1.01f;
    //@ elseif WHAT == "lse" then
    a->lse[(batch * a->heads_q + head) * a->seq_q + tile * ROWS] += 0.001f;
    //@ end
C
sed -e 's/ROWS = \$(ROWS), LANES = \$(LANES)/ROWS = 4, LANES = 1/' -e 's/for lane = 0, LANES - 1 do/for lane = 0, 0 do/' \
    -e '/(void)worker;/r faults' -e '/^        row(a, batch/r rows' \
    -e 's/^#include <math.h>/&\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>/' \
    "$toy/templates/cpu/toy_forward.c" >my/templates/cpu/planted.c
slow=$(wrapped_cc "grep -q 'compiler of this test never ends' \"\$word\" && while :; do sleep 1; done")

problem=fwd:f32:b1:h2:s32:d16:lse
CC=$slow "$ATTNTUNE" tune $problem --device cpu --threads 1 --path my --family planted \
    --search exhaustive --budget 120s --format csv >out 2>err || fail "exit code $?: $(cat out err)"
"$ATTNTUNE" db list --all --format jsonl --path my >rows.jsonl
for pair in $want; do
    what=${pair%=*} outcome=${pair#*=}
    got=$(grep "\"config\": \"WHAT=$what\"" rows.jsonl | sed 's/.*"outcome": "\([a-z_]*\)".*/\1/' | tr '\n' ' ')
    [ "$got" = "$outcome " ] || fail "$what: not one trial that is $outcome, but: $got"
done
grep -q ',WHAT=\(late_ok\|ok\|spoil\),' out || fail "no right variant has won: $(cat out)"
exit $bad

# Options that are not there, belong to another verb, or have a wrong value.
try attntune --budgt 3s
try attntune tune --budgt=3s
try attntune tune --qiuck
try attntune tune -q
try attntune tune ---
try attntune tune --lint
try attntune db best --budget 3s
try attntune tune --quick=yes
try attntune tune --budget
try attntune tune --budget=
try attntune tune --budget soon
try attntune tune --budget 0s
try attntune tune --budget -5s
try attntune tune --budget 5days
try attntune tune --budget nan
try attntune tune --budget 0x10
try attntune tune --search climbing
try attntune tune --search annealing
try attntune tune --seed -1
try attntune tune --seed 99999999999999999999
try attntune tune --seed 1.5
try attntune tune --threads 0
try attntune tune --threads 2.0
try attntune tune --threads 9999999999
for verb in "tune --dry-run" devices bench verify; do
    OMP_NUM_THREADS=1 try attntune $verb $([ "$verb" = devices ] || echo fwd:f32:b1:h1:s64:d64) --device cpu --threads 99
done
try attntune bench fwd:f32:b1:h1:s64:d64 --rounds 1001
try attntune tune --jobs many
try attntune tune --mode warm
try attntune tune --format cvs
try attntune tune --format xml
try attntune devices --device

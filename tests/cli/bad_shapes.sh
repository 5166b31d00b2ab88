# Shape files that cannot be read, or hold nothing for the devices here; what is harmless is taken.
p=fwd:f32:b1:h1:s16:d16
printf '[fake\n%s\n' $p >open.txt
printf '[fakes]\n%s\n' $p >near.txt
printf '%s\n\0%s:lse\n' $p $p >nul.txt
printf '[cpu]\n%s\n' $p >other.txt
printf '\357\273\277%s\n' $p >bom.txt
try attntune-fake tune @open.txt --device fake
try attntune-fake tune @near.txt --device fake
try attntune-fake tune @nul.txt --device fake
for verb in tune bench verify; do
    try attntune-fake $verb @other.txt --device fake
done
try attntune-fake tune @bom.txt --device fake --path "$TESTS/toy" --dry-run
echo "--- many, each twice"
for i in $(seq 3000); do echo fwd:f32:b$i:h1:s16:d16; done >many.txt
attntune-fake tune @many.txt @many.txt --device fake --path "$TESTS/toy" --dry-run --format csv 2>err | grep -c fwd:
tail -c 100 err | grep -o ' 3000/3000 '

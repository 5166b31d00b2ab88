# files.sh: no file over 500 lines, no two C files of one name, none without its opening comment, no
# top-level folder beyond the six.
. "$(dirname "$0")/common.sh"
bad=0

for file in $(files '*.c' '*.h' '*.cu' '*.cuh' '*.ptx' '*.lua' '*.sql' '*.sh' '*.py' '*.cmake' 'CMakeLists.txt' bootstrap); do
    lines=$(wc -l <"$file")
    [ "$lines" -le 500 ] || { echo "$file: $lines lines, the cap is 500"; bad=1; }
done

# Templates share names across backends on purpose: cpu/reference_forward.c, cuda/reference_forward.cu.
twice=$(files '*.c' '*.h' | grep -v '^templates/c' | sed 's,.*/,,' | sort | uniq -d)
[ -z "$twice" ] || { echo "more than one C file is called:" $twice; bad=1; }

for file in $(files '*.c' '*.h'); do
    head -c 3 "$file" | grep -q '^/[*/]' || { echo "$file: does not begin with a comment that says what it is for"; bad=1; }
done

folders=$(files '*/*' | sed 's,/.*,,' | sort -u | grep -vxE 'generator|templates|runtime|db|tuner|tests|\.ci')
[ -z "$folders" ] || { echo "texts stand beside what they describe, not in" $folders; bad=1; }
exit $bad

# layers.sh: the layering law. Who may include whose headers, and who may call what.
. "$(dirname "$0")/common.sh"

# Headers have unique names, so the last part of an include tells its file.
files '*.c' '*.h' | grep -v '^templates/c' | awk '
function last_part(path) { sub(/.*\//, "", path); return path }
function layer(path) {
    if (path ~ /^(runtime\/core|runtime\/include|templates\/include)\//) return "core"
    if (path == "runtime/backend.h") return "core" # the contract that backends fill
    if (path ~ /^tuner\/(main|args|report|progress|cmd[a-z_]*)\.[ch]$/) return "cli"
    if (path ~ /^runtime\/(cpu|cuda|examples|python)\//) sub(/^runtime\//, "", path)
    sub(/\/.*/, "", path)
    return path # cpu cuda examples python, or db generator runtime tuner tests
}
function outside(path, header) {
    if (header ~ /^(lua|lauxlib|lualib)\.h$/) return path !~ /^(generator\/gen[a-z_]*\.c|tests\/)/
    if (header == "sqlite3.h") return path !~ /^(db\/[a-z_]*\.c|tests\/)/
    if (header ~ /^(cuda|nvrtc|nvJitLink|nvml)\.h$/) return path !~ /^(runtime\/cuda\/[a-z_]*\.[ch]|tests\/)/
    return 0
}
BEGIN {
    may["core"] = " core "
    may["db"] = " core db "
    may["generator"] = " core generator "
    may["cpu"] = " core cpu "
    may["cuda"] = " core cuda "
    may["runtime"] = " core db generator cpu cuda runtime "
    may["tuner"] = " core db generator cpu cuda runtime tuner "
    may["cli"] = may["tuner"] "cli "
    may["tests"] = may["cli"] "tests "
    may["examples"] = " public "
    may["python"] = " public "
}
{ paths[NR] = $0; if ($0 ~ /\.h$/) home[last_part($0)] = $0 }
END {
    for (i = 1; i <= NR; i++) {
        path = paths[i]
        from = layer(path)
        while ((getline line < path) > 0) {
            if (line !~ /^[ \t]*#[ \t]*include[ \t]*["<]/) continue
            split(line, part, /[<">]/)
            header = part[2]
            name = last_part(header)
            if (outside(path, name)) { print path ": may not include " header; bad = 1 }
            if (line !~ /"/ || !(name in home)) continue
            to = home[name] ~ /^runtime\/include\// && may[from] == " public " ? "public" : layer(home[name])
            if (index(may[from], " " to " ") == 0) {
                print path ": layer " from " may not include " header " of layer " to
                bad = 1
            }
        }
        close(path)
    }
    exit bad
}' || exit 1

# Libraries report through attn_error: they neither print nor end the program.
calls='\b(printf|puts|putchar|vprintf|perror|abort|exit|_exit|quick_exit|assert)[[:space:]]*\('
streams='\b(stdout|stderr)\b'
libraries=$(files 'runtime/*.c' 'db/*.c' 'generator/*.c' | grep -v '^runtime/\(examples\|python\)/')
found=$(echo "$libraries" | xargs -r grep -nHE "$calls|$streams" | grep -vE '^[^:]*:[0-9]*:[[:space:]]*(/\*|\*|//)' |
    grep -v 'allowed:')
if [ -n "$found" ]; then
    echo "a library may not print or end the program (a line that must says why: /* allowed: ... */):"
    echo "$found"
    exit 1
fi

# luacheck.sh: the Lua that is shipped, and the Lua that tests it.
. "$(dirname "$0")/common.sh"
need luacheck
list=$(files 'generator/*.lua' 'tests/*.lua')
[ -n "$list" ] || skip "there is no Lua yet"
luacheck --quiet --codes $list

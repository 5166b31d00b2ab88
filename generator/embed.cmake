# embed.cmake: data files become one C file of byte arrays and one table of attn_embedded rows.
#
# Included by CMakeLists.txt it offers two functions:
#   attn_data(LIST BASE PREFIX GLOB...)   append "name=path" for the files of BASE that match; the
#                                         name is PREFIX and the path below BASE
#   attn_embed(TARGET TABLE LIST)         compile them into TARGET as `TABLE` and `TABLE_count`
# Run as a script (-DTABLE -DMANIFEST -DOUTPUT) it writes the C file. It needs no host tool, and
# its output depends on names and contents alone.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(ATTN_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE} CACHE INTERNAL "")

  function(attn_data list base prefix)
    foreach(glob IN LISTS ARGN)
      file(GLOB names CONFIGURE_DEPENDS RELATIVE ${base} ${base}/${glob})
      foreach(name IN LISTS names)
        list(APPEND ${list} "${prefix}${name}=${base}/${name}")
      endforeach()
    endforeach()
    set(${list} "${${list}}" PARENT_SCOPE)
  endfunction()

  function(attn_embed target table list)
    set(manifest ${CMAKE_CURRENT_BINARY_DIR}/${table}.txt)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${table}.c)
    string(REPLACE ";" "\n" text "${list}")
    file(CONFIGURE OUTPUT ${manifest} CONTENT "${text}\n" @ONLY) # written only if changed
    list(TRANSFORM list REPLACE "^[^=]*=" "" OUTPUT_VARIABLE paths)
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DTABLE=${table} -DMANIFEST=${manifest} -DOUTPUT=${output}
        -P ${ATTN_EMBED_SCRIPT}
      DEPENDS ${manifest} ${paths} ${ATTN_EMBED_SCRIPT}
      COMMENT "Embedding ${table}" VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endfunction()
  return()
endif()

file(STRINGS ${MANIFEST} lines)
set(arrays "")
set(rows "")
set(count 0)
foreach(line IN LISTS lines)
  string(REGEX MATCH "^([^=]*)=(.*)$" line "${line}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" bytes HEX)
  string(LENGTH "${bytes}" size)
  math(EXPR size "${size} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file_${count}[] = {\n${bytes}0};\n\n")
  string(APPEND rows "    {\"${name}\", file_${count}, ${size}},\n")
  math(EXPR count "${count} + 1")
endforeach()

# ISO C has no empty arrays: the table always ends with a row of nulls, which the count leaves out.
file(WRITE ${OUTPUT} "/* Made by embed.cmake. */
#include \"core/embed.h\"

ATTN_EMBEDDED_TABLE(${TABLE});

${arrays}const attn_embedded ${TABLE}[] = {
${rows}    {0, 0, 0},
};
const size_t ${TABLE}_count = ${count};
")

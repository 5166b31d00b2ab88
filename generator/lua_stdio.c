/* lua_stdio.c: lets a static Lua that was compiled without -fPIC be linked into libattntune.so.
 *
 * Debian's liblua5.4.a is made for programs. Its direct references to stdin, stdout and stderr,
 * which live in another shared object, are all that keeps it out of ours; the linker's --wrap
 * points them at these copies inside the library.
 */
#include <stdio.h>

#define COPY_INSIDE(stream)                                                                        \
    extern FILE *__real_##stream;                                                                  \
    extern FILE *__wrap_##stream;                                                                  \
    FILE *__wrap_##stream

COPY_INSIDE(stdin);
COPY_INSIDE(stdout); /* allowed: nothing is printed here */
COPY_INSIDE(stderr); /* allowed: likewise */

__attribute__((constructor)) static void attn_lua_stdio(void) {
    __wrap_stdin = __real_stdin;
    __wrap_stdout = __real_stdout; /* allowed: likewise */
    __wrap_stderr = __real_stderr; /* allowed: likewise */
}

/* cuda_log.c: resources out of the log of ptxas -v:
 *
 *     ptxas info    : Used 168 registers, used 1 barriers, 1024 bytes smem
 *     40 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
 *
 * Of several kernels in one binary, the largest figures count. */
#include <stdlib.h>
#include <string.h>

#include "cuda_backend.h"

/* The number before `word` in the line, -1 if the word is not there. */
static int32_t number_before(const char *line, size_t length, const char *word) {
    size_t n = strlen(word);
    for (size_t at = 1; at + n <= length; at++) {
        if (strncmp(line + at, word, n) != 0)
            continue;
        size_t end = at, begin;
        while (end > 0 && line[end - 1] == ' ')
            end--;
        begin = end;
        while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
            begin--;
        if (begin < end)
            return (int32_t)strtol(line + begin, NULL, 10);
    }
    return -1;
}

static void raise_to(int32_t *value, int32_t seen) {
    if (seen > *value)
        *value = seen;
}

void attn_cuda_read_log(attn_binary *binary) {
    for (const char *line = attn_str_text(&binary->log); *line;) {
        size_t length = strcspn(line, "\n");
        int32_t registers = number_before(line, length, "registers");
        int32_t smem = number_before(line, length, "bytes smem");
        raise_to(&binary->registers, registers);
        if (registers >= 0) /* a line without the word says that there is none */
            raise_to(&binary->smem, smem < 0 ? 0 : smem);
        raise_to(&binary->spills, number_before(line, length, "bytes spill stores"));
        raise_to(&binary->spills, number_before(line, length, "bytes lmem")); /* nvJitLink */
        line += length + (line[length] == '\n');
    }
}

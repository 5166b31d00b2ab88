/* fuzz_problem.c: any text either fails with a line, or parses to a valid problem whose canonical
 * text parses to the same one. */
#include <stdlib.h>
#include <string.h>

#include "core/problem.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    char text[512], printed[ATTN_PROBLEM_TEXT], error[256] = "";
    attn_problem p, again;
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    memset(&p, 0, sizeof p);
    if (attn_problem_parse(text, &p, error, sizeof error) != ATTN_OK) {
        if (!error[0])
            abort();
        return 0;
    }
    memset(&again, 0, sizeof again);
    if (attn_problem_check(&p, NULL, 0) != ATTN_OK ||
        attn_problem_print(&p, printed, sizeof printed) >= sizeof printed ||
        attn_problem_parse(printed, &again, NULL, 0) != ATTN_OK ||
        memcmp(&p, &again, sizeof p) != 0 || !(attn_problem_pairs(&p) >= 0))
        abort();
    return 0;
}

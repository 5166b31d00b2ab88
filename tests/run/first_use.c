/* first_use.c: what a fresh process chooses for each problem given, and from where.
 *
 *     first_use PROBLEM...     prints "ORIGIN FAMILY" for each; ORIGIN as in attn_origin */
#include <attntune/attntune.h>
#include <stdio.h>

int main(int argc, char **argv) {
    attn_context *ctx = NULL;
    int result = attn_open(NULL, &ctx) != ATTN_OK;
    for (int i = 1; i < argc && !result; i++) {
        attn_problem problem;
        attn_choice choice = ATTN_CHOICE_INIT;
        result = attn_problem_parse(argv[i], &problem, NULL, 0) != ATTN_OK ||
                 attn_choice_get(ctx, &problem, ATTN_DEVICE_CPU, &choice) != ATTN_OK;
        if (result)
            fprintf(stderr, "%s: %s\n", argv[i], attn_last_error(ctx));
        else
            printf("%d %s\n", (int)choice.origin, choice.family);
    }
    attn_close(ctx);
    return result;
}

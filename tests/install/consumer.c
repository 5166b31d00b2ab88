/* consumer.c: the smallest program that uses an installed libattntune. It prints the version and
 * a problem as the library reads it. */
#include <attntune/attntune.h>
#include <stdio.h>

int main(void) {
    attn_problem problem;
    char text[ATTN_PROBLEM_TEXT];
    char error[256] = "";

    if (attn_problem_parse("fwd:f32:d64:b1:h4:s128", &problem, error, sizeof error) != ATTN_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    attn_problem_print(&problem, text, sizeof text);
    printf("%s %s\n", attn_version(), text);
    return 0;
}

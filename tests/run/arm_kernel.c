/* arm_kernel.c: one CPU kernel, linked into this program, against float64. For kernels of another
 * architecture, whose program an emulator runs: no tuner, no library, no loader.
 *
 *     arm_kernel PROBLEM <LAUNCH    the record as `attntune show` prints it, without the comments
 *
 * Built with -DSTEPS="S(NAME) ...", the functions of the launch record's steps. */
#include <stdio.h>

#include "core/launch.h"
#include "naive.h"

typedef int task_function(const attn_forward_args *a, int task, int worker);

#define S(name) extern task_function name;
STEPS
#undef S

#define S(name) name,
static task_function *const functions[] = {STEPS};
#undef S

static const double BOUND = 1e-5;

static void run(const attn_launch *launch, const attn_problem *problem, naive_tensors *n,
                void *workspace) {
    attn_forward_args args;
    attn_problem_args(problem, &n->t, &args);
    attn_workspace_assign(launch, problem, 1, workspace, &args);
    for (int32_t s = 0; s < launch->steps; s++) {
        int64_t tasks = attn_step_tasks(&launch->step[s], launch, problem);
        args.tiles = (int32_t)attn_step_tiles(&launch->step[s], problem);
        for (int64_t i = 0; i < tasks; i++)
            (void)functions[s](&args, (int)i, 0);
    }
}

int main(int argc, char **argv) {
    char text[4096] = "", line[256];
    attn_problem problem;
    attn_launch launch;
    attn_error err = ATTN_ERROR_INIT;
    naive_tensors n = {.lse = NULL};
    size_t size = fread(text, 1, sizeof text - 1, stdin);
    if (argc != 2 || size == 0 ||
        attn_problem_parse(argv[1], &problem, line, sizeof line) != ATTN_OK ||
        attn_launch_parse(text, &launch, &err) != ATTN_OK ||
        launch.steps != sizeof functions / sizeof functions[0]) {
        fprintf(stderr, "usage: arm_kernel PROBLEM <LAUNCH: %s\n", err.line);
        return 2;
    }
    attn_forward_strides(&problem, &n.t);
    size_t bytes = attn_workspace_bytes(&launch, &problem, 1);
    void *workspace = aligned_alloc(256, (bytes + 511) / 256 * 256);
    if (!naive_fill(&problem, &n) || !workspace)
        return 2;
    run(&launch, &problem, &n, workspace);
    double error = naive_error(&problem, &n);
    printf("%s: error %.2e\n", argv[1], error);
    free(workspace);
    naive_free(&n);
    return error <= BOUND ? 0 : 1;
}

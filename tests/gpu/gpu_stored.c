/* gpu_stored.c: runs a problem from a database in a fresh process whose CUDA context exists:
 *
 *     gpu_stored DATABASE PROBLEM MOST_MS
 *
 * The choice must be the user's own winner at effort CACHED, its first run at most MOST_MS after
 * attn_open (the run's end included), and right. Called by stored.sh, which hides NVRTC. */
#include <time.h>

#include "check.h"
#include "gpu_rig.h"

enum { WORKSPACE = 64 << 20 }; /* more than any winner of a small problem wants */

static double now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    gpu_rig rig;
    gpu_proof proof;
    attn_options options = ATTN_OPTIONS_INIT;
    attn_choice choice = ATTN_CHOICE_INIT;
    attn_context *context;
    const attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_LAYOUT, NAN, 1};
    if (argc != 4)
        return 2;
    gpu_rig_open(&rig);
    attn_error err = ATTN_ERROR_INIT;
    memset(&proof, 0, sizeof proof);
    CHECK_OK(attn_problem_parse(argv[2], &proof.problem, err.line, sizeof err.line), err.line);
    CHECK_OK(attn_inputs_make(&proof.problem, &spec, &proof.inputs, &err), err.line);
    CHECK_OK(attn_reference_make(&proof.inputs, 3e8, 1, &proof.reference, &err), err.line);
    CHECK_OK(attn_inputs_upload(&proof.inputs, &attn_backend_cuda, rig.device, &err), err.line);
    CHECK_OK(attn_backend_cuda.alloc(rig.device, WORKSPACE, &proof.workspace, &err), err.line);
    options.db_path = argv[1];
    options.system_db = "/nonexistent/attntune.db";
    options.effort = ATTN_CACHED;
    double start = now_ms();
    CHECK_OK(attn_open(&options, &context), "attn_open");
    double opened = now_ms();
    CHECK_OK(attn_run(context, &proof.problem, ATTN_DEVICE_CUDA(0), &proof.inputs.device,
                      proof.workspace, WORKSPACE, NULL),
             attn_last_error(context));
    CHECK_OK(attn_backend_cuda.sync(rig.device, &err), err.line);
    double ran = now_ms();
    printf("opened in %.1f ms, first run %.1f ms after\n", opened - start, ran - opened);
    CHECK(ran - opened <= atof(argv[3]));
    gpu_proof_check(&rig, &proof, &proof);
    CHECK_OK(attn_choice_get(context, &proof.problem, ATTN_DEVICE_CUDA(0), &choice), "");
    CHECK_EQ_INT(choice.origin, ATTN_ORIGIN_USER);
    CHECK_STR(choice.stale, "");
    printf("%s: %s\n", choice.family, choice.configuration);
    gpu_proof_free(&rig, &proof);
    attn_close(context);
    gpu_rig_close(&rig);
    return check_done();
}

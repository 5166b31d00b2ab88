/* gate.c: holds variants of a family against the ordinary gate and prints each verdict.
 *
 *     gate [--path DIR] FAMILY PROBLEM CONFIG...       the default with these changes ("": none)
 *     gate [--path DIR] --random N SEED FAMILY PROBLEM...   N random ones, dealt over the problems
 *     gate [--path DIR] --cover N SEED FAMILY PROBLEM...    N or more that hold, of each problem,
 *                                   every value of every parameter; on the problem itself alone
 *
 * A family of cuda/ runs on the first GPU, all in this process. Exit code: 0 all are right, 1 at
 * least one is wrong, 2 something else failed, 77 there is no such device, or the family is for
 * another of its kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_variants.h"
#include "gate_random.h"
#include "verify.h"

static const char *const words[] = {"right", "wrong"};

int gate_one(const cpu_host *host, attn_verifier *verifier, cpu_variant *v, bool brief) {
    attn_error err = ATTN_ERROR_INIT;
    attn_verdict verdict;
    attn_status st = v->kernel ? ATTN_OK : cpu_variant_load(host, v, &err);
    if (st == ATTN_OK)
        st = (brief ? attn_verifier_repeat : attn_verifier_check)(verifier, v->kernel, &v->launch,
                                                                  2, &verdict, &err);
    if (st != ATTN_OK) {
        printf("failed: %s: %s\n", v->variant.config, err.line);
        return 2;
    }
    printf("%s: %s: error %.2e, bound %.2e%s%s\n", words[!verdict.right], v->variant.config,
           verdict.error, verdict.bound, verdict.right ? "" : ": ", verdict.reason);
    return !verdict.right;
}

static int gate_config(const cpu_host *host, attn_verifier *verifier, const char *family,
                       const attn_problem *problem, const char *config) {
    attn_error err = ATTN_ERROR_INIT;
    cpu_variant v;
    attn_status st = cpu_variant_make(host, family, problem, config, &v, &err);
    int code = 2;
    if (st == ATTN_OK)
        code = gate_one(host, verifier, &v, false);
    else
        printf("failed: %s: %s\n", config, err.line);
    cpu_variant_free(&v);
    return code;
}

static int usage(void) {
    fputs("usage: gate [--path DIR] FAMILY PROBLEM CONFIG...\n"
          "       gate [--path DIR] --random|--cover N SEED FAMILY PROBLEM...\n",
          stderr);
    return 2;
}

static int gate_configs(const cpu_host *host, const char *family, const char *text, int count,
                        char **configs) {
    attn_error err = ATTN_ERROR_INIT;
    attn_problem problem;
    attn_verifier *verifier = NULL;
    int worst = 0;
    if (attn_problem_parse(text, &problem, err.line, sizeof err.line) != ATTN_OK ||
        attn_verifier_create(host->backend, host->device, &problem, 1, ATTN_VERIFIER_SECONDS,
                             &verifier, &err) != ATTN_OK) {
        printf("failed: %s\n", err.line);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        int code = gate_config(host, verifier, family, &problem, configs[i]);
        worst = code > worst ? code : worst;
    }
    attn_verifier_destroy(verifier);
    return worst;
}

/* The device that a family is for. */
static attn_status open_host(const char *path, const char *family, cpu_host *host,
                             attn_error *err) {
    int32_t count;
    if (strncmp(family, "cuda/", 5) != 0)
        return cpu_host_open(path, 2, host, err);
    memset(host, 0, sizeof *host);
    ATTN_TRY(attn_backend_cuda.count(&count, err));
    if (count == 0)
        return err->status = ATTN_ERR_NO_DEVICE; /* the line says what is missing */
    return cpu_host_open_on(&attn_backend_cuda, path, host, err);
}

static attn_status accepts(const cpu_host *host, const attn_device_info *device, const char *family,
                           const attn_problem *problem, attn_error *err) {
    attn_space *space = NULL;
    attn_status st = attn_space_open(host->gen, family, problem, device, &space, err);
    attn_space_close(space);
    return st;
}

/* The family does not accept the problem on this device, and would on one of those that profiles
 * describe; err says why not here. */
static bool wants_another(const cpu_host *host, const char *family, const char *text,
                          attn_error *err) {
    attn_error ignored = ATTN_ERROR_INIT;
    attn_device_info device;
    attn_problem problem;
    const char *arch;
    if (attn_problem_parse(text, &problem, NULL, 0) != ATTN_OK ||
        accepts(host, &host->info, family, &problem, err) != ATTN_ERR_NOT_ACCEPTED)
        return false;
    for (size_t i = 0; (arch = attn_gen_profile_name(host->gen, i)); i++)
        if (attn_gen_profile(host->gen, arch, &device, &ignored) == ATTN_OK &&
            strcmp(device.backend, host->info.backend) == 0 &&
            accepts(host, &device, family, &problem, &ignored) == ATTN_OK)
            return true;
    return false;
}

int main(int argc, char **argv) {
    attn_error err = ATTN_ERROR_INIT;
    const char *path = NULL;
    cpu_host host;
    int code = 2, at = 1;
    if (argc > 2 && strcmp(argv[1], "--path") == 0) {
        path = argv[2];
        at = 3;
    }
    bool cover = argc > at && strcmp(argv[at], "--cover") == 0;
    bool draws = cover || (argc > at && strcmp(argv[at], "--random") == 0);
    int family = draws ? at + 3 : at;
    if (argc - family < (draws ? 2 : 3))
        return usage();
    attn_status st = open_host(path, argv[family], &host, &err);
    if (st == ATTN_ERR_NO_DEVICE ||
        (st == ATTN_OK && wants_another(&host, argv[family], argv[family + 1], &err))) {
        printf("skipped: %s\n", err.line);
        code = 77;
    } else if (st != ATTN_OK) {
        printf("failed: %s\n", err.line);
    } else if (draws) {
        gate_draw draw = {atoi(argv[at + 1]), (uint64_t)atoll(argv[at + 2]), cover};
        code = gate_random(&host, &draw, argv[family], argc - family - 1, argv + family + 1);
    } else {
        code = gate_configs(&host, argv[family], argv[family + 1], argc - family - 2,
                            argv + family + 2);
    }
    cpu_host_close(&host);
    return code;
}

/* gate.c: holds variants of a family against the ordinary gate and prints each verdict.
 *
 *     gate [--path DIR] FAMILY PROBLEM CONFIG...       the default with these changes ("": none)
 *     gate --random N SEED FAMILY PROBLEM...           N random ones, dealt over the problems
 *
 * Exit code: 0 all are right, 1 at least one is wrong, 2 something else failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_variants.h"
#include "gate_random.h"
#include "verify.h"

static const char *const words[] = {"right", "wrong"};

int gate_one(const cpu_host *host, attn_verifier *verifier, cpu_variant *v) {
    attn_error err = ATTN_ERROR_INIT;
    attn_verdict verdict;
    attn_status st = v->kernel ? ATTN_OK : cpu_variant_load(host, v, &err);
    if (st == ATTN_OK)
        st = attn_verifier_check(verifier, v->kernel, &v->launch, 2, &verdict, &err);
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
        code = gate_one(host, verifier, &v);
    else
        printf("failed: %s: %s\n", config, err.line);
    cpu_variant_free(&v);
    return code;
}

static int usage(void) {
    fputs("usage: gate [--path DIR] FAMILY PROBLEM CONFIG...\n"
          "       gate --random N SEED FAMILY PROBLEM...\n",
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
        attn_verifier_create(&attn_backend_cpu, host->device, &problem, 1, &verifier, &err) !=
            ATTN_OK) {
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

int main(int argc, char **argv) {
    attn_error err = ATTN_ERROR_INIT;
    const char *path = NULL;
    bool random = argc > 5 && strcmp(argv[1], "--random") == 0;
    int at = 1;
    if (argc > 2 && strcmp(argv[1], "--path") == 0) {
        path = argv[2];
        at = 3;
    }
    if (!random && argc - at < 3)
        return usage();
    cpu_host host;
    int code = 2;
    if (cpu_host_open(path, 2, &host, &err) != ATTN_OK)
        printf("failed: %s\n", err.line);
    else if (random)
        code = gate_random(&host, atoi(argv[2]), (uint64_t)atoll(argv[3]), argv[4], argc - 5,
                           argv + 5);
    else
        code = gate_configs(&host, argv[at], argv[at + 1], argc - at - 2, argv + at + 2);
    cpu_host_close(&host);
    return code;
}

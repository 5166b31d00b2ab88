/* test_fast_math.c: variants compiled with -ffast-math are right and change no thread's
 * floating-point mode; libmvec is linked where it is asked for, and where there is none the
 * compiler says so. */
#include <pthread.h>

#include "check.h"
#include "cpu_variants.h"
#include "verify.h"

#if defined(__x86_64__) && defined(__gnu_linux__)

static const char family[] = "cpu/loop_forward";

static attn_error err = ATTN_ERROR_INIT;
static attn_problem problem;

static uint32_t mode_now(void) {
    return __builtin_ia32_stmxcsr() & ~63U; /* without the flags of what has happened */
}

static void *mode_of_thread(void *result) {
    *(uint32_t *)result = mode_now();
    return NULL;
}

static void check_mode(uint32_t before) {
    uint32_t other = 0;
    pthread_t thread;
    CHECK_EQ_INT(mode_now(), before);
    CHECK_EQ_INT(pthread_create(&thread, NULL, mode_of_thread, &other), 0);
    pthread_join(thread, NULL);
    CHECK_EQ_INT(other, before);
}

/* Is `text` anywhere in the binary? */
static bool names(const attn_binary *binary, const char *text) {
    return memmem(binary->data, binary->size, text, strlen(text)) != NULL;
}

static void check_variant(const cpu_host *host, const char *config, bool libmvec) {
    cpu_variant v;
    attn_verifier *verifier = NULL;
    attn_verdict verdict = {.right = false};
    const uint32_t before = mode_now();
    CHECK_CASE("%s", config);
    if (CHECK_OK(cpu_variant_make(host, family, &problem, config, &v, &err), err.line) &&
        CHECK_OK(attn_verifier_create(host->backend, host->device, &problem, 1,
                                      ATTN_VERIFIER_SECONDS, &verifier, &err),
                 err.line)) {
        check_mode(before);
        CHECK_EQ_INT(names(&v.binary, "libmvec.so"), libmvec);
        CHECK_OK(attn_verifier_check(verifier, v.kernel, &v.launch, 2, &verdict, &err), err.line);
        check_that(verdict.right, __FILE__, __LINE__, "%s", verdict.reason);
        check_mode(before);
    }
    attn_verifier_destroy(verifier);
    cpu_variant_free(&v);
    check_mode(before);
}

static bool is_clang(void) {
    const char *cc = getenv("CC");
    return cc && strstr(cc, "clang");
}

/* Without __FAST_MATH__, glibc's header declares no vectors, as other C libraries' do not. */
static void check_missing(const cpu_host *host) {
    const char *cc = getenv("CC");
    char without[512];
    cpu_variant v;
    (void)snprintf(without, sizeof without, "%s -U__FAST_MATH__", cc ? cc : "gcc");
    setenv("CC", without, 1);
    CHECK_STATUS(cpu_variant_make(host, family, &problem, "EXP=libmvec MATH=fast", &v, &err),
                 ATTN_ERR_COMPILE, err.line);
    CHECK_HAS(err.line, "EXP=libmvec needs GCC, and a glibc that has libmvec");
    cpu_variant_free(&v);
}

int main(void) {
    cpu_host host;
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h2:s100:d64:causal:lse", &problem, NULL, 0), "");
    if (!CHECK_OK(cpu_host_open(NULL, 2, &host, &err), err.line))
        return check_done();
    check_variant(&host, "MATH=fast", false);
    if (!is_clang()) { /* which has its own ways to libmvec */
        check_variant(&host, "MATH=fast EXP=libmvec PAD=1 ROWS=8", true);
        check_missing(&host);
    }
    cpu_host_close(&host);
    return check_done();
}

#else

int main(void) {
    check_skip("libmvec is for x86-64 and glibc");
}

#endif

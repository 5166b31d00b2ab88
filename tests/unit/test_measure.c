/* test_measure.c: samples, races and rounds on a scripted device whose times are what a test says.
 */
#include "check.h"
#include "host_memory.h"
#include "stand.h"

/*-*** The scripted device ***************************************/

enum { COPIES_SEEN = 64 };

struct attn_backend_device {
    int64_t cache; /* "l3" */
    int64_t memory;
    int32_t blocks;
    double canary[16]; /* given one after the other, then the last again */
    int canaries, canary_next, peaks;
};

struct attn_kernel {
    double ns; /* of a launch */
    int64_t launches;
    int32_t timings;
    const void *seen[COPIES_SEEN]; /* q of the last launches */
    int32_t fails_at;              /* timing that fails; 0: none */
};

static void info_slot(const attn_backend_device *device, attn_device_info *info) {
    memset(info, 0, sizeof *info);
    attn_device_prop_set(info, "l3", device->cache);
}

static int32_t workers_slot(const attn_backend_device *device) {
    (void)device;
    return 2;
}

static attn_status alloc_slot(attn_backend_device *device, size_t size, void **memory,
                              attn_error *err) {
    device->memory += (int64_t)size;
    device->blocks++;
    return host_alloc(device, size, memory, err);
}

static void free_slot(attn_backend_device *device, void *memory) {
    device->blocks--;
    host_free(device, memory);
}

static attn_status time_slot(attn_kernel *kernel, const attn_call *calls, int32_t count,
                             int32_t launches, double *ns, attn_error *err) {
    if (++kernel->timings == kernel->fails_at)
        return attn_fail(err, ATTN_ERR_LAUNCH, "as was asked for");
    for (int32_t i = 0; i < launches; i++)
        kernel->seen[kernel->launches++ % COPIES_SEEN] = calls[i % count].args.q;
    *ns = kernel->ns * launches;
    return ATTN_OK;
}

static void state_slot(attn_backend_device *device, attn_device_state *state) {
    *state = (attn_device_state)ATTN_DEVICE_STATE_INIT;
    state->clock_mhz = 1234;
    state->canary = device->canary[device->canary_next];
    if (device->canary_next + 1 < device->canaries)
        device->canary_next++;
}

static double peak_slot(attn_backend_device *device, int32_t threads) {
    return 50 * threads + device->peaks++;
}

static const attn_backend SCRIPTED = {.name = "scripted",
                                      .info = info_slot,
                                      .workers = workers_slot,
                                      .alloc = alloc_slot,
                                      .free = free_slot,
                                      .copy = host_copy,
                                      .time = time_slot,
                                      .state = state_slot,
                                      .peak = peak_slot};

static attn_problem the_problem(void) {
    attn_problem problem;
    char error[256];
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h2:s64:d32:lse", &problem, error, sizeof error), error);
    return problem;
}

static attn_launch the_launch(void) {
    attn_launch launch;
    attn_error err = ATTN_ERROR_INIT;
    CHECK_OK(attn_launch_parse("step symbol=k grid=tiles rows=16\n"
                               "workspace bytes=4096 per=worker\n",
                               &launch, &err),
             err.line);
    return launch;
}

static attn_stand *open_stand(attn_backend_device *device, attn_mode mode) {
    attn_error err = ATTN_ERROR_INIT;
    attn_problem problem = the_problem();
    attn_stand *stand = NULL;
    CHECK_OK(attn_stand_open(&SCRIPTED, device, &problem, mode, 1, &stand, &err), err.line);
    return stand;
}

/*-*** Tests *****************************************************/

static void check_median(void) {
    const double values[] = {5, 1, 4, 2, 3};
    CHECK_NEAR(attn_median(values, 5), 3, 0);
    CHECK_NEAR(attn_median(values, 4), 3, 0);
    CHECK_NEAR(attn_median(values, 1), 5, 0);
    CHECK(isnan(attn_median(values, 0)));
}

/* Cold: consecutive launches are on different copies, whose sum is over twice the cache. */
static void check_copies(void) {
    attn_error err = ATTN_ERROR_INIT;
    attn_backend_device device = {.cache = 200000, .canary = {100}, .canaries = 1};
    attn_problem problem = the_problem();
    attn_launch launch = the_launch();
    double ns;
    for (int mode = ATTN_COLD; mode <= ATTN_HOT; mode++) {
        CHECK_CASE("%s", attn_mode_name((attn_mode)mode));
        attn_kernel kernel = {.ns = 500000}; /* four launches a sample */
        attn_timed timed = {.kernel = &kernel, .launch = &launch};
        attn_stand *stand = open_stand(&device, (attn_mode)mode);
        int32_t copies =
            mode == ATTN_HOT ? 1 : (int32_t)(400000 / attn_problem_bytes(&problem)) + 1;
        for (int i = 0; i < 12; i++)
            CHECK_OK(attn_stand_sample(stand, &timed, &ns, &err), err.line);
        CHECK_EQ_INT(timed.launches, 4);
        CHECK_NEAR(ns, 500000, 1e-6);
        for (int i = 1; i < COPIES_SEEN && i < kernel.launches; i++) {
            bool same = kernel.seen[i] == kernel.seen[i - 1];
            CHECK(same == (mode == ATTN_HOT));
            CHECK(i < copies || kernel.seen[i] == kernel.seen[i - copies]);
        }
        attn_stand_close(stand);
        CHECK_EQ_INT(device.blocks, 0);
    }
    check_case[0] = '\0';
}

/* A sample fills 2 ms, and one long launch is a sample. */
static void check_launches(void) {
    static const struct {
        double ns;
        int32_t launches;
    } CASES[] = {{1e3, 2000}, {3e5, 7}, {1.9e6, 2}, {2e6, 1}, {5e8, 1}};
    attn_backend_device device = {.canary = {100}, .canaries = 1};
    attn_launch launch = the_launch();
    attn_error err = ATTN_ERROR_INIT;
    attn_stand *stand = open_stand(&device, ATTN_HOT);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        attn_kernel kernel = {.ns = CASES[i].ns};
        attn_timed timed = {.kernel = &kernel, .launch = &launch};
        CHECK_CASE("%g ns", CASES[i].ns);
        CHECK_OK(attn_stand_warm(stand, &timed, &err), err.line);
        CHECK_EQ_INT(timed.launches, CASES[i].launches);
        CHECK_EQ_INT(timed.count, 0); /* what warms up is no sample */
    }
    check_case[0] = '\0';
    attn_stand_close(stand);
}

/* A sample taken while the device is slow is taken again, three times at most. */
static void check_canary(void) {
    static const struct {
        double canary[8];
        int count;
        int32_t timings; /* three of them warm up */
        bool throttled;
    } CASES[] = {
        {{100}, 1, 3 + 1, false},
        {{100, 96, 94, 98}, 4, 3 + 1, false}, /* only the first is looked at */
        {{100, 90, 100}, 3, 3 + 1, false},
    };
    attn_launch launch = the_launch();
    attn_error err = ATTN_ERROR_INIT;
    double ns;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        attn_backend_device device = {.canaries = CASES[i].count};
        memcpy(device.canary, CASES[i].canary, sizeof CASES[i].canary);
        attn_kernel kernel = {.ns = 1e6};
        attn_timed timed = {.kernel = &kernel, .launch = &launch};
        attn_stand *stand = open_stand(&device, ATTN_HOT);
        CHECK_OK(attn_stand_sample(stand, &timed, &ns, &err), err.line);
        CHECK_CASE("canaries %d", (int)i);
        CHECK_EQ_INT(kernel.timings, CASES[i].timings);
        CHECK_EQ_INT(timed.throttled, CASES[i].throttled);
        CHECK_NEAR(timed.last_state.clock_mhz, 1234, 0);
        attn_stand_close(stand);
    }
    /* The second sample: slow twice, then well; slow for good; a fault is passed on. */
    static const struct {
        double canary[8];
        int count;
        int32_t more;
        bool throttled;
    } SECOND[] = {{{100, 90, 94.5, 99}, 4, 3, false}, {{100, 90}, 2, 4, true}};
    for (size_t i = 0; i < sizeof SECOND / sizeof SECOND[0]; i++) {
        attn_backend_device device = {.canaries = SECOND[i].count};
        memcpy(device.canary, SECOND[i].canary, sizeof SECOND[i].canary);
        attn_kernel kernel = {.ns = 1e6};
        attn_timed timed = {.kernel = &kernel, .launch = &launch};
        attn_stand *stand = open_stand(&device, ATTN_HOT);
        CHECK_CASE("second sample %d", (int)i);
        CHECK_OK(attn_stand_sample(stand, &timed, &ns, &err), err.line);
        int32_t before = kernel.timings;
        CHECK_OK(attn_stand_sample(stand, &timed, &ns, &err), err.line);
        CHECK_EQ_INT(kernel.timings - before, SECOND[i].more);
        CHECK_EQ_INT(timed.throttled, SECOND[i].throttled);
        CHECK_EQ_INT(timed.count, 2);
        kernel.fails_at = kernel.timings + 1;
        CHECK_STATUS(attn_stand_sample(stand, &timed, &ns, &err), ATTN_ERR_LAUNCH, err.line);
        attn_stand_close(stand);
    }
    check_case[0] = '\0';
}

/* How many samples each kernel gets in a race. */
static void check_race(void) {
    static const struct {
        double best;
        double ns[5];
        int32_t samples[5];
    } CASES[] = {
        {NAN, {1e6, 1.05e6, 1.3e6, 1.6e6, 1.1e6}, {25, 25, 7, 2, 25}},
        {NAN, {3e6, 1e6, 1.49e6, 1.51e6, 1.11e6}, {2, 25, 7, 2, 7}},
        {1e6, {1.05e6, 1.2e6, 2e6, 1.6e6, 1.11e6}, {25, 7, 2, 2, 7}},
        {1e5, {1e6, 1.05e6, 1.3e6, 1.6e6, 1.1e6}, {2, 2, 2, 2, 2}},
    };
    attn_backend_device device = {.canary = {100}, .canaries = 1};
    attn_launch launch = the_launch();
    attn_error err = ATTN_ERROR_INIT;
    attn_stand *stand = open_stand(&device, ATTN_HOT);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        attn_kernel kernel[5] = {{.ns = 0}};
        attn_timed timed[5] = {{.kernel = NULL}};
        for (int k = 0; k < 5; k++) {
            kernel[k].ns = CASES[i].ns[k];
            timed[k].kernel = &kernel[k];
            timed[k].launch = &launch;
        }
        CHECK_OK(attn_race(stand, timed, 5, CASES[i].best, &err), err.line);
        for (int k = 0; k < 5; k++) {
            CHECK_CASE("race %d, kernel %d", (int)i, k);
            CHECK_EQ_INT(timed[k].count, CASES[i].samples[k]);
            CHECK_NEAR(attn_median(timed[k].ns, (size_t)timed[k].count), CASES[i].ns[k], 1e-6);
        }
    }
    check_case[0] = '\0';
    attn_stand_close(stand);
}

static void check_rounds(void) {
    attn_backend_device device = {.canary = {100}, .canaries = 1};
    attn_launch launch = the_launch();
    attn_error err = ATTN_ERROR_INIT;
    attn_stand *stand = open_stand(&device, ATTN_HOT);
    attn_kernel kernel[3] = {{.ns = 1e6}, {.ns = 2e6}, {.ns = 3e6}};
    attn_timed timed[3] = {{.kernel = &kernel[0], .launch = &launch},
                           {.kernel = &kernel[1], .launch = &launch},
                           {.kernel = &kernel[2], .launch = &launch}};
    double ns[7 * 3] = {0}, peak[7];
    CHECK_OK(attn_rounds(stand, timed, 3, 7, ns, peak, &err), err.line);
    for (int i = 0; i < 7; i++)
        CHECK_NEAR(peak[i], 100 + i, 1e-6); /* one a round, behind its samples */
    for (int i = 0; i < 21; i++)
        CHECK_NEAR(ns[i], kernel[i % 3].ns, 1e-6);
    CHECK_EQ_INT(timed[0].count, 7);
    kernel[1].fails_at = kernel[1].timings + 3;
    CHECK_STATUS(attn_rounds(stand, timed, 3, 7, ns, NULL, &err), ATTN_ERR_LAUNCH, err.line);
    attn_stand_close(stand);
    CHECK_EQ_INT(device.blocks, 0);
}

/* Twice in turn, each alone for longer than ATTN_HOLD_S; the first halves are not told. */
static void check_hold(void) {
    attn_backend_device device = {.canary = {100}, .canaries = 1};
    attn_launch launch = the_launch();
    attn_error err = ATTN_ERROR_INIT;
    attn_stand *stand = open_stand(&device, ATTN_HOT);
    attn_kernel kernel[2] = {{.ns = 1e5}, {.ns = 2e7}};
    attn_timed timed[2] = {{.kernel = &kernel[0], .launch = &launch},
                           {.kernel = &kernel[1], .launch = &launch}};
    double ns[7 * 2] = {0}, least = ATTN_HOLD_PASSES * ATTN_HOLD_S * 1e9;
    CHECK_OK(attn_hold(stand, timed, 2, 7, ns, &err), err.line);
    for (int i = 0; i < 14; i++)
        CHECK_NEAR(ns[i], kernel[i % 2].ns, 1e-6);
    for (int k = 0; k < 2; k++) {
        CHECK((double)kernel[k].launches * kernel[k].ns > 0.9 * least);
        CHECK((double)kernel[k].launches * kernel[k].ns < 1.5 * least);
    }
    kernel[1].fails_at = kernel[1].timings + 3;
    CHECK_STATUS(attn_hold(stand, timed, 2, 7, ns, &err), ATTN_ERR_LAUNCH, err.line);
    attn_stand_close(stand);
    CHECK_EQ_INT(device.blocks, 0);
}

int main(void) {
    check_median();
    check_copies();
    check_launches();
    check_canary();
    check_race();
    check_rounds();
    check_hold();
    return check_done();
}

/* serve_device.c: what a worker does with an open device: loading, proving, timing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "judge_kernel.h"
#include "server.h"

/*-*** The watched backend ***************************************/

static const attn_slot *slot_of(const attn_kernel *kernel) {
    return (const attn_slot *)(const void *)kernel;
}

static void begin_slot(const attn_slot *slot, attn_step_kind kind) {
    attn_server_step(slot->server, kind, (size_t)(slot - slot->server->slot));
}

static attn_status watched_run(attn_kernel *kernel, const attn_call *call, void *stream,
                               attn_error *err) {
    const attn_slot *slot = slot_of(kernel);
    begin_slot(slot, ATTN_STEP_LAUNCH);
    ATTN_TRY(slot->server->backend->run(slot->kernel, call, stream, err));
    if (stream) /* meant to overlap with other work: stays a launch until the next step */
        return ATTN_OK;
    attn_status status = slot->server->backend->sync(slot->server->device, err);
    begin_slot(slot, ATTN_STEP_WORK);
    return status;
}

static attn_status watched_time(attn_kernel *kernel, const attn_call *calls, int32_t count,
                                int32_t launches, double *ns, attn_error *err) {
    const attn_slot *slot = slot_of(kernel);
    begin_slot(slot, ATTN_STEP_SAMPLING);
    return slot->server->backend->time(slot->kernel, calls, count, launches, ns, err);
}

static bool watched_fits(const attn_kernel *kernel, const attn_call *call) {
    const attn_slot *slot = slot_of(kernel);
    return slot->server->backend->fits(slot->kernel, call);
}

attn_kernel *attn_server_kernel(attn_slot *slot) {
    return (attn_kernel *)(void *)slot;
}

/*-*** Device and problem ****************************************/

attn_status attn_serve_open(attn_server *server, attn_fields *fields, attn_str *reply,
                            attn_error *err) {
    const char *name = attn_get_text(fields);
    int32_t ordinal = (int32_t)attn_get_u32(fields);
    const attn_device_options options = {.threads = (int32_t)attn_get_u32(fields),
                                         .own_context = true};
    attn_str text = ATTN_STR_INIT;
    const attn_backend *backend = attn_backend_find(name);
    if (!backend || server->device)
        return attn_fail(err, ATTN_ERR_INTERNAL, "backend '%s' cannot be opened here", name);
    ATTN_TRY(backend->open(ordinal, &options, &server->device, err));
    server->backend = backend;
    server->watched = *backend;
    server->watched.run = watched_run;
    server->watched.time = watched_time;
    server->watched.fits = backend->fits ? watched_fits : NULL;
    backend->info(server->device, &server->info);
    ATTN_TRY(attn_lock_open(server->info.lock, &server->device_lock, err));
    if (strcmp(server->info.lock, "cpu") != 0)
        ATTN_TRY(attn_lock_open("cpu", &server->cpu_lock, err));
    attn_device_print(&server->info, &text);
    attn_put_text(reply, attn_str_text(&text));
    attn_str_free(&text);
    return ATTN_OK;
}

static attn_status need_device(const attn_server *server, attn_error *err) {
    return server->device ? ATTN_OK : attn_fail(err, ATTN_ERR_INTERNAL, "no device is open");
}

/* Another virtual machine may have a core for longer than one measurement takes: the best of some,
 * with pauses between them. */
attn_status attn_serve_peak(attn_server *server, attn_fields *fields, attn_str *reply,
                            attn_error *err) {
    enum { TIMES = 6 };
    static const struct timespec pause = {.tv_nsec = 15000000};
    int32_t threads = (int32_t)attn_get_u32(fields);
    double peak = NAN;
    ATTN_TRY(need_device(server, err));
    if (server->backend->peak) {
        ATTN_TRY(attn_server_lock_device(server, err));
        for (int i = 0; i < TIMES; i++) {
            peak = fmax(peak, server->backend->peak(server->device, threads));
            (void)nanosleep(&pause, NULL);
        }
    }
    attn_put_f64(reply, peak);
    return ATTN_OK;
}

static void drop_slot(attn_server *server, attn_slot *slot) {
    if (slot->kernel)
        server->backend->unload(slot->kernel);
    memset(slot, 0, sizeof *slot);
}

attn_status attn_serve_problem(attn_server *server, attn_fields *fields, attn_str *reply,
                               attn_error *err) {
    ATTN_TRY(need_device(server, err));
    for (size_t i = 0; i <= ATTN_SLOTS; i++)
        drop_slot(server, &server->slot[i]);
    attn_verifier_destroy(server->verifier);
    attn_stand_close(server->stand);
    server->verifier = NULL;
    server->stand = NULL;
    attn_get_struct(fields, &server->problem, sizeof server->problem);
    attn_mode mode = (attn_mode)attn_get_u32(fields);
    uint64_t seed = 0;
    attn_get_struct(fields, &seed, sizeof seed);
    ATTN_TRY(attn_server_lock_work(server, err));
    ATTN_TRY(attn_verifier_create(&server->watched, server->device, &server->problem, seed,
                                  ATTN_VERIFIER_SECONDS, &server->verifier, err));
    ATTN_TRY(attn_judge_serve(server, &server->slot[ATTN_SLOTS], fields, reply, err));
    return attn_stand_open(&server->watched, server->device, &server->problem, mode, seed,
                           &server->stand, err);
}

/*-*** Kernels ***************************************************/

static attn_slot *get_slot(attn_server *server, attn_fields *fields, attn_error *err) {
    uint32_t number = attn_get_u32(fields);
    if (number >= ATTN_SLOTS || !server->stand) {
        (void)attn_fail(err, ATTN_ERR_INTERNAL, "slot %u cannot be used", number);
        return NULL;
    }
    return &server->slot[number];
}

static attn_status load(attn_server *server, attn_slot *slot, attn_fields *fields,
                        attn_error *err) {
    attn_binary binary;
    drop_slot(server, slot);
    ATTN_TRY(attn_get_binary(fields, &binary, err));
    const char *target = attn_get_text(fields);
    attn_get_struct(fields, &slot->launch, sizeof slot->launch);
    slot->server = server;
    begin_slot(slot, ATTN_STEP_LAUNCH); /* a library's constructors may run */
    attn_status status =
        server->backend->load(server->device, &binary, target, &slot->launch, &slot->kernel, err);
    begin_slot(slot, ATTN_STEP_WORK);
    attn_binary_free(&binary);
    return status;
}

attn_status attn_serve_prove(attn_server *server, attn_fields *fields, attn_str *reply,
                             attn_error *err) {
    attn_verdict verdict = ATTN_VERDICT_INIT;
    attn_slot *slot = get_slot(server, fields, err);
    if (!slot)
        return err->status;
    ATTN_TRY(attn_server_lock_work(server, err));
    ATTN_TRY(load(server, slot, fields, err));
    int32_t repeats = (int32_t)attn_get_u32(fields);
    attn_kernel *kernel = attn_server_kernel(slot);
    if (repeats > 0)
        ATTN_TRY(
            attn_verifier_repeat(server->verifier, kernel, &slot->launch, repeats, &verdict, err));
    else
        ATTN_TRY(attn_verifier_check(server->verifier, kernel, &slot->launch, 2, &verdict, err));
    attn_put_bytes(reply, &verdict, sizeof verdict);
    return ATTN_OK;
}

/*-*** Timing ****************************************************/

/* Reads the slots to time; *timed is to be freed. */
static attn_status get_timed(attn_server *server, attn_fields *fields, attn_timed **timed,
                             size_t *count, attn_error *err) {
    *count = attn_get_u32(fields);
    *timed = NULL;
    if (*count == 0 || *count > ATTN_SLOTS)
        return attn_fail(err, ATTN_ERR_INTERNAL, "%zu slots cannot be timed", *count);
    *timed = calloc(*count, sizeof **timed);
    if (!*timed)
        return attn_fail_nomem(err);
    for (size_t i = 0; i < *count; i++) {
        attn_slot *slot = get_slot(server, fields, err);
        if (!slot || !slot->kernel)
            return attn_fail(err, ATTN_ERR_INTERNAL, "an empty slot cannot be timed");
        (*timed)[i].kernel = attn_server_kernel(slot);
        (*timed)[i].launch = &slot->launch;
    }
    return ATTN_OK;
}

attn_status attn_serve_race(attn_server *server, attn_fields *fields, attn_str *reply,
                            attn_error *err) {
    attn_timed *timed;
    size_t count;
    double best = attn_get_f64(fields);
    attn_status status = get_timed(server, fields, &timed, &count, err);
    if (status == ATTN_OK)
        status = attn_server_lock_device(server, err);
    if (status == ATTN_OK)
        status = attn_race(server->stand, timed, count, best, err);
    if (status == ATTN_OK)
        attn_put_bytes(reply, timed, count * sizeof *timed);
    free(timed);
    return status;
}

attn_status attn_serve_rounds(attn_server *server, attn_fields *fields, attn_str *reply,
                              attn_error *err) {
    attn_timed *timed;
    size_t count;
    uint32_t rounds = attn_get_u32(fields);
    uint32_t kind = attn_get_u32(fields), limited = 0;
    double *ns = NULL; /* and one peak a round */
    attn_status status = get_timed(server, fields, &timed, &count, err);
    if (status == ATTN_OK && (rounds == 0 || rounds > ATTN_ROUNDS_MAX))
        status = attn_fail(err, ATTN_ERR_INTERNAL, "%u rounds", rounds);
    if (status == ATTN_OK && !(ns = calloc((count + 1) * rounds, sizeof *ns)))
        status = attn_fail_nomem(err);
    if (status == ATTN_OK)
        status = attn_server_lock_device(server, err);
    if (status == ATTN_OK)
        status = kind == ATTN_ROUNDS_HELD
                     ? attn_hold(server->stand, timed, count, (int32_t)rounds, ns, err)
                     : attn_rounds(server->stand, timed, count, (int32_t)rounds, ns,
                                   kind == ATTN_ROUNDS_PEAKS ? ns + count * rounds : NULL, err);
    for (size_t i = 0; status == ATTN_OK && i < count; i++)
        limited |= timed[i].last_state.power_limited;
    if (status == ATTN_OK)
        attn_put_bytes(reply, ns, count * rounds * sizeof *ns);
    if (status == ATTN_OK)
        attn_put_bytes(reply, ns + count * rounds, rounds * sizeof *ns);
    if (status == ATTN_OK)
        attn_put_u32(reply, limited);
    free(timed);
    free(ns);
    return status;
}

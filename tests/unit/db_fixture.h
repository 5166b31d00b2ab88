/* db_fixture.h: a database in a temporary folder, and trials to put into it. */
#ifndef ATTN_TEST_DB_FIXTURE_H
#define ATTN_TEST_DB_FIXTURE_H

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "db.h"

static char fixture_folder[256]; /* made by fixture_begin, removed by fixture_end */

__attribute__((unused)) static void fixture_begin(void) {
    const char *tmp = getenv("TMPDIR"); /* else in memory, where a sync costs nothing */
    if (!tmp)
        tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(fixture_folder, sizeof fixture_folder, "%s/attn-db-XXXXXX", tmp);
    if (!mkdtemp(fixture_folder)) {
        perror(fixture_folder);
        exit(1);
    }
}

static int fixture_remove(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

__attribute__((unused)) static void fixture_end(void) {
    nftw(fixture_folder, fixture_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* "FOLDER/name"; one of four static buffers, in turn. */
__attribute__((unused)) static const char *fixture_path(const char *name) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", fixture_folder, name);
    return path;
}

/* A trial number n of problem number p: what a tuner would know of it. */
typedef struct fixture_trial {
    attn_device_info device;
    attn_problem problem;
    attn_variant variant;
    char config[32];
    attn_trial_key key;
} fixture_trial;

__attribute__((unused)) static void fixture_make(fixture_trial *t, int n, int p) {
    static char family[] = "cpu/toy", language[] = "c", source[] = "int x;", options[] = "-O2",
                class_text[] = "fwd:f32:d64:dv64:none:a16",
                launch[] = "step symbol=toy threads=1 smem=0 cluster=1 grid=tiles rows=64 packed=0 "
                           "order=row deal=dynamic blocks_per_sm=1 spare=0 pdl=0\n";
    char text[96];
    memset(t, 0, sizeof *t);
    snprintf(t->device.backend, sizeof t->device.backend, "cpu");
    snprintf(t->device.name, sizeof t->device.name, "Toy CPU");
    snprintf(t->device.arch, sizeof t->device.arch, "cpu:avx2");
    snprintf(t->device.identity, sizeof t->device.identity, "toy 1 2 3");
    snprintf(t->device.environment, sizeof t->device.environment, "linux");
    attn_device_prop_set(&t->device, "threads", 8);
    snprintf(text, sizeof text, "fwd:f32:b1:h%d:s128:d64", p + 1);
    if (attn_problem_parse(text, &t->problem, NULL, 0) != ATTN_OK)
        exit(1);
    snprintf(t->config, sizeof t->config, "N=%d", n);
    t->variant =
        (attn_variant){family, language, t->config, class_text, source, launch, options, {0, 0}};
    attn_variant_seal(&t->variant);
    t->key = (attn_trial_key){&t->device, &t->problem, &t->variant, "gcc 12",  "cpu:avx2",
                              {1, 2},     {0, 0},      2,           ATTN_COLD, false};
    t->key.build = attn_build_hash(t->variant.hash, t->key.toolchain, t->key.target);
}

__attribute__((unused)) static attn_trial_result fixture_result(attn_outcome outcome, double ns) {
    attn_trial_result r;
    memset(&r, 0, sizeof r);
    r.outcome = outcome;
    r.median_ns = outcome == ATTN_OUTCOME_OK ? ns : NAN;
    r.error_max = 1e-7;
    r.clock_mhz = r.power_w = r.temperature_c = NAN;
    r.registers = r.spills = r.smem = -1;
    if (outcome == ATTN_OUTCOME_OK)
        for (r.samples = 0; r.samples < 3; r.samples++)
            r.sample_ns[r.samples] = ns + r.samples;
    return r;
}

/* Claims and ends it; the id is that of the trial. */
__attribute__((unused)) static attn_trial_id fixture_run(attn_db *db, int n, int p,
                                                         attn_outcome outcome, double ns) {
    fixture_trial t;
    attn_error err = ATTN_ERROR_INIT;
    attn_claim claim = ATTN_CLAIM_TAKEN;
    attn_trial_id id = {""};
    attn_trial_result result = fixture_result(outcome, ns), found;
    fixture_make(&t, n, p);
    CHECK_OK(attn_db_claim(db, &t.key, &claim, &id, &found, &err), err.line);
    CHECK_EQ_INT(claim, ATTN_CLAIM_MINE);
    CHECK_OK(attn_db_trial_end(db, &id, &result, &err), err.line);
    return id;
}

/* Opened for writing, in a session; ends the test if that fails. */
__attribute__((unused)) static attn_db *fixture_open(const char *path) {
    attn_error err = ATTN_ERROR_INIT;
    attn_db *db;
    if (attn_db_open(path, ATTN_DB_WRITE, &db, &err) != ATTN_OK ||
        attn_db_session_begin(db, "test", &err) != ATTN_OK) {
        fprintf(stderr, "%s\n", err.line);
        exit(1);
    }
    return db;
}

#endif

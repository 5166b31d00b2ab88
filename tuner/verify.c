/* verify.c: proofs (inputs with their reference, and the judge's output where that lacks rows),
 * made once, and kernels held against them. */
#include "verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hostile.h"
#include "verify_run.h"

/* What the references of a problem have of the time for them: step 2's, and each of step 3. */
#define SHARE_FULL 0.65
#define SHARE_OTHER 0.15

/* A judge is expected to take at most so long on one of the inputs. */
#define JUDGE_SECONDS 5.0

/* The problem counts as large from so many multiplications: some 10 ms on one core. */
#define LARGE 2e8

struct attn_verifier {
    attn_rig rig;
    attn_problem problem;
    uint64_t seed;
    double seconds;
    attn_proof **proof;
    size_t proofs, capacity;
    attn_kernel *judge; /* NULL: none */
    attn_launch judge_launch;
    double judge_rate; /* multiplications a second, as measured; 0: not yet */
};

static bool same_spec(const attn_input_spec *a, const attn_input_spec *b) {
    bool same_scale = a->scale == b->scale || (isnan(a->scale) && isnan(b->scale));
    return same_scale && a->kind == b->kind && a->strides == b->strides && a->seed == b->seed;
}

static attn_proof *find(const attn_verifier *v, const attn_problem *problem,
                        const attn_input_spec *spec) {
    attn_hash hash = attn_problem_hash(problem);
    for (size_t i = 0; i < v->proofs; i++)
        if (attn_hash_equal(v->proof[i]->hash, hash) && same_spec(&v->proof[i]->inputs.spec, spec))
            return v->proof[i];
    return NULL;
}

static void proof_free(attn_proof *proof) {
    if (!proof)
        return;
    attn_inputs_free(&proof->inputs);
    attn_reference_free(&proof->reference);
    attn_judge_free(&proof->judge);
    free(proof);
}

/*-*** The judge *************************************************/

static double work_of(const attn_problem *p) {
    return attn_problem_pairs(p) * (p->head_dim + p->head_dim_v);
}

static double seconds_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static attn_status judge_admits(const attn_verifier *v, const attn_proof *proof, attn_error *err) {
    const attn_problem *p = &proof->inputs.problem;
    double seconds = v->judge_rate > 0 ? work_of(p) / v->judge_rate : 0;
    if (attn_limits_broken(&v->judge_launch, p) ||
        !attn_rig_fits(&v->rig, proof, v->judge, &v->judge_launch))
        return attn_fail(err, ATTN_ERR_UNSUPPORTED, "it does not admit the problem");
    if (seconds > JUDGE_SECONDS)
        return attn_fail(err, ATTN_ERR_UNSUPPORTED, "it would take %.0f s", seconds);
    return ATTN_OK;
}

/* Has the judge make its output for a proof that needs one. */
static attn_status judge_proof(attn_verifier *v, attn_proof *proof, attn_error *err) {
    attn_verdict verdict = ATTN_VERDICT_INIT;
    if (!v->judge || proof->reference.complete || proof->judge.image)
        return ATTN_OK;
    ATTN_TRY(judge_admits(v, proof, err));
    double begun = seconds_now();
    ATTN_TRY(attn_rig_judge(&v->rig, proof, v->judge, &v->judge_launch, &verdict, err));
    v->judge_rate = work_of(&proof->inputs.problem) / fmax(1e-6, seconds_now() - begun);
    if (verdict.right)
        return ATTN_OK;
    return attn_fail(err, ATTN_ERR_INTERNAL, "it disagrees with the float64 reference: %s",
                     verdict.reason);
}

bool attn_verifier_partial(const attn_verifier *v) {
    for (size_t i = 0; i < v->proofs; i++)
        if (!v->proof[i]->reference.complete)
            return true;
    return false;
}

/* The smallest proofs, which were made last, first: they tell how long the others take. */
attn_status attn_verifier_judge(attn_verifier *v, attn_kernel *kernel, const attn_launch *launch,
                                attn_error *err) {
    attn_status st = ATTN_OK;
    v->judge = kernel;
    v->judge_launch = *launch;
    for (size_t i = v->proofs; i-- > 0 && st == ATTN_OK;)
        st = judge_proof(v, v->proof[i], err);
    if (st != ATTN_OK)
        v->judge = NULL;
    return st;
}

/*-*** Proofs ****************************************************/

/* The proof for a problem and its inputs, from the cache or made now. */
static attn_status proof_get(attn_verifier *v, const attn_problem *problem,
                             const attn_input_spec *spec, double seconds, attn_proof **proof,
                             attn_error *err) {
    *proof = find(v, problem, spec);
    if (*proof)
        return ATTN_OK;
    if (v->proofs == v->capacity) {
        size_t capacity = v->capacity * 2 + 64;
        attn_proof **grown = realloc(v->proof, capacity * sizeof(attn_proof *));
        if (!grown)
            return attn_fail_nomem(err);
        v->proof = grown;
        v->capacity = capacity;
    }
    attn_proof *made = calloc(1, sizeof *made);
    if (!made)
        return attn_fail_nomem(err);
    made->hash = attn_problem_hash(problem);
    attn_status st = attn_inputs_make(problem, spec, &made->inputs, err);
    if (st == ATTN_OK)
        st = attn_reference_make(&made->inputs, seconds * ATTN_REFERENCE_RATE, v->seed,
                                 &made->reference, err);
    if (st == ATTN_OK)
        st = attn_inputs_upload(&made->inputs, v->rig.backend, v->rig.device, err);
    if (st == ATTN_OK)
        st = judge_proof(v, made, err);
    if (st != ATTN_OK) {
        proof_free(made);
        return st;
    }
    v->proof[v->proofs++] = *proof = made;
    return ATTN_OK;
}

/* Where the problem is large, one of its (batch, kv head) groups; else the problem. */
static attn_problem part_of(const attn_problem *p) {
    attn_problem part = *p;
    if (work_of(p) > LARGE && p->heads_kv > 0) {
        part.heads_q = p->heads_q / p->heads_kv;
        part.heads_kv = part.batch = 1;
    }
    return part;
}

/* The proof of one kind on the problem itself; launch may be NULL, that of any variant. */
static attn_status main_proof(attn_verifier *v, attn_input_kind kind, const attn_launch *launch,
                              attn_proof **proof, attn_error *err) {
    attn_problem problem = kind == ATTN_INPUT_STD1 ? v->problem : part_of(&v->problem);
    attn_input_spec spec = {kind, ATTN_STRIDES_LAYOUT, NAN, v->seed + (uint64_t)kind};
    if (launch && attn_limits_broken(launch, &problem))
        problem = v->problem;
    double share = kind == ATTN_INPUT_STD1 ? SHARE_FULL : SHARE_OTHER;
    return proof_get(v, &problem, &spec, share * v->seconds, proof, err);
}

attn_status attn_verifier_create(const attn_backend *backend, attn_backend_device *device,
                                 const attn_problem *problem, uint64_t seed, double seconds,
                                 attn_verifier **verifier, attn_error *err) {
    attn_verifier *v = calloc(1, sizeof *v);
    attn_proof *proof;
    *verifier = NULL;
    if (!v)
        return attn_fail_nomem(err);
    v->problem = *problem;
    v->seed = seed;
    v->seconds = seconds;
    v->rig.backend = backend;
    v->rig.device = device;
    attn_status st = ATTN_OK;
    for (int kind = ATTN_INPUT_STD1; st == ATTN_OK && kind <= ATTN_INPUT_PEAKED; kind++)
        st = main_proof(v, (attn_input_kind)kind, NULL, &proof, err);
    if (st == ATTN_OK)
        *verifier = v;
    else
        attn_verifier_destroy(v);
    return st;
}

void attn_verifier_destroy(attn_verifier *v) {
    if (!v)
        return;
    for (size_t i = 0; i < v->proofs; i++)
        proof_free(v->proof[i]);
    free(v->proof);
    attn_rig_free(&v->rig);
    free(v);
}

const attn_inputs *attn_verifier_inputs(const attn_verifier *v) {
    return &v->proof[0]->inputs;
}

static attn_status admits(const attn_verifier *v, const attn_launch *launch, attn_error *err) {
    const attn_limit *limit = attn_limits_broken(launch, &v->problem);
    attn_str text = ATTN_STR_INIT;
    if (!limit)
        return attn_launch_fits(launch, &v->problem, err);
    attn_limit_explain(limit, &v->problem, &text);
    attn_status st = attn_fail(err, ATTN_ERR_INVALID, "%s", attn_str_text(&text));
    attn_str_free(&text);
    return st;
}

static attn_status check_hostile(attn_verifier *v, attn_kernel *kernel, const attn_launch *launch,
                                 attn_verdict *verdict, attn_error *err) {
    attn_hostile list[ATTN_HOSTILE_MAX];
    size_t count = attn_hostile_list(&v->problem, launch, list);
    for (size_t i = 0; i < count && verdict->right; i++) {
        attn_proof *proof;
        ATTN_TRY(proof_get(v, &list[i].problem, &list[i].spec, INFINITY, &proof, err));
        if (attn_rig_fits(&v->rig, proof, kernel, launch))
            ATTN_TRY(attn_rig_prove(&v->rig, proof, kernel, launch, 1, verdict, err));
    }
    return ATTN_OK;
}

/* Beside finalists (more than two runs) another stream works on other inputs, if there are any. */
static attn_status check_repeats(attn_verifier *v, attn_kernel *kernel, const attn_launch *launch,
                                 int32_t runs, attn_verdict *verdict, attn_error *err) {
    attn_proof *proof;
    ATTN_TRY(main_proof(v, ATTN_INPUT_STD1, launch, &proof, err));
    if (runs > 2) {
        attn_proof *other;
        ATTN_TRY(main_proof(v, ATTN_INPUT_STD8, launch, &other, err));
        ATTN_TRY(attn_rig_busy(&v->rig, other, err));
    }
    attn_status st = attn_rig_prove(&v->rig, proof, kernel, launch, runs, verdict, err);
    attn_rig_idle(&v->rig);
    return st;
}

attn_status attn_verifier_check(attn_verifier *v, attn_kernel *kernel, const attn_launch *launch,
                                int32_t runs, attn_verdict *verdict, attn_error *err) {
    attn_verdict begun = ATTN_VERDICT_INIT;
    *verdict = begun;
    ATTN_TRY(admits(v, launch, err));
    ATTN_TRY(check_hostile(v, kernel, launch, verdict, err));
    if (verdict->right) {
        *verdict = begun; /* the problem's own errors are what is recorded */
        ATTN_TRY(check_repeats(v, kernel, launch, runs, verdict, err));
    }
    for (int kind = ATTN_INPUT_STD8; verdict->right && kind <= ATTN_INPUT_PEAKED; kind++) {
        attn_proof *proof;
        ATTN_TRY(main_proof(v, (attn_input_kind)kind, launch, &proof, err));
        ATTN_TRY(attn_rig_prove(&v->rig, proof, kernel, launch, 1, verdict, err));
    }
    return ATTN_OK;
}

attn_status attn_verifier_repeat(attn_verifier *v, attn_kernel *kernel, const attn_launch *launch,
                                 int32_t runs, attn_verdict *verdict, attn_error *err) {
    attn_verdict begun = ATTN_VERDICT_INIT;
    *verdict = begun;
    ATTN_TRY(admits(v, launch, err));
    return check_repeats(v, kernel, launch, runs, verdict, err);
}

/* context.h: what the runtime library keeps, and how its files share it.
 *
 *     context.c     open, close, devices, last error
 *     kernels.c     the kernels that are loaded, by build; made from a stored binary or compiled
 *     candidates.c  what could run a class of problems: rows of the databases, defaults, reference
 *     choose.c      which candidate a problem gets (a pure function)
 *     table.c       the published table of classes, and its slow path
 *     run.c         attn_run and what belongs to it; plan.c: plans; measure.c: MEASURE; record.c
 *
 * Hot path: run.c reads a device's table through one atomic pointer, looks the class up and
 * chooses. Everything else happens under ctx->lock, on the slow path of a class not met before. */
#ifndef ATTN_CONTEXT_H
#define ATTN_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend.h"
#include "core/variant.h"
#include "db.h"
#include "gen.h"

/* A loaded kernel with what a call needs to know of it. Lives until the context closes. */
typedef struct attn_loaded {
    struct attn_loaded *next;
    attn_hash build; /* zero for the reference */
    attn_kernel *kernel;
    attn_launch launch;
} attn_loaded;

/* The fields of a problem that its class consists of, packed for comparison. */
typedef struct attn_class_key {
    int32_t head_dim;
    int32_t head_dim_v;
    uint32_t features;
    uint8_t op, dtype, mask, alignment;
} attn_class_key;

/* One way to run problems of a class. */
typedef struct attn_candidate {
    attn_loaded *loaded;  /* NULL, in a lean class: stored, but without a binary */
    attn_origin exact;    /* its origin for the very problem it was tuned on */
    attn_origin near;     /* ... and for others within the distance limit */
    attn_problem problem; /* it was tuned on; unused for defaults and the reference */
    double log_size[3];   /* log2 of its seq_q, seq_kv, batch x heads_q; of the default's */
    double penalty;       /* stale, hot, other thread counts; of a default, its family's rank:
                             compared before distance */
    char *family;
    char *config;
    char stale[128];
    double expected_ns;
} attn_candidate;

typedef struct attn_class {
    attn_class_key key;
    attn_effort effort; /* it was made with */
    bool lean;          /* loaded is only what is stored with its binary: no compiler was asked */
    size_t count;
    attn_candidate candidate[]; /* in order of preference among equals */
} attn_class;

/* Immutable once published; older tables are kept until the context closes. */
typedef struct attn_table {
    struct attn_table *older;
    size_t count;
    const attn_class *entry[];
} attn_table;

typedef struct attn_runtime_device {
    attn_device id;
    const attn_backend *backend;
    attn_backend_device *handle;
    attn_device_info info;
    char name[24];         /* "cpu", "cuda:0" */
    char description[160]; /* "Intel(R) Xeon(R) Processor (cpu:avx512)" */
    _Atomic(const attn_table *) table;
    attn_loaded *loaded;
    struct attn_wanted *wanted; /* by the class in the making: to be compiled; in order */
    double compile_seconds;     /* limit for each start of a compiler */
    attn_error hung; /* how one broke it, after which none is asked again; else ATTN_OK */
} attn_runtime_device;

struct attn_context {
    uint64_t serial;               /* tells contexts apart for attn_last_error */
    attn_options options;          /* texts are owned copies or NULL */
    char *user_path, *system_path; /* of the databases; NULL: none */
    pthread_mutex_t lock;          /* of everything below, and of all slow paths */
    attn_gen *gen;                 /* opened when first needed */
    attn_class **classes;          /* all ever made, for freeing */
    size_t class_count, class_capacity;
    struct attn_record *record; /* NULL unless ATTNTUNE_RECORD is set */
    int32_t device_count;
    attn_runtime_device *device;
};

/* context.c */
attn_status attn_report(attn_context *ctx, const attn_error *err); /* err->status; ATTN_OK clears */
void attn_warn(attn_context *ctx, const attn_error *err);
attn_runtime_device *attn_context_device(attn_context *ctx, attn_device id);
attn_status attn_context_gen(attn_context *ctx, attn_gen **gen, attn_error *err);

/* kernels.c; under ctx->lock */
attn_status attn_kernel_stored(attn_runtime_device *device, attn_db *db, const attn_db_row *row,
                               attn_loaded **loaded, attn_error *err);
/* May take out of the variant what a compiler needs. The kernel is taken for granted until its
 * build has failed: *loaded is there, with its launch record, but is to be compiled. */
attn_status attn_kernel_rendered(attn_runtime_device *device, attn_variant *variant,
                                 attn_loaded **loaded, attn_str *toolchain, attn_error *err);
/* Compiles what is wanted, so many at once (what fails so, once more alone), and loads it. False:
 * not all; what was given for the rest is gone, and is to be asked for again, where it is still
 * wanted. What has failed is known until attn_kernels_forget. */
bool attn_kernels_compile(attn_runtime_device *device, int32_t threads);
void attn_kernels_forget(attn_runtime_device *device);
attn_status attn_kernel_reference(attn_runtime_device *device, attn_loaded **loaded,
                                  attn_error *err);
void attn_kernels_close(attn_runtime_device *device);

/* candidates.c; under ctx->lock. *entry holds at least one candidate, or the error says why there
 * is none. Candidates that cannot be loaded are left out, with a warning. whole: all candidates;
 * else only those that are stored with their binaries, if the best stored is among them. */
attn_status attn_class_make(attn_context *ctx, attn_runtime_device *device,
                            const attn_problem *problem, attn_effort effort, bool whole,
                            attn_class **entry, attn_error *err);
void attn_class_free(attn_class *entry);

/* choose.c. What a problem gets of a class. */
typedef struct attn_pick {
    const attn_candidate *candidate; /* NULL: nothing may run the problem */
    attn_origin origin;
    double distance;
    bool serves; /* gathering the whole class would give nothing better */
} attn_pick;

/* entry NULL: nothing, which does not serve. In a lean class the candidate may be one that is not
 * loaded; that does not serve either. */
attn_pick attn_class_pick(const attn_class *entry, const attn_problem *problem);
/* The best of what is loaded and takes tensors as they lie, wanting no tensor maps; or NULL. */
const attn_candidate *attn_class_any_strides(const attn_class *entry, const attn_problem *problem);
void attn_candidate_sizes(const attn_problem *problem, double log_size[3]);
void attn_choice_fill(const attn_pick *pick, attn_choice *choice);

/* table.c */
attn_class_key attn_class_key_of(const attn_problem *problem);
const attn_class *attn_table_find(const attn_table *table, attn_class_key key);
/* What a class is to be, at least. */
typedef enum attn_class_need {
    ATTN_CLASS_SERVES, /* the problem */
    ATTN_CLASS_WHOLE,
    ATTN_CLASS_ANEW /* whole, and made now */
} attn_class_need;

/* The class of the problem at the context's effort, made and published if what is there does not
 * meet the need. */
attn_status attn_table_class(attn_context *ctx, attn_runtime_device *device,
                             const attn_problem *problem, attn_class_need need,
                             const attn_class **entry, attn_error *err);

/* run.c. A choice is a kernel, and the one that takes over where the first cannot address the
 * tensors' strides: the same one unless it wants tensor maps; NULL if there is none. */
typedef struct attn_chosen {
    const attn_loaded *loaded, *any_strides;
} attn_chosen;

size_t attn_chosen_workspace(const attn_chosen *chosen, const attn_runtime_device *device,
                             const attn_problem *problem);
attn_status attn_chosen_run(const attn_chosen *chosen, const attn_runtime_device *device,
                            const attn_problem *problem, const attn_forward_tensors *tensors,
                            void *ws, size_t ws_bytes, void *stream, attn_error *err);

/* The kernels of a pick of the class that serves, or of a whole class; checks that the launch fits:
 * ERR_NO_KERNEL, ERR_UNSUPPORTED. */
attn_status attn_pick_kernels(const attn_class *entry, const attn_problem *problem,
                              const attn_pick *pick, attn_chosen *chosen, attn_error *err);
bool attn_problem_is_empty(const attn_problem *problem); /* O has no elements */

/* measure.c: runs the tool on one problem and waits. */
attn_status attn_measure(attn_context *ctx, const attn_runtime_device *device,
                         const attn_problem *problem, attn_error *err);

/* record.c: ATTNTUNE_RECORD. add takes its own lock. */
struct attn_record *attn_record_open(const char *path, attn_error *err);
void attn_record_add(struct attn_record *record, const attn_problem *problem);
void attn_record_close(struct attn_record *record);

#endif

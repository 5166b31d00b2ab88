/* attntune.h: run the attention kernel that was measured fastest for this shape on this machine.
 *
 * attntune (the program) tunes kernels and stores what it measured in an SQLite file. This library
 * reads that file: for each problem it picks the winner, or the nearest one whose limits the
 * problem meets, or a default, and runs it. It never measures while running.
 *
 *     attn_context *ctx;
 *     attn_problem problem;
 *     attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
 *     attn_status st = attn_open(NULL, &ctx);
 *     if (st == ATTN_OK)
 *         st = attn_problem_parse("fwd:f32:b1:h8:s1024:d64:causal", &problem, NULL, 0);
 *     ...set t.q, t.k, t.v, t.o and their strides; ws_bytes from attn_workspace_size()...
 *     if (st == ATTN_OK)
 *         st = attn_run(ctx, &problem, ATTN_DEVICE_CPU, &t, ws, ws_bytes, NULL);
 *     if (st != ATTN_OK)
 *         fprintf(stderr, "%s\n", attn_last_error(ctx));
 *     attn_close(ctx);
 *
 * Every function may be called from any thread unless it says otherwise. Functions that return
 * attn_status return ATTN_OK or a code below; the text beside it is in attn_last_error().
 * Pointers must not be NULL unless it says so beside them; where attn_status is returned, NULL is
 * ERR_INVALID (attn_last_error(NULL) where it was the context or the plan). Destroy functions
 * accept NULL. Structs that begin with `size` must have it set to their sizeof, which the *_INIT
 * macros do, so that later versions can add fields; any other size is ERR_INVALID.
 */
#ifndef ATTNTUNE_H
#define ATTNTUNE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ATTN_API __attribute__((visibility("default")))
#else
#define ATTN_API
#endif

#define ATTN_VERSION_MAJOR 0
#define ATTN_VERSION_MINOR 1
#define ATTN_VERSION_PATCH 0

/*-****************************************************************
 *  Status codes
 ******************************************************************/

/* Numbers are stable: new codes are added at the end. */
#define ATTN_STATUS_MAP(XX)                                                                        \
    XX(OK, 0, "success")                                                                           \
    XX(ERR_INVALID, 1, "an argument is invalid")                                                   \
    XX(ERR_NOMEM, 2, "out of host memory")                                                         \
    XX(ERR_NO_DEVICE, 3, "no such device")                                                         \
    XX(ERR_DEVICE, 4, "the device differs from the plan's, or failed and is lost")                 \
    XX(ERR_NO_KERNEL, 5, "no kernel for this problem at this effort")                              \
    XX(ERR_NOT_ACCEPTED, 6, "no family accepts this problem")                                      \
    XX(ERR_ALIGNMENT, 7, "tensors break the problem's alignment; ask with a1")                     \
    XX(ERR_WORKSPACE, 8, "the workspace is missing, too small or not 256-byte aligned")            \
    XX(ERR_COMPILE, 9, "a kernel did not compile")                                                 \
    XX(ERR_LOAD, 10, "a compiled kernel could not be loaded, or is not the one asked for")         \
    XX(ERR_LAUNCH, 11, "a kernel could not be launched")                                           \
    XX(ERR_CAPTURING, 12, "not possible while the stream is being captured")                       \
    XX(ERR_FORKED, 13, "CUDA cannot be used in the child of a fork")                               \
    XX(ERR_NO_TOOL, 14, "a program that is needed was not found")                                  \
    XX(ERR_IO, 15, "a file could not be read or written")                                          \
    XX(ERR_DB, 16, "the database cannot be used")                                                  \
    XX(ERR_DB_NEWER, 17, "the database was written by a newer attntune")                           \
    XX(ERR_DB_FOREIGN, 18, "the file is not an attntune database")                                 \
    XX(ERR_DB_UNSAFE, 19, "the database could be changed by other users")                          \
    XX(ERR_TEMPLATE, 20, "a template or a space file has an error")                                \
    XX(ERR_TIMEOUT, 21, "the time allowed has passed")                                             \
    XX(ERR_UNSUPPORTED, 22, "not supported by this backend or build")                              \
    XX(ERR_NOT_FOUND, 23, "not found")                                                             \
    XX(ERR_INTERNAL, 24, "a fault in attntune itself")

typedef enum attn_status {
#define XX(name, number, text) ATTN_##name = number,
    ATTN_STATUS_MAP(XX)
#undef XX
} attn_status;

/* "ATTN_ERR_ALIGNMENT" and "tensors break ..."; for an unknown number "ATTN_ERR_?" and "unknown
 * status". Static storage. */
ATTN_API const char *attn_status_name(attn_status status);
ATTN_API const char *attn_status_text(attn_status status);

/* "0.1.0", of the library that is linked. Static storage. */
ATTN_API const char *attn_version(void);

/*-****************************************************************
 *  Problems
 ******************************************************************/

typedef enum attn_op { ATTN_OP_FORWARD } attn_op;

/* Of q, k, v and o; sums are kept in float32. ATTN_TF32: they are floats, of which products may
 * take 11 bits, as exact as f16; who asks for ATTN_F32 never gets that. */
typedef enum attn_dtype { ATTN_F32, ATTN_F16, ATTN_BF16, ATTN_TF32 } attn_dtype;

/* Query i sees key j: causal iff j <= i + seq_kv - seq_q (bottom-right aligned, as flash-attn);
 * causal_tl iff j <= i (top-left, as PyTorch's is_causal); window iff
 * -left <= j - (i + seq_kv - seq_q) <= right, a side of -1 being unbounded. */
typedef enum attn_mask {
    ATTN_MASK_NONE,
    ATTN_MASK_CAUSAL,
    ATTN_MASK_CAUSAL_TL,
    ATTN_MASK_WINDOW
} attn_mask;

/* How tuning lays tensors out; strides are free at run time. bhsd: [batch][head][row][dim];
 * bshd: [batch][row][head][dim]; qkv: bshd with q, k and v side by side in one buffer. */
typedef enum attn_layout { ATTN_BHSD, ATTN_BSHD, ATTN_QKV } attn_layout;

/* a16: all bases and strides (of dimensions larger than 1) are multiples of 16 bytes. a1: any. */
typedef enum attn_alignment { ATTN_A16, ATTN_A1 } attn_alignment;

enum { ATTN_FEATURE_LSE = 1u << 0 };

/* What is to be computed. Plain data; zero batch, heads or lengths are legal and do nothing (or,
 * with seq_kv 0, write O = 0 and LSE = -inf). heads_q is a multiple of heads_kv; lengths are at
 * most 2^28; head_dim and head_dim_v are 1..1024. window_left and window_right are -1 (unbounded)
 * or a count of keys, and 0 unless mask is window. */
typedef struct attn_problem {
    attn_op op;
    attn_dtype dtype;
    int32_t batch;
    int32_t heads_q;
    int32_t heads_kv;
    int32_t seq_q;
    int32_t seq_kv;
    int32_t head_dim;   /* of q and k */
    int32_t head_dim_v; /* of v and o */
    attn_mask mask;
    int32_t window_left;
    int32_t window_right;
    uint32_t features; /* ATTN_FEATURE_... */
    attn_layout layout;
    attn_alignment alignment;
} attn_problem;

enum { ATTN_PROBLEM_TEXT = 192 }; /* bytes that any printed problem fits into, NUL included */

/* Reads
 *   fwd:DTYPE:bN:(hN | hqN:hkvN):(sN | sqN:skN):dN[:dvN][:causal|:causal_tl|:windowL,R][:lse]
 *   [:bshd|:qkv][:a1]
 * in any order after `fwd`. Leaves *problem alone and writes one line that names the fault and the
 * nearest right form into error (may be NULL with size 0) on ATTN_ERR_INVALID. */
ATTN_API attn_status attn_problem_parse(const char *text, attn_problem *problem, char *error,
                                        size_t error_size);

/* Writes the canonical text, defaults left out, as snprintf does; parse(print(p)) == p for every
 * valid problem. Returns the length without the NUL. */
ATTN_API size_t attn_problem_print(const attn_problem *problem, char *text, size_t size);

/* ATTN_OK, or ATTN_ERR_INVALID with one line in error. */
ATTN_API attn_status attn_problem_check(const attn_problem *problem, char *error,
                                        size_t error_size);

/*-****************************************************************
 *  Contexts and devices
 ******************************************************************/

typedef struct attn_context attn_context;
typedef struct attn_plan attn_plan;

typedef enum attn_backend_id {
    ATTN_BACKEND_CPU,
    ATTN_BACKEND_CUDA,
    ATTN_BACKEND_FAKE
} attn_backend_id;

typedef struct attn_device {
    attn_backend_id backend;
    int32_t ordinal; /* cuda:N; 0 for the CPU */
} attn_device;

#ifdef __cplusplus
#define ATTN_DEVICE_CPU (attn_device{ATTN_BACKEND_CPU, 0})
#define ATTN_DEVICE_CUDA(n) (attn_device{ATTN_BACKEND_CUDA, (n)})
#else
#define ATTN_DEVICE_CPU ((attn_device){ATTN_BACKEND_CPU, 0})
#define ATTN_DEVICE_CUDA(n) ((attn_device){ATTN_BACKEND_CUDA, (n)})
#endif

/* How hard planning may work. CACHED: only what the databases hold. ESTIMATE: also a near winner
 * or a family's defaults, for the problem that a class begins with and for typical sizes, rendered
 * and compiled once, as many kernels at a time as the context has CPU threads: on CUDA in this
 * process, on the CPU by the machine's C compiler, which is stopped should it take over a minute,
 * and then not asked again by the context: the classes to come do with what is stored, or the
 * reference. MEASURE (plans only): starts the installed `attntune tune` within a budget, waits, and
 * reads its result. */
typedef enum attn_effort { ATTN_CACHED, ATTN_ESTIMATE, ATTN_MEASURE } attn_effort;

typedef struct attn_options {
    size_t size;             /* sizeof(attn_options) */
    const char *db_path;     /* NULL: ATTNTUNE_DB, else $XDG_CACHE_HOME/attntune/attntune.db */
    const char *system_db;   /* NULL: ATTNTUNE_SYSTEM_DB, else the installed share/attntune file */
    const char *family_path; /* NULL: ATTNTUNE_PATH; a folder of spaces and templates you trust */
    const char *tool_path;   /* NULL: the installed attntune program, for MEASURE */
    attn_effort effort;      /* what attn_run and attn_workspace_size may do: CACHED or ESTIMATE */
    double measure_seconds;  /* budget of one MEASURE; 0: 20 s */
    int32_t threads;         /* CPU threads, and compilers, at most; 0: what affinity, cgroup and
                                OMP_NUM_THREADS allow */
} attn_options;

#define ATTN_OPTIONS_INIT                                                                          \
    { sizeof(attn_options), NULL, NULL, NULL, NULL, ATTN_ESTIMATE, 0.0, 0 }

/* Opens the databases and finds the devices. A database that cannot be used, or a file or folder
 * that was named (option or environment) and is missing, is not an error: the context goes on with
 * what is left, and attn_last_error() says what was wrong. options may be NULL. *context is NULL
 * unless ATTN_OK is returned. */
ATTN_API attn_status attn_open(const attn_options *options, attn_context **context);

/* No call on the context, and no plan made from it, may be running or used afterwards. */
ATTN_API void attn_close(attn_context *context);

/* The last failure (or warning) of the calling thread on this context, one or more lines, the
 * compiler's log included; "" if there was none. Valid until the thread's next call on it. */
ATTN_API const char *attn_last_error(attn_context *context);

/* Number of devices, and one of them: its handle, its name ("cpu", "cuda:0") and a description
 * (model, ISA or compute capability). The strings live as long as the context. index is below
 * attn_device_count(), else ATTN_ERR_NO_DEVICE. Any of the outputs may be NULL. */
ATTN_API int32_t attn_device_count(attn_context *context);
ATTN_API attn_status attn_device_get(attn_context *context, int32_t index, attn_device *device,
                                     const char **name, const char **description);

/*-****************************************************************
 *  Running
 ******************************************************************/

/* Tensors of a forward problem. Strides are in elements, in the order batch, head, row; the last
 * dimension is contiguous. Strides of dimensions of size 1 are ignored; a stride of 0 repeats (q,
 * k, v only), none is negative. The library keeps no pointer after the call; on CUDA they are read
 * when the stream gets there.
 *
 * What is written overlaps nothing else. Rows of o lie apart: taken from the smallest stride to the
 * largest, each steps over all that the smaller ones reach (every order of batch, head and row
 * does, with gaps or without). o, lse and the workspace share no byte with each other, nor with q,
 * k and v; that o lies in gaps of the others, as a slice of the same buffer, is fine. ERR_INVALID
 * where this is seen to be broken: the same address, or a tensor without gaps in which another
 * begins or ends.
 *
 * Sums are float. On the CPU, O is right all the same for any finite v and scale (q and k up to
 * 1e17); numbers below 1.2e-38 may count as 0. On CUDA it may be infinite or NaN where |v| times
 * the number of keys, or 1.45 |scale q.k|, passes the largest float, 3.4e38. */
typedef struct attn_forward_tensors {
    size_t size;   /* sizeof(attn_forward_tensors) */
    float scale;   /* of the logits, any finite number; NaN: 1/sqrt(head_dim) */
    const void *q; /* [batch][heads_q][seq_q][head_dim] */
    const void *k; /* [batch][heads_kv][seq_kv][head_dim] */
    const void *v; /* [batch][heads_kv][seq_kv][head_dim_v] */
    void *o;       /* [batch][heads_q][seq_q][head_dim_v] */
    float *lse;    /* [batch][heads_q][seq_q] contiguous, natural log; with the lse feature only */
    int64_t q_stride[3];
    int64_t k_stride[3];
    int64_t v_stride[3];
    int64_t o_stride[3];
} attn_forward_tensors;

#ifdef __cplusplus
#define ATTN_FORWARD_TENSORS_INIT                                                                  \
    {                                                                                              \
        sizeof(attn_forward_tensors), NAN, NULL, NULL, NULL, NULL, NULL, {}, {}, {}, {}            \
    }
#else
#define ATTN_FORWARD_TENSORS_INIT                                                                  \
    { .size = sizeof(attn_forward_tensors), .scale = NAN }
#endif

/* Sets the strides of q, k, v and o for tensors without gaps in the problem's layout (qkv: rows of
 * heads_q*d + heads_kv*d + heads_kv*dv elements, whose parts the caller points q, k, v into). For
 * alignment a16 the d and dv of each row are rounded up to whole 16 bytes, so where they are not
 * such a multiple a tensor takes more memory than its elements: batch * stride[0] elements. */
ATTN_API void attn_forward_strides(const attn_problem *problem, attn_forward_tensors *tensors);

/* Runs the problem with the best kernel known. The choice for a class of problems is made once,
 * from a table published whole; after that, choosing takes no lock, allocation or plan object.
 * ws: attn_workspace_size() bytes, 256-byte aligned, any content, one per call in flight; may be
 * NULL if that size is 0.
 * stream: a CUstream on CUDA (the call returns before the work is done), NULL on the CPU (where it
 * returns when O is written; else ERR_INVALID).
 * @return ERR_INVALID (problem, tensors), ERR_NO_DEVICE, ERR_ALIGNMENT, ERR_WORKSPACE,
 *         ERR_NO_KERNEL, ERR_COMPILE, ERR_LOAD, ERR_LAUNCH, ERR_CAPTURING, ERR_FORKED, ERR_NOMEM.
 */
ATTN_API attn_status attn_run(attn_context *context, const attn_problem *problem,
                              attn_device device, const attn_forward_tensors *tensors, void *ws,
                              size_t ws_bytes, void *stream);

/* Bytes of workspace attn_run wants for the problem; makes the choice if it is not made yet. 0 on
 * an error too, which attn_last_error() then names and attn_run will return. */
ATTN_API size_t attn_workspace_size(attn_context *context, const attn_problem *problem,
                                    attn_device device);

/*-****************************************************************
 *  Plans: for fixed shapes, and for MEASURE
 ******************************************************************/

/* Finds, loads and keeps the kernel for exactly this problem. */
ATTN_API attn_status attn_plan_create(attn_context *context, const attn_problem *problem,
                                      attn_device device, attn_effort effort, attn_plan **plan);
ATTN_API void attn_plan_destroy(attn_plan *plan);

/* Bytes of workspace each attn_forward call needs (see attn_run for its rules). */
ATTN_API size_t attn_plan_workspace(const attn_plan *plan);

/* Runs the plan; any number of threads at once, each with its own workspace. */
ATTN_API attn_status attn_forward(const attn_plan *plan, const attn_forward_tensors *tensors,
                                  void *ws, size_t ws_bytes, void *stream);

/* Where a choice came from, best first. */
typedef enum attn_origin {
    ATTN_ORIGIN_USER,        /* tuned here, this very problem */
    ATTN_ORIGIN_SYSTEM,      /* shipped result for this device and problem */
    ATTN_ORIGIN_USER_NEAR,   /* tuned here, a near problem of the class */
    ATTN_ORIGIN_SYSTEM_NEAR, /* shipped, a near problem of the class */
    ATTN_ORIGIN_ARCH,        /* tuned on another device of the same architecture */
    ATTN_ORIGIN_DEFAULT,     /* a family's default configuration */
    ATTN_ORIGIN_REFERENCE    /* the plain reference kernel */
} attn_origin;

/* Static storage: "user", "system", "user-near", "system-near", "arch", "default", "reference". */
ATTN_API const char *attn_origin_name(attn_origin origin);

typedef struct attn_choice {
    size_t size;              /* sizeof(attn_choice) */
    char family[64];          /* "cpu/simd_forward" */
    char configuration[1024]; /* "NV=4 MR=4 ...", every parameter */
    attn_origin origin;
    double distance;    /* max |log2 ratio| to the tuned problem; 0 when exact */
    char stale[128];    /* why the row is stale, "" if it is fresh */
    double expected_ns; /* measured time of the tuned problem; NaN if never measured */
} attn_choice;

#ifdef __cplusplus
#define ATTN_CHOICE_INIT                                                                           \
    { sizeof(attn_choice), "", "", ATTN_ORIGIN_REFERENCE, 0.0, "", NAN }
#else
#define ATTN_CHOICE_INIT                                                                           \
    { .size = sizeof(attn_choice) }
#endif

/* What attn_run would run for the problem now (making the choice if it is not made yet), and what
 * a plan runs. */
ATTN_API attn_status attn_choice_get(attn_context *context, const attn_problem *problem,
                                     attn_device device, attn_choice *choice);
ATTN_API void attn_plan_choice(const attn_plan *plan, attn_choice *choice);

#ifdef __cplusplus
}
#endif
#endif

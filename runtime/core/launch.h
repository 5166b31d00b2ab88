/* launch.h: the launch record and the limits of a variant, as data.
 *
 * A space file's `launch` and `limits` are turned into the text form by the generator; the
 * database stores that text; the runtime and the tuner parse it. So running needs no Lua, and
 * there is one description of it, here.
 *
 *     step symbol=KERNEL threads=128 smem=0 cluster=1 grid=tiles rows=64 packed=0 order=row
 *          deal=dynamic blocks_per_sm=1 spare=0 pdl=0                 (on one line; 1..3 steps)
 *     workspace bytes=4096 per=worker round=64                                 (0..4)
 *     splits 1
 *     zero_bytes 0
 *     tensor_map tensor=q rank=4 rows=64 swizzle=128                           (0..4)
 *     limit field=seq_kv min=1 max=1024 multiple_of=1                          (0..16; max=-: none)
 */
#ifndef ATTN_LAUNCH_H
#define ATTN_LAUNCH_H

#include <stdbool.h>

#include "attn_abi.h"
#include "core/error.h"
#include "core/problem.h"
#include "core/str.h"

enum { ATTN_STEPS_MAX = 3, ATTN_LIMITS_MAX = 16, ATTN_SYMBOL_MAX = 48 };

/* How a step's tasks or blocks are counted; see attn_abi.h for their numbering. */
typedef enum attn_grid {
    ATTN_GRID_TILES,
    ATTN_GRID_KV_TILES,
    ATTN_GRID_SPLIT,
    ATTN_GRID_PERSISTENT
} attn_grid;

/* In which order the CPU pool deals the tasks of a step (a CUDA kernel does this itself).
 * LONGEST_FIRST: the last tile of every head first, which for causal masks is the longest. */
typedef enum attn_order { ATTN_ORDER_ROW, ATTN_ORDER_LONGEST_FIRST } attn_order;

/* CPU: tasks are dealt from one counter, or each worker gets an equal run of them. */
typedef enum attn_deal { ATTN_DEAL_DYNAMIC, ATTN_DEAL_STATIC } attn_deal;

typedef struct attn_step {
    char symbol[ATTN_SYMBOL_MAX];
    int32_t threads; /* CUDA: of a block */
    int32_t smem;    /* CUDA: dynamic shared memory, bytes */
    int32_t cluster; /* CUDA: blocks a cluster */
    attn_grid grid;
    int32_t rows; /* rows of a tile */
    bool packed;  /* the rows of a GQA group's heads are folded into one tile */
    attn_order order;
    attn_deal deal;
    int32_t blocks_per_sm; /* persistent */
    int32_t spare;         /* persistent: SMs x blocks_per_sm - spare blocks at most */
    bool pdl;              /* CUDA: programmatic dependent launch after the step before */
} attn_step;

/* What a workspace term's bytes are multiplied by. */
typedef enum attn_per {
    ATTN_PER_CALL,
    ATTN_PER_WORKER,  /* CPU threads (CUDA: not used) */
    ATTN_PER_KV_HEAD, /* batch x heads_kv */
    ATTN_PER_HEAD,    /* batch x heads_q */
    ATTN_PER_ROW,     /* batch x heads_q x seq_q x splits */
    ATTN_PER_KEY      /* batch x heads_kv x seq_kv, the length rounded up to `round` */
} attn_per;

typedef struct attn_workspace_term {
    int64_t bytes;
    attn_per per;
    int32_t round; /* ATTN_PER_KEY: rows of the tiles that write the term */
} attn_workspace_term;

typedef struct attn_map_wanted {
    char tensor; /* q, k, v or o */
    int32_t rank;
    int32_t rows; /* of a box */
    int32_t swizzle;
} attn_map_wanted;

/* The shape must have min <= field <= max and field % multiple_of == 0; rows of one field are
 * intersected. An unbounded window side is -1. */
typedef struct attn_limit {
    attn_field field;
    int64_t min;
    int64_t max;
    int64_t multiple_of;
} attn_limit;

typedef struct attn_launch {
    int32_t steps;
    int32_t terms;
    int32_t maps;
    int32_t limits;
    int32_t splits;
    int64_t zero_bytes; /* of term 0, which is then per=call; run clears them first */
    attn_step step[ATTN_STEPS_MAX];
    attn_workspace_term term[ATTN_WORKSPACE_TERMS];
    attn_map_wanted map[ATTN_TENSOR_MAPS];
    attn_limit limit[ATTN_LIMITS_MAX];
} attn_launch;

attn_status attn_launch_parse(const char *text, attn_launch *launch, attn_error *err);
void attn_launch_print(const attn_launch *launch, attn_str *out); /* canonical, parses back */

/* NULL if the shape is within the limits, else the first row that it breaks. */
const attn_limit *attn_limits_broken(const attn_launch *launch, const attn_problem *problem);

/* "seq_kv is 1000, but this variant takes multiples of 64 from 64 to 4096" */
void attn_limit_explain(const attn_limit *limit, const attn_problem *problem, attn_str *out);

/* Tiles of one (batch, head), and tasks of the whole step (0 if there is nothing to do). tasks may
 * exceed 32 bits only for shapes that attn_launch_fits refuses. */
int64_t attn_step_tiles(const attn_step *step, const attn_problem *problem);
int64_t attn_step_tasks(const attn_step *step, const attn_launch *launch,
                        const attn_problem *problem);

/* The task that comes n-th in the step's order. */
int64_t attn_step_task_at(const attn_step *step, int64_t n, int64_t tiles, int64_t tasks);

/* Bytes of workspace for the shape with that many workers; every term starts 256-byte aligned. */
size_t attn_workspace_bytes(const attn_launch *launch, const attn_problem *problem,
                            int32_t workers);

/* Points args->workspace[] into ws, and sets splits and workers. */
void attn_workspace_assign(const attn_launch *launch, const attn_problem *problem, int32_t workers,
                           void *ws, attn_forward_args *args);

/* Task counts and packed rows fit an int, and the workspace a size_t: ATTN_OK or
 * ATTN_ERR_UNSUPPORTED. */
attn_status attn_launch_fits(const attn_launch *launch, const attn_problem *problem,
                             attn_error *err);

#endif

/* attn_cpu_task.h: which query rows a task is for, in kernels whose tasks are tiles of rows.
 *
 * Include it behind attn_cpu.h.
 */
#ifndef ATTN_CPU_TASK_H
#define ATTN_CPU_TASK_H

struct attn_task {
    const attn_forward_args *a;
    int64_t batch, head, kv_head; /* head: the first of a packed task's heads */
    int64_t row, rows;            /* first row of the task; rows of the head, or packed heads */
};

/* packed: its rows are those of all heads that share K and V. task_rows: of a task. */
ATTN_INLINE struct attn_task attn_task_of(const attn_forward_args *a, int task, int packed,
                                          int32_t task_rows) {
    const int32_t share = packed ? a->group : 1;
    const int32_t heads = a->heads_q / share, index = task / a->tiles;
    const int32_t head = index % heads * share;
    return (struct attn_task){.a = a,
                              .batch = index / heads,
                              .head = head,
                              .kv_head = head / a->group,
                              .row = (int64_t)(task % a->tiles) * task_rows,
                              .rows = (int64_t)a->seq_q * share};
}

#endif

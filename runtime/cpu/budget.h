/* budget.h: how many threads this process should use. */
#ifndef ATTN_BUDGET_H
#define ATTN_BUDGET_H

#include <stdint.h>

/* min(CPUs of the affinity mask, CPU quota of the control group, OMP_NUM_THREADS, option), at
 * least 1; option 0: no limit of its own. */
int32_t attn_cpu_budget(int32_t option);

/* The quota in whole CPUs, INT32_MAX if there is none, read from root/proc/self/cgroup and
 * root/sys/fs/cgroup (root is "" but in tests), both versions of control groups. A quota of 2.5
 * gives 2: a third thread would be stopped half of the time. */
int32_t attn_cgroup_cpus(const char *root);

#endif

/* toy_cost.c: what the fake device is told; nothing here is compiled. */
#include "attn_abi.h"

// FAKE cost_ns=2000 ns_per_mflop=$(COST) noise=0.002
int $(KERNEL)(const attn_forward_args *a, int task, int worker);

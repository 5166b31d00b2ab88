/* test_cpu_device.c: what the CPU backend says of the CPU: instruction sets, thread budget,
 * properties, rates. */
#include <errno.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "budget.h"
#include "check.h"
#include "core/str.h"
#include "fma.h"
#include "isa.h"

static const attn_backend *const cpu = &attn_backend_cpu;

/* Writes root/name, making its folders. */
static void put_file(const char *root, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    FILE *f = fopen(path, "w");
    if (CHECK(f != NULL)) {
        fputs(text, f);
        fclose(f);
    }
}

typedef struct cgroup_row {
    const char *name;
    int32_t cpus;         /* 0: no limit */
    const char *files[8]; /* name, text, ... */
} cgroup_row;

static const cgroup_row cgroup_rows[] = {
    {"no files at all", 0, {NULL}},
    {"own group",
     2,
     {"proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max", "200000 100000\n"}},
    {"a group above is tighter",
     3,
     {"proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max", "max 100000\n",
      "sys/fs/cgroup/a/cpu.max", "350000 100000\n"}},
    {"a container's own root",
     4,
     {"proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "400000 100000\n"}},
    {"less than one CPU",
     1,
     {"proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "50000 100000\n"}},
    {"no quota", 0, {"proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "max 100000\n"}},
    {"the group is named as on the host",
     5,
     {"proc/self/cgroup", "0::/host/name\n", "sys/fs/cgroup/cpu.max", "500000 100000\n"}},
    {"the group is outside of the namespace",
     6,
     {"proc/self/cgroup", "0::/../../x\n", "sys/fs/cgroup/cpu.max", "600000 100000\n"}},
    {"version 1",
     2,
     {"proc/self/cgroup", "5:memory:/m\n3:cpuacct,cpu:/j\n", "sys/fs/cgroup/cpu/j/cpu.cfs_quota_us",
      "250000\n", "sys/fs/cgroup/cpu/j/cpu.cfs_period_us", "100000\n"}},
    {"version 1 without quota",
     0,
     {"proc/self/cgroup", "3:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
    {"cpuset is not cpu",
     0,
     {"proc/self/cgroup", "3:cpuset:/\n", "sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "100000\n",
      "sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000\n"}},
    {"nonsense",
     0,
     {"proc/self/cgroup", "garbage\n0:\n::\n", "sys/fs/cgroup/cpu.max", "nothing here\n"}},
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void test_cgroup(void) {
    char folder[] = "/tmp/test-cpu-device-XXXXXX";
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    for (size_t i = 0; i < sizeof cgroup_rows / sizeof *cgroup_rows; i++) {
        const cgroup_row *row = &cgroup_rows[i];
        char root[64];
        snprintf(root, sizeof root, "%s/%zu", folder, i);
        mkdir(root, 0700);
        for (int f = 0; f < 8 && row->files[f]; f += 2)
            put_file(root, row->files[f], row->files[f + 1]);
        CHECK_CASE("%s", row->name);
        CHECK_EQ_INT(attn_cgroup_cpus(root), row->cpus ? row->cpus : INT32_MAX);
    }
    CHECK_CASE("%s", "");
    CHECK_EQ_INT(nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_budget(void) {
    cpu_set_t before, one;
    unsetenv("OMP_NUM_THREADS");
    int32_t all = attn_cpu_budget(0);
    CHECK(all >= 1);
    CHECK_EQ_INT(attn_cpu_budget(1), 1);
    CHECK_EQ_INT(attn_cpu_budget(1 << 30), all);
    setenv("OMP_NUM_THREADS", "1,2", 1);
    CHECK_EQ_INT(attn_cpu_budget(0), 1);
    static const char *const ignored[] = {"", "0", "-3", "many", "99999999999999"};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        setenv("OMP_NUM_THREADS", ignored[i], 1);
        CHECK_EQ_INT(attn_cpu_budget(0), all);
    }
    unsetenv("OMP_NUM_THREADS");
    CHECK_EQ_INT(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK_EQ_INT(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ_INT(attn_cpu_budget(0), 1);
    sched_setaffinity(0, sizeof before, &before);
}

static void test_isa_names(void) {
    attn_str text = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    uint32_t isa;
    attn_isa_print(ATTN_NEEDS_AMX, &text);
    CHECK(attn_isa_parse(text.data, &isa) && isa == ATTN_NEEDS_AMX);
    static const char *const wrong[] = {"", "+", "avx2+", "+avx2", "avx", "avx2 fma", "AVX2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!attn_isa_parse(wrong[i], &isa));
    CHECK_STR(attn_cpu_arch(0), "generic");
    CHECK_STR(attn_cpu_arch(ATTN_NEEDS_AVX2 | ATTN_ISA_AVX512F), "avx2");
    CHECK_STR(attn_cpu_arch(ATTN_NEEDS_AVX512 | ATTN_ISA_AMX_BF16), "avx512");
    CHECK_STR(attn_cpu_arch(ATTN_NEEDS_AMX), "avx512_amx");
    CHECK_STR(attn_cpu_arch(ATTN_NEEDS_NEON), "neon");
    CHECK_OK(attn_isa_limit(ATTN_NEEDS_AMX, "avx2", &isa, &err), err.line);
    CHECK_EQ_INT(isa, ATTN_NEEDS_AVX2);
    CHECK_OK(attn_isa_limit(ATTN_NEEDS_AVX2, "avx512", &isa, &err), err.line); /* never more */
    CHECK_EQ_INT(isa, ATTN_NEEDS_AVX2);
    CHECK_OK(attn_isa_limit(ATTN_NEEDS_AVX2, "", &isa, &err), err.line);
    CHECK_EQ_INT(isa, ATTN_NEEDS_AVX2);
    CHECK_STATUS(attn_isa_limit(ATTN_NEEDS_AVX2, "avx51", &isa, &err), ATTN_ERR_INVALID, err.line);
    CHECK_HAS(err.line, "say avx512");
    CHECK_STATUS(attn_isa_limit(ATTN_NEEDS_AVX2, "foo", &isa, &err), ATTN_ERR_INVALID, err.line);
    CHECK_HAS(err.line, "say avx2"); /* what it is, not what it is not */
    CHECK_STATUS(attn_isa_limit(ATTN_NEEDS_AVX2, "neon", &isa, &err), ATTN_ERR_INVALID, err.line);
    attn_str_free(&text);
}

/* /proc/cpuinfo lists what the kernel lets programs use: another source of the same facts. */
static void test_isa_agrees(void) {
    static const struct {
        const char *word;
        uint32_t isa;
    } rows[] = {
        {"avx2", ATTN_ISA_AVX2},
        {"fma", ATTN_ISA_FMA},
        {"f16c", ATTN_ISA_F16C},
        {"avx512f", ATTN_ISA_AVX512F},
        {"avx512bw", ATTN_ISA_AVX512BW},
        {"avx512dq", ATTN_ISA_AVX512DQ},
        {"avx512vl", ATTN_ISA_AVX512VL},
        {"avx512_vnni", ATTN_ISA_AVX512_VNNI},
        {"avx512_bf16", ATTN_ISA_AVX512_BF16},
        {"avx512_fp16", ATTN_ISA_AVX512_FP16},
        {"asimd", ATTN_ISA_NEON},
    };
    uint32_t isa = attn_isa_detect();
    char line[8192] = "";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f) && strncmp(line, "flags", 5) != 0 &&
           strncmp(line, "Features", 8) != 0)
        continue;
    if (f)
        fclose(f);
    line[strcspn(line, "\n")] = ' ';
    if (!strchr(line, ':'))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char word[32];
        snprintf(word, sizeof word, " %s ", rows[i].word);
        CHECK_CASE("%s", rows[i].word);
        CHECK_EQ_INT((isa & rows[i].isa) != 0, strstr(line, word) != NULL);
    }
    CHECK_CASE("%s", "");
}

#if defined(__x86_64__)
/* From now on the kernel refuses arch_prctl to this process. */
static bool refuse_arch_prctl(void) {
    struct sock_filter rows[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rows / sizeof *rows, rows};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Where the kernel gives no permission to use AMX's tiles, AMX is not there, and the rest is. */
static void test_amx_refused(void) {
    int status;
    uint32_t all = attn_isa_detect();
    if (!(all & ATTN_ISA_AMX_BF16))
        printf("not tried: this CPU has no AMX that could be refused\n");
    pid_t pid = fork();
    if (pid == 0) {
        attn_backend_device *device;
        attn_device_info info;
        attn_error err = ATTN_ERROR_INIT;
        if (!refuse_arch_prctl())
            _exit(CHECK_SKIPPED);
        if (cpu->open(0, NULL, &device, &err) != ATTN_OK)
            _exit(1);
        cpu->info(device, &info);
        _exit(attn_isa_detect() == (all & ~(uint32_t)ATTN_ISA_AMX_BF16) &&
                      attn_device_prop(&info, "amx_bf16") == 0
                  ? 0
                  : 2);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
          (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CHECK_SKIPPED));
}
#else
static void test_amx_refused(void) {}
#endif

static void test_device(void) {
    attn_backend_device *device;
    attn_device_info info, again;
    attn_error err = ATTN_ERROR_INIT;
    attn_device_options options = {.threads = 1};
    int32_t count = 0;
    CHECK_OK(cpu->count(&count, &err), err.line);
    CHECK_EQ_INT(count, 1);
    CHECK_STATUS(cpu->open(1, NULL, &device, &err), ATTN_ERR_NO_DEVICE, err.line);
    CHECK(device == NULL);
    cpu->close(NULL);
    if (!CHECK_OK(cpu->open(0, NULL, &device, &err), err.line))
        return;
    cpu->info(device, &info);
    CHECK_STR(info.backend, "cpu");
    CHECK_STR(info.lock, "cpu");
    CHECK_HAS(info.arch, "cpu:");
    CHECK(strlen(info.name) > 3 && strlen(info.identity) > 10);
    CHECK_EQ_INT(attn_device_prop(&info, "threads"), cpu->workers(device));
    CHECK_EQ_INT(attn_device_prop(&info, "threads"), attn_cpu_budget(0));
    CHECK(attn_device_prop(&info, "l1d") >= 1024 && attn_device_prop(&info, "line") >= 32);
    cpu->close(device);
    setenv("ATTNTUNE_CPU_ISA", "generic", 1);
    if (CHECK_OK(cpu->open(0, &options, &device, &err), err.line)) {
        cpu->info(device, &again);
        CHECK_STR(again.arch, "cpu:generic");
        CHECK_EQ_INT(attn_device_prop(&again, "avx2"), 0);
        CHECK_EQ_INT(attn_device_prop(&again, "threads"), 1);
        CHECK(strcmp(again.identity, info.identity) != 0 || strcmp(info.arch, "cpu:generic") == 0);
        cpu->close(device);
    }
    setenv("ATTNTUNE_CPU_ISA", "avx1024", 1);
    CHECK_STATUS(cpu->open(0, NULL, &device, &err), ATTN_ERR_INVALID, err.line);
    CHECK_HAS(err.line, "ATTNTUNE_CPU_ISA=avx1024");
    unsetenv("ATTNTUNE_CPU_ISA");
}

#if defined(__x86_64__)
/* A binary made for a CPU that has more, as in a cache that was copied here, is refused: its first
 * instruction might be one that this CPU does not know. */
static void test_foreign_binary(void) {
    attn_build build = {.language = "c",
                        .source = "int KERNEL(const void *a, int task, int worker) {\n"
                                  "    return a && task == worker;\n"
                                  "}\n",
                        .options = "-O2 -mavx2 -mfma",
                        .target = "cpu:avx2",
                        .key = "00000000000000000000000000000001"};
    attn_launch launch = {.steps = 1, .splits = 1, .step = {{.symbol = "KERNEL", .rows = 1}}};
    attn_backend_device *device;
    attn_device_info info;
    attn_kernel *kernel = NULL;
    attn_binary binary;
    attn_error err = ATTN_ERROR_INIT;
    setenv("ATTNTUNE_CPU_ISA", "generic", 1);
    attn_status st = cpu->open(0, NULL, &device, &err);
    unsetenv("ATTNTUNE_CPU_ISA");
    if (!CHECK_OK(st, err.line) || !CHECK_OK(cpu->compile(&build, &binary, &err), err.line))
        return;
    cpu->info(device, &info);
    CHECK(!cpu->runs(&info, "cpu:avx2") && !cpu->runs(&info, "cpu:x86_64+avx2+fma"));
    CHECK(cpu->runs(&info, "cpu:generic") && cpu->runs(&info, "cpu:x86_64"));
    CHECK_STATUS(cpu->load(device, &binary, build.target, &launch, &kernel, &err), ATTN_ERR_LOAD,
                 err.line);
    CHECK_HAS(err.line, "cannot be used here");
    CHECK(kernel == NULL);
    attn_binary_free(&binary);
    cpu->close(device);
}
#else
static void test_foreign_binary(void) {}
#endif

/* The rates are of this machine: positive, and there for the threads that exist. */
static void test_rates(void) {
    attn_backend_device *device;
    attn_device_state state;
    attn_error err = ATTN_ERROR_INIT;
    attn_device_options options = {.threads = 2};
    uint32_t usable = attn_isa_detect();
    for (const char *const *word = (const char *const[]){"generic", "avx2", "avx512", NULL}; *word;
         word++) {
        uint32_t isa;
        if (attn_isa_limit(usable, *word, &isa, &err) == ATTN_OK) {
            double flops = attn_fma_run(isa, 1);
            CHECK_NEAR(attn_fma_run(isa, 1000), 1000 * flops, 0);
            CHECK(attn_fma_canary(isa) > 0.05);
        }
    }
    if (!CHECK_OK(cpu->open(0, &options, &device, &err), err.line))
        return;
    cpu->state(device, &state);
    CHECK(state.canary > 0.05 && isnan(state.power_w) && !state.throttled);
    CHECK(cpu->peak(device, 1) > 0.05);
    CHECK(isnan(cpu->peak(device, 0)) && isnan(cpu->peak(device, 1000)));
    if (cpu->workers(device) > 1)
        CHECK(cpu->peak(device, 2) > 0.05);
    cpu->close(device);
}

static void test_memory(void) {
    attn_backend_device *device;
    attn_error err = ATTN_ERROR_INIT;
    void *memory;
    char bytes[10] = "123456789", back[10] = "";
    if (!CHECK_OK(cpu->open(0, NULL, &device, &err), err.line))
        return;
    for (size_t size = 0; size < 2000; size += 333) {
        CHECK_OK(cpu->alloc(device, size, &memory, &err), err.line);
        CHECK(memory && (uintptr_t)memory % 256 == 0);
        memset(memory, 1, size);
        cpu->free(device, memory);
    }
    CHECK_STATUS(cpu->alloc(device, SIZE_MAX - 3, &memory, &err), ATTN_ERR_NOMEM, err.line);
    cpu->free(device, NULL);
    CHECK_OK(cpu->alloc(device, 10, &memory, &err), err.line);
    CHECK_OK(cpu->copy(device, memory, bytes, 10, ATTN_COPY_TO_DEVICE, &err), err.line);
    CHECK_OK(cpu->copy(device, back, memory, 10, ATTN_COPY_FROM_DEVICE, &err), err.line);
    CHECK_OK(cpu->copy(device, NULL, NULL, 0, ATTN_COPY_TO_DEVICE, &err), err.line);
    CHECK_STR(back, bytes);
    CHECK_OK(cpu->sync(device, &err), err.line);
    cpu->free(device, memory);
    cpu->close(device);
}

int main(void) {
    test_cgroup();
    test_budget();
    test_isa_names();
    test_isa_agrees();
    test_amx_refused();
    test_device();
    test_foreign_binary();
    test_rates();
    test_memory();
    return check_done();
}

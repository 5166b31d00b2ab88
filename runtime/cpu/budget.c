/* budget.c: the limits on threads; see budget.h. */
#include "budget.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/str.h"

static int32_t min32(int32_t a, int32_t b) {
    return a < b ? a : b;
}

/* Reads "FIRST SECOND" or "FIRST" from folder/file; "max" is -1. False if there is no such file. */
static bool read_numbers(const char *folder, const char *file, long long *first,
                         long long *second) {
    attn_str path = ATTN_STR_INIT;
    char text[128], *end = text;
    attn_str_append_f(&path, "%s/%s", folder, file);
    FILE *f = fopen(attn_str_text(&path), "re");
    attn_str_free(&path);
    if (!f)
        return false;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    *first = strncmp(text, "max", 3) == 0 ? -1 : strtoll(text, &end, 10);
    *second = *first < 0 ? 0 : strtoll(end, NULL, 10);
    return true;
}

/* The quota of one group: version 2 keeps "quota period" in one file, version 1 in two. */
static int32_t group_cpus(const char *folder) {
    long long quota = -1, period = -1, unused;
    if (!read_numbers(folder, "cpu.max", &quota, &period)) {
        read_numbers(folder, "cpu.cfs_quota_us", &quota, &unused);
        read_numbers(folder, "cpu.cfs_period_us", &period, &unused);
    }
    if (quota <= 0 || period <= 0 || quota / period >= INT32_MAX)
        return INT32_MAX;
    return quota < period ? 1 : (int32_t)(quota / period);
}

/* The least quota from root/sys/fs/cgroup/MOUNT/GROUP up to the mount. In a container the group may
 * be named as on the host, of which only the root is mounted here: folders that are missing set no
 * limit. */
static int32_t walk_up(const char *root, const char *mount, const char *group) {
    attn_str path = ATTN_STR_INIT;
    int32_t cpus = INT32_MAX;
    attn_str_append_f(&path, "%s/sys/fs/cgroup/%s", root, mount);
    size_t top = path.size;
    if (!strstr(group, "..")) /* ".." is outside of this namespace */
        attn_str_append_f(&path, "/%s", group);
    while (path.data && !path.failed) {
        cpus = min32(cpus, group_cpus(path.data));
        if (path.size <= top)
            break;
        while (path.size > top && path.data[path.size - 1] != '/')
            path.size--;
        while (path.size > top && path.data[path.size - 1] == '/')
            path.size--;
        path.data[path.size] = '\0';
    }
    attn_str_free(&path);
    return cpus;
}

/* Does the comma-separated list hold the word? */
static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    while (list) {
        if (strncmp(list, word, length) == 0 && (list[length] == ',' || list[length] == '\0'))
            return true;
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    return false;
}

/* One line "number:controllers:group"; version 2 names no controllers. "cpu,cpuacct" may be mounted
 * under that name or as "cpu". */
static int32_t line_cpus(const char *root, char *line) {
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return INT32_MAX;
    *controllers++ = *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (*controllers && !has_word(controllers, "cpu"))
        return INT32_MAX;
    int32_t cpus = walk_up(root, controllers, group);
    return *controllers ? min32(cpus, walk_up(root, "cpu", group)) : cpus;
}

int32_t attn_cgroup_cpus(const char *root) {
    attn_str path = ATTN_STR_INIT;
    char line[4096];
    int32_t cpus = INT32_MAX;
    attn_str_append_f(&path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(attn_str_text(&path), "re");
    attn_str_free(&path);
    while (f && fgets(line, sizeof line, f))
        cpus = min32(cpus, line_cpus(root, line));
    if (f)
        fclose(f);
    return cpus;
}

static int32_t affinity_cpus(void) {
    for (int cpus = CPU_SETSIZE; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set)
            break;
        bool got = sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)cpus), set) == 0;
        int count = got ? CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)cpus), set) : 0;
        CPU_FREE(set);
        if (got)
            return count;
    }
    return 1;
}

/* OMP_NUM_THREADS may be a list; its first number counts. Anything else is no limit. */
static int32_t environment_threads(void) {
    const char *text = getenv("OMP_NUM_THREADS");
    long threads = text ? strtol(text, NULL, 10) : 0;
    return threads > 0 && threads < INT32_MAX ? (int32_t)threads : INT32_MAX;
}

int32_t attn_cpu_budget(int32_t option) {
    int32_t threads = min32(affinity_cpus(), attn_cgroup_cpus(""));
    threads = min32(threads, environment_threads());
    threads = min32(threads, option > 0 ? option : INT32_MAX);
    return threads > 1 ? threads : 1;
}

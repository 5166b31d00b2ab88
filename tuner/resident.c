/* resident.c: reads /proc. */
#include "resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t read_text(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

static int64_t resident(pid_t pid, int depth) {
    char path[64], text[512], *at = text;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    if (read_text(path, text, sizeof text) <= 0)
        return 0;
    (void)strtoll(text, &at, 10);
    int64_t bytes = strtoll(at, NULL, 10) * sysconf(_SC_PAGESIZE);
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    if (depth == 0 || read_text(path, text, sizeof text) <= 0)
        return bytes;
    for (at = text;;) {
        char *end;
        long child = strtol(at, &end, 10);
        if (end == at)
            return bytes;
        bytes += resident((pid_t)child, depth - 1);
        at = end;
    }
}

int64_t attn_memory_resident(pid_t pid) {
    return resident(pid, 4); /* worker, driver of the compiler, compiler, and one to spare */
}

int64_t attn_memory_share(double problem_bytes) {
    char text[2048];
    double share = 8 * problem_bytes + (problem_bytes > 0 ? 1 : 2) * (double)(1 << 30);
    (void)read_text("/proc/meminfo", text, sizeof text);
    const char *available = strstr(text, "MemAvailable:");
    double there = available ? strtod(available + strlen("MemAvailable:"), NULL) * 1024 * 0.7 : 0;
    return (int64_t)(there > 0 && there < share ? there : share);
}

int64_t attn_starved_ns(pid_t pid) {
    char path[64], text[128], *at = text;
    (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    (void)read_text(path, text, sizeof text);
    (void)strtoll(text, &at, 10); /* that it has run */
    return strtoll(at, NULL, 10);
}

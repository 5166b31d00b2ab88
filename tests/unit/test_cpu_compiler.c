/* test_cpu_compiler.c: compilers that fail, leave nothing, never end or are killed; what they are
 * given, the folders they leave behind, and how they are told apart. Shell scripts stand in for
 * them. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"
#include "folder.h"
#include "plain_build.h"

static char folder[] = "/tmp/test-cpu-compiler-XXXXXX";
/* Writes a program that stands in for a compiler, and makes it the one to use. */
static void put_compiler(const char *script) {
    char path[64];
    snprintf(path, sizeof path, "%s/compiler", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    CHECK(fd >= 0 && write(fd, script, strlen(script)) == (ssize_t)strlen(script));
    close(fd);
    setenv("CC", path, 1);
}

static void remove_compiler(void) {
    char path[64];
    snprintf(path, sizeof path, "%s/compiler", folder);
    unlink(path);
    unsetenv("CC");
}

/* A compiler that fails for want of room says nothing about the source. */
static void test_no_room(void) {
    static const struct {
        const char *script;
        attn_status status;
    } rows[] = {
        {"#!/bin/sh\necho 'k.c:1: fatal error: error writing: No space left on device'; exit 1\n",
         ATTN_ERR_IO},
        {"#!/bin/sh\necho 'cc: fatal error: Killed signal terminated program cc1'; exit 1\n",
         ATTN_ERR_NOMEM},
        {"#!/bin/sh\necho 'cc1: out of memory allocating 64 bytes'; exit 1\n", ATTN_ERR_NOMEM},
        {"#!/bin/sh\necho 'k.c:1: error: expected declaration'; exit 1\n", ATTN_ERR_NO_TOOL},
        {"#!/bin/sh\nfor w; do case $w in *.c) grep -q smallest.c $w || { echo 'k.c:1: error: "
         "odd'\n"
         "exit 1; };; esac; done\nexec cc \"$@\"\n",
         ATTN_ERR_COMPILE}};
    attn_build build = make_build("int x;", "compiler=cc -O1", "cpu:generic"); /* cc is $CC */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        attn_error err = ATTN_ERROR_INIT;
        attn_binary binary;
        put_compiler(rows[i].script);
        CHECK_STATUS(cpu->compile(&build, &binary, &err), rows[i].status, err.line);
        attn_binary_free(&binary);
    }
    remove_compiler();
}

/* A compiler that exits with 0 and leaves nothing of use: for each of the two steps, no file, an
 * empty one, half of one. It is right for the smallest program, so that the source is to be blamed.
 */
static void test_no_output(void) {
    static const char *const ways[] = {"rm -f $out", ": >$out",
                                       "head -c 500 $out >$out.part; mv $out.part $out"};
    static const char *const files[] = {"kernel.o", "kernel.so"};
    attn_build build = make_build(plain, "-O1", "cpu:generic");
    for (int file = 0; file < 2; file++)
        for (int way = 0; way < 3; way++) {
            attn_error err = ATTN_ERROR_INIT;
            attn_binary binary;
            char script[512];
            snprintf(script, sizeof script,
                     "#!/bin/sh\ncc \"$@\" || exit 1\nfor w; do [ \"$last\" = -o ] && out=$w; "
                     "last=$w; done\ncase $out in */%s) grep -q smallest.c ${out%%/*}/kernel.c || "
                     "{ %s; };; esac\nexit 0\n",
                     files[file], ways[way]);
            put_compiler(script);
            CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_COMPILE, err.line);
            CHECK_HAS(err.line, files[file]);
            CHECK_HAS(err.line, file ? "compiler left no shared object" : "left no object file");
            attn_binary_free(&binary);
        }
    remove_compiler();
}

static bool exists(const char *name) {
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void wait_a_moment(void) {
    nanosleep(&(struct timespec){0, 20000000}, NULL);
}

/* A worker that leads its group is killed with the group while its compiler, and that one's child,
 * never end: nobody is left. The child would make a file after a while. */
static void test_group_kill(void) {
    char script[256];
    int status;
    snprintf(script, sizeof script,
             "#!/bin/sh\n(touch %s/started; sleep 0.5; touch %s/survived) &\nwait\nsleep 100\n",
             folder, folder);
    put_compiler(script);
    pid_t pid = fork();
    if (pid == 0) {
        attn_binary binary;
        attn_error err = ATTN_ERROR_INIT;
        attn_build build = make_build(plain, "-O1", "cpu:generic");
        setpgid(0, 0);
        _exit(cpu->compile(&build, &binary, &err) == ATTN_OK);
    }
    for (int i = 0; i < 500 && !exists("started"); i++)
        wait_a_moment();
    CHECK(exists("started"));
    CHECK_EQ_INT(kill(-pid, SIGKILL), 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    for (int i = 0; i < 40; i++)
        wait_a_moment();
    CHECK(!exists("survived"));
    remove_compiler();
}

/* Calls `act` for each folder of a compile that is there; returns how many there are. */
static int each_compile_folder(void (*act)(const char *path)) {
    DIR *dir = opendir(folder);
    int count = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (strncmp(e->d_name, "attntune-cc-", 12) != 0)
            continue;
        count++;
        if (act)
            act(path);
    }
    if (dir)
        closedir(dir);
    return count;
}

/* With a limit, a compiler that hangs is stopped with all that it has started. */
static void test_limit(void) {
    char script[256];
    attn_error err = ATTN_ERROR_INIT;
    attn_binary binary;
    attn_build build = make_build(plain, "-O1", "cpu:generic");
    build.seconds = 0.3;
    snprintf(script, sizeof script,
             "#!/bin/sh\necho this and that\n(sleep 1; touch %s/survived) &\nsleep 100\n", folder);
    put_compiler(script);
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_TIMEOUT, err.line);
    CHECK_HAS(err.line, "compiler had not ended after 0.3 s and was stopped");
    CHECK_HAS(err.line, "name another one in CC");
    CHECK_HAS(err.line, "\nthis and that");
    CHECK_EQ_INT(each_compile_folder(NULL), 0);
    for (int i = 0; i < 60; i++)
        wait_a_moment();
    CHECK(!exists("survived"));
    attn_binary_free(&binary);
    remove_compiler();
}

static int held_fd = -1;

static void hold(const char *path) {
    held_fd = open(path, O_RDONLY | O_DIRECTORY);
    CHECK_EQ_INT(flock(held_fd, LOCK_EX | LOCK_NB), 0);
}

/* The folder of the compile that was killed goes when the device is next opened or something
 * compiled, but not while its owner lives. */
static void test_sweep(void) {
    attn_backend_device *device;
    attn_error err = ATTN_ERROR_INIT;
    attn_binary binary;
    CHECK_EQ_INT(each_compile_folder(hold), 1);
    if (compile(plain, "-O1", &binary))
        attn_binary_free(&binary);
    CHECK_EQ_INT(each_compile_folder(NULL), 1);
    close(held_fd);
    if (CHECK_OK(cpu->open(0, NULL, &device, &err), err.line))
        cpu->close(device);
    CHECK_EQ_INT(each_compile_folder(NULL), 0);
}

/* Each makes and removes folders, and sweeps as it does; none loses one that it holds. */
static int make_folders(void) {
    for (int i = 0; i < 500; i++) {
        attn_error err = ATTN_ERROR_INIT;
        attn_folder made;
        if (!CHECK_OK(attn_folder_make(&made, &err), err.line))
            return 1;
        if (!CHECK(access(made.path.data, W_OK) == 0))
            return 2;
        attn_folder_remove(&made);
    }
    return 0;
}

static void test_many_folders(void) {
    enum { PROCESSES = 4 };
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0)
            _exit(make_folders());
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        CHECK(wait(&status) > 0);
        CHECK_EQ_INT(status, 0);
    }
    CHECK_EQ_INT(each_compile_folder(NULL), 0);
}

/* Whatever a compiler leaves in its folder goes with it, but not what its links lead to. */
static void test_subfolders(void) {
    attn_error err = ATTN_ERROR_INIT;
    attn_binary binary;
    attn_build build = make_build(plain, "-O1", "cpu:generic");
    put_compiler("#!/bin/sh\nmkdir -p $TMPDIR/a/b $TMPDIR/c\necho x >$TMPDIR/a/b/file\n"
                 "ln -s $(dirname $0) $TMPDIR/a/link\nexit 3\n");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_EQ_INT(each_compile_folder(NULL), 0);
    CHECK(exists("compiler"));
    attn_binary_free(&binary);
    remove_compiler();
}

/* Of a compiler that prints without an end, the beginning is kept, and the rest is read: it does
 * not wait for us, nor fill the memory. */
static void test_endless_output(void) {
    attn_error err = ATTN_ERROR_INIT;
    attn_binary binary;
    attn_build build = make_build(plain, "-O1", "cpu:generic");
    put_compiler("#!/bin/sh\necho first\nhead -c 50000000 /dev/zero\nexit 3\n");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_HAS(err.line, "exit code 3"); /* it has come to its own end */
    CHECK(strstr(attn_str_text(&binary.log), "first\n????") != NULL); /* too much to print */
    CHECK(strstr(attn_str_text(&binary.log), "\n(what came after 256 KiB is left out)\n") != NULL);
    CHECK(binary.log.size < 300000);
    attn_binary_free(&binary);
    build.seconds = 0.5;
    put_compiler("#!/bin/sh\nexec yes\n");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_TIMEOUT, err.line);
    CHECK(binary.log.size > 200000 && binary.log.size < 300000);
    attn_binary_free(&binary);
    remove_compiler();
}

/* What the compiler is given: a limit on CPU time, no descriptors of ours, a quiet stdin. One that
 * fails on everything is no compiler: no source is to be blamed. */
static void test_compiler_surroundings(void) {
    attn_binary binary;
    attn_error err = ATTN_ERROR_INIT;
    attn_build build = make_build(plain, "-O1", "cpu:generic");
    int leak = open("/dev/null", O_RDONLY); /* not close-on-exec, as a host might have it */
    CHECK_EQ_INT(dup2(leak, 77), 77);
    put_compiler("#!/bin/sh\nsleep 0.1\necho limit $(ulimit -t) stdin $(cat) "
                 "descriptors $(ls /proc/$$/fd | tr '\\n' ' ') lc $LC_ALL tmp $TMPDIR\nexit 3\n");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_HAS(err.line, "exit code 3");
    CHECK_HAS(err.line, "limit 900 stdin descriptors 0 1 ");
    CHECK(!strstr(err.line, " 77"));
    CHECK_HAS(err.line, "lc C tmp /tmp/test-cpu-compiler");
    attn_binary_free(&binary);
    put_compiler("#!/bin/sh\nkill -SEGV $$\n");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_HAS(err.line, "signal 11");
    attn_binary_free(&binary);
    put_compiler("#!/bin/sh\nexit 0\n");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_HAS(err.line, "left no object file");
    attn_binary_free(&binary);
    attn_str identity = ATTN_STR_INIT;
    CHECK_STATUS(cpu->toolchain("c", "", &identity, &err), ATTN_ERR_NO_TOOL, err.line);
    attn_str_free(&identity);
    remove_compiler();
    close(leak);
    close(77);
}

/* The toolchain is asked once, and again when the program has changed. */
static void test_toolchain_kept(void) {
    attn_str identity = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    static const char script[] = "#!/bin/sh\necho asked >>%s/asked\necho 'my cc version %d '\n"
                                 "echo 'Target: here'\n";
    for (int version = 1; version <= 2; version++) {
        char text[256], want[64];
        snprintf(text, sizeof text, script, folder, version);
        put_compiler(text);
        snprintf(want, sizeof want, "my cc version %d here", version);
        for (int i = 0; i < 5; i++) {
            attn_str_clear(&identity);
            CHECK_OK(cpu->toolchain("c", "-O2", &identity, &err), err.line);
            CHECK_STR(attn_str_text(&identity), want);
        }
    }
    char path[64], cc[96];
    struct stat st;
    snprintf(path, sizeof path, "%s/asked", folder);
    CHECK(stat(path, &st) == 0 && st.st_size == 12);
    /* Another $CC is another compiler: it counts with what it is told to do. */
    snprintf(cc, sizeof cc, "%s -m32 -g", getenv("CC"));
    setenv("CC", cc, 1);
    attn_str_clear(&identity);
    CHECK_OK(cpu->toolchain("c", "-O2", &identity, &err), err.line);
    CHECK_STR(attn_str_text(&identity), "my cc version 2 here -m32 -g");
    remove_compiler();
    attn_str_free(&identity);
}

/* Is the process whose number the file holds still running? (-1: there is no such file) */
static int runs(const char *path) {
    attn_str pid = ATTN_STR_INIT, stat = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    int answer = -1;
    char file[64];
    if (attn_str_read_file(&pid, path, &err) == ATTN_OK) {
        snprintf(file, sizeof file, "/proc/%d/stat", atoi(attn_str_text(&pid)));
        answer = attn_str_read_file(&stat, file, &err) == ATTN_OK &&
                 !strstr(attn_str_text(&stat), ") Z ");
    }
    attn_str_free(&pid);
    attn_str_free(&stat);
    return answer;
}

/* A compiler that does not even tell its version is waited for once; what it has started goes
 * with it. */
static void test_toolchain_hangs(void) {
    attn_str identity = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    char text[256], path[64];
    snprintf(path, sizeof path, "%s/asked", folder);
    snprintf(text, sizeof text, "#!/bin/sh\nsleep 600 &\necho $! >%s\nwait\n", path);
    put_compiler(text);
    time_t begin = time(NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(cpu->toolchain("c", "-O2", &identity, &err), ATTN_ERR_NO_TOOL, err.line);
        CHECK_HAS(err.line, "does not answer to -v in 5 s");
    }
    CHECK(time(NULL) - begin < 14); /* and not three times */
    for (int i = 0; i < 100 && runs(path) == 1; i++)
        wait_a_moment();
    CHECK_EQ_INT(runs(path), 0);
    remove_compiler();
    attn_str_free(&identity);
}

static void remove_folder(void) {
    static const char *const files[] = {"asked", "started"};
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    CHECK_EQ_INT(rmdir(folder), 0);
}

int main(void) {
    if (!CHECK(mkdtemp(folder) != NULL))
        return check_done();
    setenv("TMPDIR", folder, 1);
    test_compiler_surroundings();
    test_toolchain_kept();
    test_toolchain_hangs();
    test_no_room();
    test_no_output();
    test_limit();
    test_subfolders();
    test_endless_output();
    test_group_kill();
    test_sweep();
    test_many_folders();
    remove_folder();
    return check_done();
}

/* Preloaded into PostgreSQL: while the file named by STALL_FILE exists, nothing reaches the disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_disk(void)
{
    const char *file = getenv("STALL_FILE");
    while (file != NULL && access(file, F_OK) == 0)
        usleep(10000);
}

int fsync(int fd)
{
    static int (*real)(int);
    if (real == NULL)
        real = (int (*)(int)) dlsym(RTLD_NEXT, "fsync");
    wait_for_disk();
    return real(fd);
}

int fdatasync(int fd)
{
    static int (*real)(int);
    if (real == NULL)
        real = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    wait_for_disk();
    return real(fd);
}

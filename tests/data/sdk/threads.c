/* Devices in threads, a device of two threads, and a child of a fork. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(mnc2_device_t dev, uint64_t seed) {
    uint64_t data[64], out[64];
    mnc2_kernel_t copy = mnc2_load_kernel(dev, "_build/copy.idma.dat");
    CHECK(copy != NULL);
    for (uint64_t round = 0; round < 20; round++) {
        for (uint64_t i = 0; i < 64; i++) {
            data[i] = seed * 1000 + round * 100 + i;
        }
        CHECK(mnc2_send(dev, data, 0, sizeof data, 0x10) == 0);
        CHECK(mnc2_exec_kernel(copy) == 0);
        CHECK(mnc2_recv(dev, out, 512, sizeof out, 0x1e) == 0);
        CHECK(memcmp(data, out, sizeof out) == 0);
    }
    mnc2_free_kernel(copy);
    return 0;
}

static void *own(void *seed) {
    mnc2_device_t dev = mnc2_open((int)(uintptr_t)seed);
    int failed = dev == NULL || work(dev, (uintptr_t)seed);
    mnc2_close(dev);
    return (void *)(uintptr_t)failed;
}

static void *launch(void *kernel) {
    for (int i = 0; i < 200; i++) {
        if (mnc2_exec_kernel(kernel) != 0) {
            return (void *)1;
        }
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    void *failed;
    for (uintptr_t i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, own, (void *)i) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], &failed) == 0 && failed == NULL);
    }
    mnc2_device_t dev = mnc2_open(0);
    mnc2_kernel_t count = mnc2_load_kernel(dev, "_build/count.idma.dat");
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, launch, count) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], &failed) == 0 && failed == NULL);
    }
    uint64_t word = 0;
    CHECK(mnc2_debug_read(dev, MNC2_MEM_LM0, NULL, 1, 1, &word) == 0 && word == 400);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        /* The handles are the parent's; a device of its own works. */
        int bad = mnc2_exec_kernel(count) != MNC2_ERROR_KERNEL || mnc2_reset(dev) != MNC2_ERROR_PARAM;
        mnc2_device_t mine = mnc2_open(0);
        _exit(bad || mine == NULL || work(mine, 9));
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(work(dev, 3) == 0);
    mnc2_close(dev);
    PASS();
}

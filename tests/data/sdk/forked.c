/* A child has none of the handles of its parent, and opens devices of its own. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    OPEN();
    KERNEL(copy, "copy");
    uint64_t word = 4;
    CHECK(mnc2_send(dev, &word, 0, 8, 0) == 0);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int good = mnc2_send(dev, &word, 0, 8, 0) == MNC2_ERROR_PARAM && mnc2_exec_kernel(copy) == MNC2_ERROR_KERNEL;
        mnc2_device_t own = mnc2_open(0);
        good = good && own != NULL && mnc2_recv(own, &word, 0, 8, 0) == 0 && word == 0;
        mnc2_close(own);
        _exit(good ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(mnc2_recv(dev, &word, 0, 8, 0) == 0 && word == 4);
    mnc2_close(dev);
    PASS();
}

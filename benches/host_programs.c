/* Times launches and copies through the C interface: `name value` lines, in microseconds and as a share of memcpy's speed. */
#define _POSIX_C_SOURCE 200809L
#include <emu2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAUNCHES = 500, ROUNDS = 20, COPIES = 200, BYTES = 4 << 20 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double least(double a, double b) { return a < b ? a : b; }

/* Seconds of one run of the kernel in a file. */
static double run_of(mnc2_device_t dev, const char *path) {
    mnc2_kernel_t kernel = mnc2_load_kernel(dev, path);
    double best = 1e9;
    for (int round = 0; kernel != NULL && round < ROUNDS; round++) {
        double begin = now();
        mnc2_exec_kernel(kernel);
        mnc2_wait_idma_idle(dev);
        best = least(best, now() - begin);
    }
    return best;
}

int main(int argc, char **argv) {
    mnc2_device_t dev = mnc2_open(0);
    mnc2_kernel_t kernel = emu2_load_kernel_text(dev, "nop\n");
    char *data = mnc2_alloc_host_buffer(dev, BYTES);
    char *back = mnc2_alloc_host_buffer(dev, BYTES);
    char *other = malloc(BYTES);
    if (kernel == NULL || data == NULL || back == NULL || other == NULL) {
        return 1;
    }
    double single = 1, queued = 1, copy = 1, send = 1, send_other = 1, receive = 1;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now();
        for (int i = 0; i < LAUNCHES; i++) {
            mnc2_exec_kernel(kernel);
            mnc2_wait_idma_idle(dev);
        }
        single = least(single, (now() - begin) / LAUNCHES);
        begin = now();
        for (int i = 0; i < LAUNCHES; i++) {
            mnc2_exec_kernel(kernel);
        }
        mnc2_wait_idma_idle(dev);
        queued = least(queued, (now() - begin) / LAUNCHES);
    }
    for (int i = 0; i < BYTES; i++) {
        data[i] = (char)(i * 7 + 1);
        other[i] = (char)(i * 5 + 1);
    }
    for (int round = 0; round < COPIES; round++) {
        double begin = now();
        memcpy(back, data, BYTES);
        copy = least(copy, now() - begin);
        begin = now();
        mnc2_send(dev, data, 0, BYTES, 0);
        send = least(send, now() - begin);
        begin = now();
        mnc2_send(dev, other, 0, BYTES, 0);
        send_other = least(send_other, now() - begin);
        begin = now();
        mnc2_recv(dev, back, 0, BYTES, 0);
        receive = least(receive, now() - begin);
    }
    printf("launch %.2f\nqueued launch %.2f\n", 1e6 * single, 1e6 * queued);
    printf("send %.2f\nsend from malloc %.2f\nreceive %.2f\n", copy / send, copy / send_other, copy / receive);
    if (argc > 1) {
        printf("run %.9f\n", run_of(dev, argv[1]));
    }
    free(other);
    mnc2_close(dev);
    return 0;
}

/* Many kernels, loaded first, run in a loop of time steps with several receives each. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(keep, "keep");
    mnc2_kernel_t steps[40];
    uint64_t data[64], out[64];
    for (int i = 0; i < 40; i++) {
        steps[i] = mnc2_load_kernel(dev, i % 2 ? "_build/doubling.idma.dat" : "_build/count.idma.dat");
        CHECK(steps[i] != NULL);
    }
    KERNEL(gather, "gather");
    for (uint64_t i = 0; i < 64; i++) {
        data[i] = i;
    }
    CHECK(mnc2_send(dev, data, 0, sizeof data, 0) == 0 && mnc2_exec_kernel(keep) == 0);
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 10; i++) {
            CHECK(mnc2_exec_kernel(steps[10 * round + i]) == 0);
        }
        CHECK(mnc2_exec_kernel(gather) == 0);
        CHECK(mnc2_recv(dev, out, 0, 256, DONE) == 0 && mnc2_recv(dev, out + 32, 256, 256, 0) == 0);
        for (uint64_t i = 0; i < 64; i++) {
            CHECK(out[i] == i << 5 * round);
        }
    }
    mnc2_close(dev);
    PASS();
}

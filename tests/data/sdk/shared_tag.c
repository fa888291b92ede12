/* A wait of the kernel and a receive of the host use the same signal, each for itself. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(keep, "keep");
    KERNEL(twice, "twice");
    uint64_t data[64] = {21}, out[64];
    CHECK(mnc2_send(dev, data, 0, BLOCK, 0) == 0 && mnc2_exec_kernel(keep) == 0);
    for (int round = 0; round < 2; round++) {
        /* `twice` waits for its tag itself. */
        CHECK(mnc2_exec_kernel(twice) == 0);
        CHECK(round == 0 || mnc2_wait_idma_idle(dev) == 0);
        CHECK(mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == 0 && out[0] == 42);
        CHECK(mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == MNC2_ERROR_TIMEOUT);
    }
    mnc2_close(dev);
    PASS();
}

/* Two arrays: only the last send has the tag. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(copy, "copy");
    uint64_t first[32], second[32], out[64];
    for (uint64_t i = 0; i < 32; i++) {
        first[i] = i;
        second[i] = 100 + i;
    }
    CHECK(mnc2_exec_kernel(copy) == 0);
    CHECK(mnc2_send(dev, first, 0, 256, 0) == 0);
    CHECK(mnc2_wait_idma_idle(dev) == MNC2_ERROR_TIMEOUT);
    CHECK(mnc2_send(dev, second, 256, 256, SENT) == 0);
    CHECK(mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == 0);
    CHECK(memcmp(out, first, 256) == 0 && memcmp(out + 32, second, 256) == 0);
    mnc2_close(dev);
    PASS();
}

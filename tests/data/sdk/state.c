/* Memories keep their contents from kernel to kernel, and through a reset. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    uint64_t data[64], out[64];
    for (int i = 0; i < 64; i++) {
        data[i] = (uint64_t)i * i;
    }
    CHECK(mnc2_send(dev, data, 0, sizeof data, 0) == 0);
    mnc2_kernel_t keep = mnc2_load_kernel(dev, "_build/keep.idma.dat");
    mnc2_kernel_t twice = mnc2_load_kernel(dev, "_build/twice.idma.dat");
    CHECK(keep != NULL && twice != NULL);
    CHECK(mnc2_exec_kernel(keep) == 0);
    CHECK(mnc2_wait_idma_idle(dev) == 0);
    CHECK(mnc2_reset(dev) == 0);
    for (int round = 0; round < 3; round++) {
        CHECK(mnc2_exec_kernel(twice) == 0);
        CHECK(mnc2_recv(dev, out, 512, sizeof out, 0x1e) == 0);
        for (int i = 0; i < 64; i++) {
            CHECK(out[i] == 2 * data[i]);
        }
    }
    mnc2_free_kernel(keep);
    mnc2_free_kernel(twice);
    mnc2_close(dev);
    PASS();
}

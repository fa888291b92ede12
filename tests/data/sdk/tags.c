/* Tags: a receive needs a signal of its own; a kernel may be started before its data comes; a tag raised twice is an error. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    mnc2_kernel_t copy = mnc2_load_kernel(dev, "_build/copy.idma.dat");
    uint64_t data[64] = {7}, out[64];
    uint8_t waits[8], mvs[8];
    int n_waits = -1, n_mvs = -1;
    CHECK(mnc2_kernel_get_dma_tags(copy, waits, mvs, 8, &n_waits, &n_mvs) == 0);
    CHECK(n_waits == 1 && waits[0] == 0x10 && n_mvs == 1 && mvs[0] == 0x1e);
    CHECK(mnc2_kernel_get_dma_tags(copy, waits, mvs, 0, &n_waits, &n_mvs) == MNC2_ERROR_PARAM);
    CHECK(mnc2_recv(dev, out, 512, 512, 0x1e) == MNC2_ERROR_TIMEOUT);
    for (uint64_t round = 1; round < 4; round++) {
        CHECK(mnc2_exec_kernel(copy) == 0);
        CHECK(mnc2_wait_idma_idle(dev) == MNC2_ERROR_TIMEOUT);
        CHECK(mnc2_recv(dev, out, 512, 512, 0x1e) == MNC2_ERROR_TIMEOUT);
        data[0] = round;
        CHECK(mnc2_send(dev, data, 0, 512, 0x10) == 0);
        CHECK(mnc2_recv(dev, out, 512, 512, 0x1e) == 0);
        CHECK(out[0] == round);
        CHECK(mnc2_recv(dev, out, 512, 512, 0x1e) == MNC2_ERROR_TIMEOUT);
    }
    mnc2_kernel_t twice = mnc2_load_kernel(dev, "_build/double.idma.dat");
    CHECK(mnc2_exec_kernel(twice) == 0);
    int stopped = mnc2_recv(dev, out, 512, 512, 0x1e);
    if (mnc2_get_backend() == MNC2_BACKEND_EMU_LIB) {
        CHECK(stopped == MNC2_ERROR_DMA);
        CHECK(mnc2_exec_kernel(copy) == MNC2_ERROR_KERNEL);
        CHECK(mnc2_wait_idma_idle(dev) == MNC2_ERROR_DEVICE);
    } else {
        CHECK(stopped == 0);
    }
    CHECK(mnc2_reset(dev) == 0);
    CHECK(mnc2_recv(dev, out, 512, 512, 0) == 0);
    mnc2_free_kernel(twice);
    /* A kernel that waits for good is freed with a warning. */
    CHECK(mnc2_exec_kernel(copy) == 0);
    mnc2_free_kernel(copy);
    CHECK(mnc2_exec_kernel(copy) == MNC2_ERROR_KERNEL);
    mnc2_close(dev);
    PASS();
}

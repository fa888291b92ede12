/* The tags of a kernel: in its order, cut off at the room, refused without any. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(kernel, "three");
    uint8_t waits[4] = {0}, mvs[4] = {0};
    int n_waits = -1, n_mvs = -1;
    CHECK(mnc2_kernel_get_dma_tags(kernel, waits, mvs, 4, &n_waits, &n_mvs) == 0);
    CHECK(n_waits == 0 && n_mvs == 3 && mvs[0] == 0x1e && mvs[1] == 0x1d && mvs[2] == 0x1c);
    CHECK(mnc2_kernel_get_dma_tags(kernel, waits, mvs, 2, &n_waits, &n_mvs) == 0 && n_mvs == 2 && mvs[1] == 0x1d);
    CHECK(mnc2_kernel_get_dma_tags(kernel, waits, mvs, -1, &n_waits, &n_mvs) == MNC2_ERROR_PARAM);
    CHECK(mnc2_kernel_get_dma_tags(kernel, waits, mvs, 4, NULL, &n_mvs) == MNC2_ERROR_PARAM);
    CHECK(mnc2_kernel_get_dma_tags(NULL, waits, mvs, 4, &n_waits, &n_mvs) == MNC2_ERROR_PARAM);
    mnc2_close(dev);
    PASS();
}

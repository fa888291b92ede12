/* A kernel that waits for a tag: its bit shows, and clearing the bit ends the wait. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(copy, "copy");
    uint64_t mask = 0;
    CHECK(mnc2_get_wdbit_status(dev, &mask) == 0 && mask == 0);
    CHECK(mnc2_exec_kernel(copy) == 0);
    CHECK(mnc2_get_wdbit_status(dev, &mask) == 0 && mask == UINT64_C(1) << SENT);
    CHECK(mnc2_wd_clear(dev, SENT) == 0);
    CHECK(mnc2_wait_idma_idle(dev) == 0);
    CHECK(mnc2_get_wdbit_status(dev, &mask) == 0 && mask == 0);
    CHECK(mnc2_exec_kernel(copy) == 0 && mnc2_clear_wdbit(dev, SENT) == 0 && mnc2_reset(dev) == 0);
    CHECK(mnc2_clear_wdbit(dev, 64) == MNC2_ERROR_PARAM && mnc2_clear_wdbit(NULL, 1) == MNC2_ERROR_PARAM);
    mnc2_close(dev);
    PASS();
}

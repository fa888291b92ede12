/* The queue of kernels: order, depth, polling. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    mnc2_kernel_t count = mnc2_load_kernel(dev, "_build/count.idma.dat");
    mnc2_kernel_t copy = mnc2_load_kernel(dev, "_build/copy.idma.dat");
    mnc2_loc_t loc = MNC2_LOC_INIT;
    mnc2_idma_stat_t stat;
    uint64_t word = 0;
    CHECK(mnc2_set_idma_complete_max(dev, 1000000) == 5000);
    for (int i = 0; i < 300; i++) {
        do {
            CHECK(mnc2_get_idma_stat(dev, &stat) == 0);
        } while (stat.n_dma >= 31);
        CHECK(mnc2_exec_kernel(count) == 0);
    }
    for (int i = 0; i < 300; i++) {
        CHECK(mnc2_exec_kernel(count) == 0);
    }
    CHECK(mnc2_wait_idma_idle(dev) == 0);
    CHECK(mnc2_get_idma_stat(dev, &stat) == 0);
    CHECK(stat.n_dma == 0 && stat.inst_in_ibuf == 0 && stat.overflow == 0);
    loc.chip = 3;
    loc.l2b = 1;
    loc.l1b = 7;
    loc.mab = 15;
    loc.pe = 3;
    CHECK(mnc2_debug_read(dev, MNC2_MEM_LM0, &loc, 1, 1, &word) == 0);
    CHECK(word == 600);
    /* Behind a kernel that waits for the host, the queue fills and refuses. */
    CHECK(mnc2_exec_kernel(copy) == 0);
    for (int i = 0; i < 30; i++) {
        CHECK(mnc2_exec_kernel(count) == 0);
    }
    CHECK(mnc2_exec_kernel(count) == MNC2_ERROR_TIMEOUT);
    CHECK(mnc2_get_idma_stat(dev, &stat) == 0 && stat.n_dma == 31);
    uint64_t waiting = 0;
    CHECK(mnc2_get_wdbit_status(dev, &waiting) == 0 && waiting == UINT64_C(1) << 0x10);
    CHECK(mnc2_clear_wdbit(dev, 0x10) == 0);
    CHECK(mnc2_clear_wdbit(dev, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_wait_idma_idle(dev) == 0);
    CHECK(mnc2_get_wdbit_status(dev, &waiting) == 0 && waiting == 0);
    CHECK(mnc2_debug_read(dev, MNC2_MEM_LM0, &loc, 1, 1, &word) == 0 && word == 630);
    mnc2_close(dev);
    PASS();
}

/* Many kernels loaded first and run in a time loop, with results fetched now and then. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    mnc2_kernel_t step = mnc2_load_kernel(dev, "_build/doubling.idma.dat");
    mnc2_kernel_t gather = mnc2_load_kernel(dev, "_build/gather.idma.dat");
    mnc2_loc_t loc = MNC2_LOC_INIT;
    uint64_t *out = (uint64_t *)mnc2_alloc_host_buffer(dev, 512);
    uint64_t start = 1, expected = 1;
    CHECK(step != NULL && gather != NULL && out != NULL);
    for (loc.mab = 0; loc.mab < 16; loc.mab++) {
        for (loc.pe = 0; loc.pe < 4; loc.pe++) {
            CHECK(mnc2_debug_write(dev, MNC2_MEM_LM0, &loc, 0, 1, &start) == 0);
        }
    }
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 5; i++) {
            CHECK(mnc2_exec_kernel(step) == 0);
            expected *= 2;
        }
        CHECK(mnc2_exec_kernel(gather) == 0);
        CHECK(mnc2_recv(dev, out, 0, 512, 0x1e) == 0);
        for (int i = 0; i < 64; i++) {
            CHECK(out[i] == expected);
        }
    }
    mnc2_free_kernel(step);
    mnc2_free_kernel(gather);
    mnc2_free_host_buffer(dev, out, 512);
    mnc2_close(dev);
    PASS();
}

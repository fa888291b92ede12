/* A debugger's access: every region, every level of the location, refusals. */
#include "check.h"

int main(void) {
    static const int writable[] = {MNC2_MEM_L2BM, MNC2_MEM_L1BM, MNC2_MEM_LM0, MNC2_MEM_LM1, MNC2_MEM_GRF0, MNC2_MEM_GRF1};
    mnc2_device_t dev = mnc2_open(0);
    mnc2_loc_t loc = {2, 1, 5, 9, 3};
    mnc2_loc_t other = {2, 0, 5, 9, 3};
    mnc2_loc_t bad[] = {{4, 0, 0, 0, 0}, {0, 2, 0, 0, 0}, {0, 0, 8, 0, 0}, {0, 0, 0, 16, 0}, {0, 0, 0, 0, 4}, {-1, 0, 0, 0, 0}};
    uint64_t words[4] = {1, 2, 3, UINT64_C(0xfedcba9876543210)}, seen[4];
    for (size_t i = 0; i < sizeof writable / sizeof writable[0]; i++) {
        CHECK(mnc2_debug_read(dev, writable[i], &loc, 16, 4, seen) == 0);
        CHECK(seen[0] == 0 && seen[3] == 0);
        CHECK(mnc2_debug_write(dev, writable[i], &loc, 16, 4, words) == 0);
        CHECK(mnc2_debug_read(dev, writable[i], &loc, 16, 4, seen) == 0);
        CHECK(memcmp(words, seen, sizeof words) == 0);
        CHECK(mnc2_debug_read(dev, writable[i], &other, 16, 4, seen) == 0);
        CHECK(seen[0] == 0 && seen[3] == 0);
        CHECK(mnc2_debug_write(dev, writable[i], &loc, 0, 0, words) == MNC2_ERROR_PARAM);
        CHECK(mnc2_debug_write(dev, writable[i], &loc, 0, 1, NULL) == MNC2_ERROR_PARAM);
        CHECK(mnc2_debug_read(dev, writable[i], &loc, -1, 1, seen) != 0);
        CHECK(mnc2_debug_read(dev, writable[i], &loc, 1 << 28, 1, seen) != 0);
        CHECK(mnc2_debug_read(dev, writable[i], NULL, 0, 1, seen) == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(mnc2_debug_read(dev, MNC2_MEM_LM0, &bad[i], 0, 1, seen) == MNC2_ERROR_PARAM);
    }
    /* PDM and DRAM of every group can be read, and not be written. */
    for (int group = 0; group < 4; group++) {
        mnc2_loc_t place = MNC2_LOC_INIT;
        place.chip = group;
        CHECK(mnc2_debug_read(dev, MNC2_MEM_PDM, &place, 524284, 4, seen) == 0);
        CHECK(mnc2_debug_read(dev, MNC2_MEM_DRAM, &place, 536870908, 4, seen) == 0 && seen[3] == 0);
        CHECK(mnc2_debug_write(dev, MNC2_MEM_PDM, &place, 0, 1, words) == MNC2_ERROR_PARAM);
        CHECK(mnc2_debug_write(dev, MNC2_MEM_DRAM, &place, 0, 1, words) == MNC2_ERROR_PARAM);
    }
    CHECK(mnc2_debug_read(dev, 99, NULL, 0, 1, seen) != 0);
    CHECK(mnc2_debug_write(dev, 99, NULL, 0, 1, words) == MNC2_ERROR_PARAM);
    /* An assembler's address counts half long words. */
    mnc2_kernel_t count = mnc2_load_kernel(dev, "_build/count.idma.dat");
    CHECK(mnc2_exec_kernel(count) == 0);
    CHECK(mnc2_debug_read(dev, MNC2_MEM_LM0, NULL, 1, 1, seen) == 0 && seen[0] == 1);
    CHECK(mnc2_read_pio(dev, 0x38, seen) == MNC2_ERROR_DEVICE);
    CHECK(mnc2_write_pio(dev, 0x40, 1) == MNC2_ERROR_DEVICE);
    mnc2_close(dev);
    PASS();
}

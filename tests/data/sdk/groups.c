/* The four groups have PDMs of their own; the host reaches that of group 0. */
#include "check.h"
#include <emu2.h>

int main(void) {
    OPEN();
    mnc2_kernel_t kernel = emu2_load_kernel_text(dev, "mvp/n64i01 $p0@0 $lc0@2.1\nnop; wait i01\nmvp/n64i02 $lc0@2.1 $p128@2\nnop; wait i02\n");
    uint64_t data[64] = {11, 12}, word = 0;
    CHECK(kernel != NULL && mnc2_send(dev, data, 0, BLOCK, 0) == 0 && mnc2_exec_kernel(kernel) == 0);
    for (int group = 0; group < 4; group++) {
        mnc2_loc_t place = {group, 0, 0, 0, 0};
        CHECK(mnc2_debug_read(dev, MNC2_MEM_PDM, &place, 129, 1, &word) == 0 && word == (group == 2 ? 12u : 0u));
    }
    mnc2_loc_t l2b = {2, 1, 0, 0, 0};
    CHECK(mnc2_debug_read(dev, MNC2_MEM_L2BM, &l2b, 0, 1, &word) == 0 && word == 11);
    CHECK(mnc2_recv(dev, &word, 1032, 8, 0) == 0 && word == 0);
    mnc2_close(dev);
    PASS();
}

/* Every PE has its own number, found by its place. */
#include "check.h"
#include <emu2.h>

int main(void) {
    OPEN();
    mnc2_kernel_t kernel = emu2_load_kernel_text(dev, "lpassa $peid $lm0\nnop/4\n");
    CHECK(kernel != NULL && mnc2_exec_kernel(kernel) == 0);
    uint64_t seen[64];
    for (int at = 0; at < 64; at++) {
        mnc2_loc_t place = {1, 0, 2, at / 4, at % 4};
        CHECK(mnc2_debug_read(dev, MNC2_MEM_LM0, &place, 0, 1, &seen[at]) == 0);
        for (int before = 0; before < at; before++) {
            CHECK(seen[before] != seen[at]);
        }
    }
    mnc2_close(dev);
    PASS();
}

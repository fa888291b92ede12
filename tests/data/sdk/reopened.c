/* A device that is opened again has memories of zeros, and the default settings. */
#include "check.h"

int main(void) {
    uint64_t word = 77;
    for (int round = 0; round < 3; round++) {
        OPEN();
        CHECK(mnc2_get_endian_ctrl(dev) == 4 && mnc2_get_idma_complete_max(dev) == 5000);
        CHECK(mnc2_recv(dev, &word, 64, 8, 0) == 0 && word == 0);
        word = 77;
        CHECK(mnc2_send(dev, &word, 64, 8, 0) == 0 && mnc2_set_endian_ctrl(dev, 1) == 0);
        CHECK(mnc2_set_idma_complete_max(dev, 9) == 5000);
        mnc2_close(dev);
    }
    PASS();
}

/* The counters of instructions, and snapshots. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    mnc2_kernel_t count = mnc2_load_kernel(dev, "_build/count.idma.dat");
    static mnc2_capture_t capture;
    uint64_t inst = 99;
    CHECK(mnc2_capture_get_inst(dev, &inst) == 0 && inst == 0);
    CHECK(mnc2_capture_set_trigger(dev, MNC2_CAPTURE_B, 12) == 0);
    CHECK(mnc2_capture_set_trigger(dev, MNC2_CAPTURE_E, 1000) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(mnc2_exec_kernel(count) == 0);
    }
    CHECK(mnc2_capture_get_inst(dev, &inst) == 0 && inst == 24);
    CHECK(mnc2_capture_read(dev, MNC2_CAPTURE_A, &capture) == 0);
    CHECK(capture.all_nop == 21 && capture.tag[0] == 21 && capture.power_nop == 21);
    CHECK(mnc2_capture_read(dev, MNC2_CAPTURE_B, &capture) == 0 && capture.all_nop == 10);
    CHECK(mnc2_capture_read(dev, MNC2_CAPTURE_E, &capture) == 0 && capture.all_nop == 0);
    CHECK(mnc2_capture_read(dev, (enum mnc2_capture_sel)5, &capture) == MNC2_ERROR_PARAM);
    CHECK(mnc2_capture_set_trigger(dev, MNC2_CAPTURE_A, 1) == MNC2_ERROR_PARAM);
    CHECK(mnc2_capture_read(dev, MNC2_CAPTURE_A, NULL) == MNC2_ERROR_PARAM);
    CHECK(mnc2_capture_get_inst(NULL, &inst) == MNC2_ERROR_PARAM);
    mnc2_close(dev);
    PASS();
}

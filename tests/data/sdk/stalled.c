/* The counters say for which tag idle steps waited. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(twice, "twice");
    mnc2_capture_t before, after;
    uint64_t steps = 0;
    CHECK(mnc2_capture_read(dev, MNC2_CAPTURE_A, &before) == 0 && before.all_nop == 0);
    CHECK(mnc2_capture_set_trigger(dev, MNC2_CAPTURE_E, 10) == 0);
    CHECK(mnc2_exec_kernel(twice) == 0 && mnc2_capture_get_inst(dev, &steps) == 0 && steps == 44);
    CHECK(mnc2_capture_read(dev, MNC2_CAPTURE_A, &after) == 0);
    CHECK(after.all_nop == 41 && after.empty_nop == 0 && after.tag[0] == after.all_nop && after.tag[0x1e] == 1 && after.tag[0x1d] == 0);
    CHECK(mnc2_capture_read(dev, MNC2_CAPTURE_E, &before) == 0 && before.all_nop == 8);
    CHECK(mnc2_capture_set_trigger(dev, MNC2_CAPTURE_A, 1) == MNC2_ERROR_PARAM);
    CHECK(mnc2_capture_read(dev, MNC2_CAPTURE_B, NULL) == MNC2_ERROR_PARAM && mnc2_capture_get_inst(dev, NULL) == MNC2_ERROR_PARAM);
    mnc2_close(dev);
    PASS();
}

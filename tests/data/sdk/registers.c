/* Only a board has registers. */
#include "check.h"

int main(void) {
    OPEN();
    uint64_t value = 5;
    CHECK(mnc2_read_pio(dev, 0x038, &value) == MNC2_ERROR_DEVICE && value == 5);
    CHECK(mnc2_write_pio(dev, 0x040, 4) == MNC2_ERROR_DEVICE);
    CHECK(mnc2_read_pio(NULL, 0x038, &value) == MNC2_ERROR_PARAM && mnc2_write_pio(NULL, 0x040, 4) == MNC2_ERROR_PARAM);
    mnc2_close(dev);
    PASS();
}

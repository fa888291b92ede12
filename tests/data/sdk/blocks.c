/* Byte order 0 reverses blocks of 64 bytes; parts of a block are refused. */
#include "check.h"

int main(void) {
    OPEN();
    uint8_t data[64], out[64];
    for (int i = 0; i < 64; i++) {
        data[i] = (uint8_t)(3 * i + 1);
    }
    CHECK(mnc2_set_endian_ctrl(dev, 0) == 0 && mnc2_get_endian_ctrl(dev) == 0);
    CHECK(mnc2_send(dev, data, 64, 64, 0) == 0);
    CHECK(mnc2_send(dev, data, 8, 64, 0) == MNC2_ERROR_PARAM && mnc2_send(dev, data, 0, 8, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_set_endian_ctrl(dev, 1) == 0);
    CHECK(mnc2_recv(dev, out, 64, 64, 0) == 0);
    for (int i = 0; i < 64; i++) {
        CHECK(out[i] == data[63 - i]);
    }
    CHECK(mnc2_set_endian_ctrl(dev, 5) == MNC2_ERROR_PARAM && mnc2_set_endian_ctrl(dev, -1) == MNC2_ERROR_PARAM);
    CHECK(mnc2_set_endian_ctrl(NULL, 1) == MNC2_ERROR_PARAM && mnc2_get_endian_ctrl(NULL) < 0);
    mnc2_close(dev);
    PASS();
}

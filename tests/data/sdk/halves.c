/* 16-bit numbers in byte order 2 keep their order in the PDM; the setting counts for later transfers only. */
#include "check.h"

int main(void) {
    OPEN();
    uint16_t data[4] = {0x1122, 0x3344, 0x5566, 0x7788}, out[4];
    uint64_t word = 0;
    CHECK(mnc2_get_endian_ctrl(dev) == 4);
    CHECK(mnc2_set_endian_ctrl(dev, 2) == 0 && mnc2_send(dev, data, 0, 8, 0) == 0);
    CHECK(mnc2_recv(dev, out, 0, 8, 0) == 0 && memcmp(data, out, sizeof out) == 0);
    CHECK(mnc2_debug_read(dev, MNC2_MEM_PDM, NULL, 0, 1, &word) == 0 && word == UINT64_C(0x1122334455667788));
    CHECK(mnc2_set_endian_ctrl(dev, 4) == 0 && mnc2_recv(dev, &word, 0, 8, 0) == 0 && word == UINT64_C(0x1122334455667788));
    mnc2_close(dev);
    PASS();
}

/* The five byte orders: the host sees byte i as byte i XOR m. */
#include "check.h"

int main(void) {
    static const int masks[] = {63, 0, 1, 3, 7};
    mnc2_device_t dev = mnc2_open(0);
    CHECK(mnc2_get_endian_ctrl(dev) == 4);
    uint8_t raw[128], seen[128];
    for (int i = 0; i < 128; i++) {
        raw[i] = (uint8_t)(i * 37 + 11);
    }
    CHECK(mnc2_set_endian_ctrl(dev, 1) == 0);
    CHECK(mnc2_send(dev, raw, 0, sizeof raw, 0) == 0);
    for (int mode = 0; mode < 5; mode++) {
        CHECK(mnc2_set_endian_ctrl(dev, mode) == 0);
        CHECK(mnc2_get_endian_ctrl(dev) == mode);
        CHECK(mnc2_recv(dev, seen, 0, sizeof seen, 0) == 0);
        for (int i = 0; i < 128; i++) {
            CHECK(seen[i] == raw[i ^ masks[mode]]);
        }
        CHECK(mnc2_send(dev, seen, 1024, sizeof seen, 0) == 0);
        CHECK(mnc2_set_endian_ctrl(dev, 1) == 0);
        CHECK(mnc2_recv(dev, seen, 1024, sizeof seen, 0) == 0);
        CHECK(memcmp(seen, raw, sizeof raw) == 0);
    }
    CHECK(mnc2_set_endian_ctrl(dev, 5) == MNC2_ERROR_PARAM);
    CHECK(mnc2_set_endian_ctrl(dev, -1) == MNC2_ERROR_PARAM);
    CHECK(mnc2_get_endian_ctrl(NULL) == MNC2_ERROR_PARAM);
    /* A double is the register's 64 bits. */
    double value = -2.5;
    uint64_t word = 0;
    CHECK(mnc2_set_endian_ctrl(dev, 4) == 0);
    CHECK(mnc2_send(dev, &value, 8, sizeof value, 0) == 0);
    CHECK(mnc2_debug_read(dev, MNC2_MEM_PDM, NULL, 1, 1, &word) == 0);
    CHECK(word == UINT64_C(0xc004000000000000));
    mnc2_close(dev);
    PASS();
}

/* One result in pieces: of a long word, of an odd number of long words, of all the rest. */
#include "check.h"

int main(void) {
    OPEN();
    uint64_t data[512], out[512];
    for (uint64_t i = 0; i < 512; i++) {
        data[i] = i * i;
    }
    CHECK(mnc2_send(dev, data, 1048576, 8, 0) == 0 && mnc2_send(dev, data + 1, 1048584, 24, 0) == 0);
    CHECK(mnc2_send(dev, data + 4, 1048608, sizeof data - 32, 0) == 0);
    CHECK(mnc2_recv(dev, out, 1048576, 4088, 0) == 0 && mnc2_recv(dev, out + 511, 1052664, 8, 0) == 0);
    CHECK(memcmp(data, out, sizeof out) == 0);
    mnc2_close(dev);
    PASS();
}

/* A tag that nobody raises, one that the host raised, one that does not exist. The device goes on. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(copy, "copy");
    uint64_t data[64] = {3}, out[64];
    CHECK(mnc2_recv(dev, out, BLOCK, BLOCK, 0x2a) == MNC2_ERROR_TIMEOUT);
    CHECK(mnc2_send(dev, data, 0, BLOCK, SENT) == 0);
    CHECK(mnc2_recv(dev, out, 0, BLOCK, SENT) == MNC2_ERROR_TIMEOUT);
    CHECK(mnc2_recv(dev, out, 0, BLOCK, 64) == MNC2_ERROR_PARAM && mnc2_recv(dev, out, 0, BLOCK, 0xffffffffu) == MNC2_ERROR_PARAM);
    CHECK(mnc2_exec_kernel(copy) == 0 && mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == 0 && out[0] == 3);
    mnc2_close(dev);
    PASS();
}

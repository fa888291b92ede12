/* All of the PDM in one transfer, and nothing behind it. */
#include "check.h"

int main(void) {
    OPEN();
    const size_t bytes = 4194304;
    uint64_t *data = (uint64_t *)mnc2_alloc_host_buffer(dev, bytes), *out = (uint64_t *)mnc2_alloc_host_buffer(dev, bytes);
    CHECK(data != NULL && out != NULL);
    for (uint64_t i = 0; i < bytes / 8; i++) {
        data[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    }
    CHECK(mnc2_send(dev, data, 0, bytes, 0) == 0 && mnc2_recv(dev, out, 0, bytes, 0) == 0 && memcmp(data, out, bytes) == 0);
    CHECK(mnc2_recv(dev, out, bytes - 8, 8, 0) == 0 && out[0] == data[bytes / 8 - 1]);
    CHECK(mnc2_recv(dev, out, bytes - 8, 16, 0) == MNC2_ERROR_PARAM && mnc2_send(dev, data, 8, bytes, 0) == MNC2_ERROR_PARAM);
    mnc2_free_host_buffer(dev, data, bytes);
    mnc2_free_host_buffer(dev, out, bytes);
    mnc2_close(dev);
    PASS();
}

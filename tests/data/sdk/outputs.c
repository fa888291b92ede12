/* One launch, three receives with tags of their own, in another order than the kernel raises them. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    uint64_t data[128], out[64];
    for (int i = 0; i < 128; i++) {
        data[i] = 1000u + (uint64_t)i;
    }
    CHECK(mnc2_send(dev, data, 0, sizeof data, 0) == 0);
    mnc2_kernel_t kernel = mnc2_load_kernel(dev, "_build/three.idma.dat");
    CHECK(mnc2_exec_kernel(kernel) == 0);
    mnc2_free_kernel(kernel);
    CHECK(mnc2_recv(dev, out, 2048, sizeof out, 0x1c) == 0 && memcmp(out, data, sizeof out) == 0);
    CHECK(mnc2_recv(dev, out, 1024, sizeof out, 0x1e) == 0 && memcmp(out, data + 64, sizeof out) == 0);
    CHECK(mnc2_recv(dev, out, 1536, sizeof out, 0x1d) == 0 && memcmp(out, data, sizeof out) == 0);
    CHECK(mnc2_recv(dev, out, 1536, sizeof out, 0x1d) == MNC2_ERROR_TIMEOUT);
    mnc2_close(dev);
    PASS();
}

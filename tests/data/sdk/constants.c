/* A kernel without input: no send, and no tag to wait for. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    mnc2_kernel_t kernel = mnc2_load_kernel(dev, "_build/constant.idma.dat");
    uint64_t out[64];
    memset(out, 0, sizeof out);
    CHECK(mnc2_exec_kernel(kernel) == 0);
    CHECK(mnc2_recv(dev, out, 0, sizeof out, 0x1e) == 0);
    for (int i = 0; i < 64; i++) {
        CHECK(out[i] == (UINT64_C(7) << 32 | 9));
    }
    mnc2_free_kernel(kernel);
    mnc2_close(dev);
    PASS();
}

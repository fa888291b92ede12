/* Arrays of float in byte order 3: the device computes on them in their order. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    float data[128], out[128];
    for (int i = 0; i < 128; i++) {
        data[i] = (float)i * 0.5f - 7.25f;
    }
    CHECK(mnc2_set_endian_ctrl(dev, 3) == 0);
    mnc2_kernel_t kernel = mnc2_load_kernel(dev, "_build/floats.idma.dat");
    CHECK(kernel != NULL);
    CHECK(mnc2_send(dev, data, 0, sizeof data, 0x10) == 0);
    CHECK(mnc2_exec_kernel(kernel) == 0);
    CHECK(mnc2_recv(dev, out, 512, sizeof out, 0x1e) == 0);
    for (int i = 0; i < 128; i++) {
        CHECK(out[i] == 2.0f * data[i]);
    }
    mnc2_close(dev);
    PASS();
}

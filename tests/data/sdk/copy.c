/* Send, load, execute, free, receive, as public programs do. Handles are declared as pointers to them, which is legal too. */
#include "check.h"

int main(void) {
    mnc2_device_t *dev = mnc2_open(0);
    CHECK(dev != NULL);
    uint64_t *in = mnc2_alloc_host_buffer(dev, 512);
    uint64_t *out = mnc2_alloc_host_buffer(dev, 512);
    CHECK(in != NULL && out != NULL);
    for (int i = 0; i < 64; i++) {
        in[i] = (uint64_t)i << 56 | 0x1234;
    }
    memset(out, 0, 512);
    CHECK(mnc2_send(dev, in, 0, 256, 0) == MNC2_SUCCESS);
    CHECK(mnc2_send(dev, in + 32, 256, 256, 0x10) == MNC2_SUCCESS);
    mnc2_kernel_t *kernel = mnc2_load_kernel(dev, "_build/copy.idma.dat");
    CHECK(kernel != NULL);
    CHECK(mnc2_exec_kernel(kernel) == MNC2_SUCCESS);
    mnc2_free_kernel(kernel);
    CHECK(mnc2_recv(dev, out, 512, 512, 0x1e) == MNC2_SUCCESS);
    CHECK(memcmp(in, out, 512) == 0);
    /* Other memory of the program serves too. */
    uint64_t local[8];
    CHECK(mnc2_recv(dev, local, 512, sizeof local, 0) == MNC2_SUCCESS);
    CHECK(memcmp(local, in, sizeof local) == 0);
    mnc2_free_host_buffer(dev, in, 512);
    mnc2_free_host_buffer(dev, out, 512);
    mnc2_free_host_buffer(dev, NULL, 0);
    mnc2_free_kernel(NULL);
    mnc2_close(dev);
    PASS();
}

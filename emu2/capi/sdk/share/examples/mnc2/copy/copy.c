/* Sends an array, lets a kernel copy it inside of the PDM, and receives the copy. */
#include <mnc2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 64, BYTES = WORDS * 8, SEND_TAG = 0x10, RECV_TAG = 0x1e };

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    if (dev == NULL) {
        return 1;
    }
    uint64_t *in = mnc2_alloc_host_buffer(dev, BYTES);
    uint64_t *out = mnc2_alloc_host_buffer(dev, BYTES);
    mnc2_kernel_t kernel = mnc2_load_kernel(dev, "_build/copy.idma.dat");
    if (in == NULL || out == NULL || kernel == NULL) {
        return 1;
    }
    for (int i = 0; i < WORDS; i++) {
        in[i] = (uint64_t)i;
    }
    int code = mnc2_send(dev, in, 0, BYTES, SEND_TAG);
    if (code == MNC2_SUCCESS) {
        code = mnc2_exec_kernel(kernel);
    }
    mnc2_free_kernel(kernel);
    if (code == MNC2_SUCCESS) {
        code = mnc2_recv(dev, out, BYTES, BYTES, RECV_TAG);
    }
    int passed = code == MNC2_SUCCESS && memcmp(in, out, BYTES) == 0;
    printf("%s on %s\n", passed ? "PASS" : "FAIL", mnc2_get_backend_name(dev));
    mnc2_free_host_buffer(dev, in, BYTES);
    mnc2_free_host_buffer(dev, out, BYTES);
    mnc2_close(dev);
    return passed ? 0 : 1;
}

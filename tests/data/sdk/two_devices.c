/* Two devices at once: memories, queues and byte orders of their own; a kernel knows its device. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0), other = mnc2_open(1);
    CHECK(dev != NULL && other != NULL && dev != other);
    KERNEL(mine, "copy");
    mnc2_kernel_t theirs = mnc2_load_kernel(other, "_build/copy.idma.dat");
    uint64_t one[64] = {1}, two[64] = {2}, out[64];
    CHECK(mnc2_set_endian_ctrl(other, 3) == 0 && mnc2_get_endian_ctrl(dev) == 4 && mnc2_set_endian_ctrl(other, 4) == 0);
    CHECK(mnc2_send(dev, one, 0, BLOCK, SENT) == 0 && mnc2_send(other, two, 0, BLOCK, SENT) == 0);
    CHECK(mnc2_exec_kernel(theirs) == 0);
    CHECK(mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == MNC2_ERROR_TIMEOUT);
    CHECK(mnc2_recv(other, out, BLOCK, BLOCK, DONE) == 0 && out[0] == 2);
    mnc2_close(other);
    CHECK(mnc2_exec_kernel(theirs) == MNC2_ERROR_KERNEL);
    CHECK(mnc2_exec_kernel(mine) == 0 && mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == 0 && out[0] == 1);
    mnc2_close(dev);
    PASS();
}

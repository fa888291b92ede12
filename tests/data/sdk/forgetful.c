/* EMU2_FORGET gives the vendor's behaviour of emu:process: memories are zero at the start of each run. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <stdlib.h>

int main(void) {
    setenv("EMU2_FORGET", "1", 1);
    OPEN();
    KERNEL(keep, "keep");
    KERNEL(twice, "twice");
    uint64_t data[64] = {5}, out[64];
    CHECK(mnc2_send(dev, data, 0, BLOCK, 0) == 0 && mnc2_exec_kernel(keep) == 0 && mnc2_exec_kernel(twice) == 0);
    CHECK(mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == 0 && out[0] == 10);
    CHECK(mnc2_exec_kernel(twice) == 0 && mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == 0 && out[0] == 0);
    mnc2_close(dev);
    PASS();
}

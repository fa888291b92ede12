/* The host receives what nothing has written: a sanitizer says so. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(kernel, "undefined");
    uint64_t out[64];
    CHECK(mnc2_exec_kernel(kernel) == 0 && mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == 0);
    mnc2_close(dev);
    PASS();
}

/* A kernel may be freed without a run and directly after one; a freed one is refused. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(idle, "count");
    mnc2_free_kernel(idle);
    mnc2_free_kernel(idle);
    mnc2_free_kernel(NULL);
    CHECK(mnc2_exec_kernel(idle) == MNC2_ERROR_KERNEL);
    KERNEL(count, "count");
    uint64_t word = 0;
    CHECK(mnc2_exec_kernel(count) == 0);
    mnc2_free_kernel(count);
    CHECK(mnc2_debug_read(dev, MNC2_MEM_LM0, NULL, 1, 1, &word) == 0 && word == 1);
    KERNEL(left, "count");
    mnc2_close(dev);
    mnc2_free_kernel(left);
    PASS();
}

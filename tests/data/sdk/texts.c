/* A kernel from a text in memory; a wrong one gives a message with its line. Messages belong to threads. */
#include "check.h"
#include <emu2.h>

int main(void) {
    OPEN();
    uint64_t word = 0;
    mnc2_kernel_t kernel = emu2_load_kernel_text(dev, "linc $lm0 $lm0\nnop/4\n");
    CHECK(kernel != NULL && mnc2_exec_kernel(kernel) == 0 && mnc2_exec_kernel(kernel) == 0);
    CHECK(mnc2_debug_read(dev, MNC2_MEM_LM0, NULL, 0, 1, &word) == 0 && word == 2);
    CHECK(emu2_load_kernel_text(dev, "nop\nfly $lm0\n") == NULL);
    CHECK(strstr(emu2_last_error(), "A0102") != NULL && strstr(emu2_last_error(), ":2:") != NULL);
    CHECK(emu2_load_kernel_text(dev, NULL) == NULL && emu2_load_kernel_text(NULL, "nop\n") == NULL);
    for (int code = MNC2_ERROR_BUSY; code < MNC2_SUCCESS; code++) {
        CHECK(strcmp(emu2_strerror(code), emu2_strerror(code + 1)) != 0);
    }
    mnc2_close(dev);
    PASS();
}

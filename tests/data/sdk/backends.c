/* The name and the number of the back end agree, with and without a device. */
#include "check.h"

int main(void) {
    int number = mnc2_get_backend();
    CHECK(number == MNC2_BACKEND_EMU_LIB || number == MNC2_BACKEND_EMU_PROCESS);
    OPEN();
    const char *name = mnc2_get_backend_name(dev);
    CHECK(strcmp(name, number == MNC2_BACKEND_EMU_LIB ? "emu:lib" : "emu:process") == 0);
    CHECK(strcmp(mnc2_get_backend_name(NULL), "unknown") == 0);
    mnc2_close(dev);
    CHECK(mnc2_get_backend() == number && strcmp(mnc2_get_backend_name(dev), "unknown") == 0);
    PASS();
}

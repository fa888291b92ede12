/* EMU2_STATE keeps the memories of a device in a file, from close to open; a damaged file is refused. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <emu2.h>
#include <stdlib.h>

int main(void) {
    setenv("EMU2_STATE", "kept.state", 1);
    remove("kept.state");
    uint64_t words[4] = {1, 2, 3, 4}, out[4] = {0};
    mnc2_loc_t place = {3, 1, 6, 10, 2};
    mnc2_device_t dev = mnc2_open(0);
    CHECK(mnc2_send(dev, words, 4194272, 32, 0) == 0 && mnc2_debug_write(dev, MNC2_MEM_GRF1, &place, 100, 4, words) == 0);
    mnc2_close(dev);
    dev = mnc2_open(0);
    CHECK(dev != NULL && mnc2_recv(dev, out, 4194272, 32, 0) == 0 && memcmp(words, out, 32) == 0);
    CHECK(mnc2_debug_read(dev, MNC2_MEM_GRF1, &place, 100, 4, out) == 0 && memcmp(words, out, 32) == 0);
    mnc2_close(dev);
    FILE *file = fopen("kept.state", "r+b");
    CHECK(file != NULL && fseek(file, 60, SEEK_SET) == 0 && fputc('x', file) == 'x' && fclose(file) == 0);
    CHECK(mnc2_open(0) == NULL && strstr(emu2_last_error(), "F0009") != NULL);
    file = fopen("kept.state", "wb");
    CHECK(file != NULL && fputs("no state", file) >= 0 && fclose(file) == 0 && mnc2_open(0) == NULL);
    CHECK(remove("kept.state") == 0);
    PASS();
}

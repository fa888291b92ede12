/* Pools of tags, waits and register sets. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    unsigned int number = 0, seen[64] = {0};
    int done = -1;
    for (int i = 0; i < 63; i++) {
        CHECK(mnc2_tag_alloc(dev, &number) == 0);
        CHECK(number >= 1 && number <= 63 && seen[number]++ == 0);
    }
    CHECK(mnc2_tag_alloc(dev, &number) == MNC2_ERROR_BUSY);
    CHECK(mnc2_tag_free(dev, 0x1e) == 0);
    CHECK(mnc2_tag_free(dev, 0x1e) == MNC2_ERROR_PARAM);
    CHECK(mnc2_tag_alloc(dev, &number) == 0 && number == 0x1e);
    CHECK(mnc2_tag_set_size(dev, 0x1e, 512) == 0);
    CHECK(mnc2_tag_set_size(dev, 0x1e, 1u << 23) == MNC2_ERROR_PARAM);
    CHECK(mnc2_tag_check_done(dev, 0x1e, &done) == 0 && done == 0);
    CHECK(mnc2_tag_wait(dev, 0x1e) == MNC2_ERROR_TIMEOUT);
    mnc2_kernel_t copy = mnc2_load_kernel(dev, "_build/copy.idma.dat");
    uint64_t data[64] = {1};
    CHECK(mnc2_exec_kernel(copy) == 0);
    CHECK(mnc2_wd_alloc(dev, &number) == 0 && number == 1);
    CHECK(mnc2_wd_wait(dev, 1) == 0);
    CHECK(mnc2_wd_wait(dev, 0x10) == MNC2_ERROR_PARAM);
    CHECK(mnc2_wd_clear(dev, 5) == 0);
    CHECK(mnc2_wd_free(dev, 1) == 0);
    CHECK(mnc2_send(dev, data, 0, sizeof data, 0x10) == 0);
    CHECK(mnc2_tag_wait(dev, 0x1e) == 0);
    CHECK(mnc2_tag_check_done(dev, 0x1e, &done) == 0 && done == 1);
    CHECK(mnc2_tag_clear(dev, 0x1e) == 0);
    CHECK(mnc2_recv(dev, data, 512, sizeof data, 0x1e) == 0);
    for (unsigned int i = 0; i < 64; i++) {
        CHECK(mnc2_regset_alloc(dev, &number) == 0 && number == i);
    }
    CHECK(mnc2_regset_alloc(dev, &number) == MNC2_ERROR_BUSY);
    CHECK(mnc2_async_send(dev, data, 0, 8, 0) == NULL);
    CHECK(mnc2_regset_free(dev, 9) == 0);
    CHECK(mnc2_regset_free(dev, 64) == MNC2_ERROR_PARAM);
    CHECK(mnc2_tag_alloc(NULL, &number) == MNC2_ERROR_PARAM);
    CHECK(mnc2_wd_alloc(dev, NULL) == MNC2_ERROR_PARAM);
    mnc2_close(dev);
    PASS();
}

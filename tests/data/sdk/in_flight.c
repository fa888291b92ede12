/* Transfers beside the caller end in any order; each uses up its own signal. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(three, "three");
    uint64_t data[128], out[3][64];
    static const unsigned tags[3] = {0x1c, 0x1d, 0x1e};
    static const uint64_t offsets[3] = {2048, 1536, 1024};
    mnc2_dma_handle_t receives[3];
    int done = -1;
    for (uint64_t i = 0; i < 128; i++) {
        data[i] = i;
    }
    for (int i = 0; i < 3; i++) {
        receives[i] = mnc2_async_recv(dev, out[i], offsets[i], BLOCK, tags[i]);
        CHECK(receives[i] != NULL && mnc2_async_poll(receives[i], &done) == 0 && done == 0);
    }
    mnc2_dma_handle_t send = mnc2_async_send(dev, data, 0, sizeof data, 0);
    CHECK(send != NULL && mnc2_async_wait(send) == 0);
    mnc2_async_release(send);
    CHECK(mnc2_exec_kernel(three) == 0 && mnc2_wait_ddma_idle(dev) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(mnc2_async_poll(receives[i], &done) == 0 && done == 1 && mnc2_async_wait(receives[i]) == 0);
        mnc2_async_release(receives[i]);
        CHECK(memcmp(out[i], data + (i == 2 ? 64 : 0), BLOCK) == 0);
    }
    CHECK(mnc2_async_poll(receives[0], &done) == MNC2_ERROR_PARAM);
    CHECK(mnc2_async_recv(dev, out, 4, 8, 0) == NULL && mnc2_async_send(dev, NULL, 0, 8, 0) == NULL);
    mnc2_close(dev);
    PASS();
}

/* Transfers beside the caller, and status of the channels. */
#include "check.h"

int main(void) {
    mnc2_device_t dev = mnc2_open(0);
    mnc2_kernel_t copy = mnc2_load_kernel(dev, "_build/copy.idma.dat");
    uint64_t data[64], out[64] = {0}, more[8];
    mnc2_ddma_stat_t stat;
    int done = -1;
    for (int i = 0; i < 64; i++) {
        data[i] = (uint64_t)i + 5;
    }
    mnc2_dma_handle_t receive = mnc2_async_recv(dev, out, 512, sizeof out, 0x1e);
    CHECK(receive != NULL);
    CHECK(mnc2_async_poll(receive, &done) == 0 && done == 0);
    CHECK(mnc2_async_wait(receive) == MNC2_ERROR_TIMEOUT);
    CHECK(mnc2_wait_ddma_idle(dev) == MNC2_ERROR_TIMEOUT);
    CHECK(mnc2_get_ddma_stat(dev, &stat) == 0);
    CHECK(stat.pdm_to_host[0].active == 1 && stat.pdm_to_host[0].n_dma == 1 && stat.host_to_pdm[0].active == 0);
    CHECK(mnc2_exec_kernel(copy) == 0);
    mnc2_dma_handle_t send = mnc2_async_send(dev, data, 0, sizeof data, 0x10);
    CHECK(send != NULL);
    CHECK(mnc2_async_wait(send) == 0);
    CHECK(mnc2_async_wait(receive) == 0);
    CHECK(memcmp(data, out, sizeof out) == 0);
    CHECK(mnc2_async_poll(receive, &done) == 0 && done == 1);
    mnc2_async_release(send);
    mnc2_async_release(receive);
    CHECK(mnc2_async_poll(receive, &done) == MNC2_ERROR_PARAM);
    receive = mnc2_async_recv(dev, more, 0, sizeof more, 0);
    CHECK(mnc2_wait_ddma_idle(dev) == 0);
    CHECK(memcmp(more, data, sizeof more) == 0);
    mnc2_async_release(receive);
    CHECK(mnc2_async_send(dev, data, 4, 8, 0) == NULL);
    CHECK(mnc2_async_send(NULL, data, 0, 8, 0) == NULL);
    CHECK(mnc2_async_recv(dev, NULL, 0, 8, 0) == NULL);
    CHECK(mnc2_async_wait(NULL) == MNC2_ERROR_PARAM);
    mnc2_async_release(NULL);
    mnc2_close(dev);
    PASS();
}

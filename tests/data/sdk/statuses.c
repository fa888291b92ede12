/* Status of an idle device and of one with a kernel and a transfer that wait. */
#include "check.h"

int main(void) {
    OPEN();
    KERNEL(copy, "copy");
    uint64_t out[64];
    mnc2_idma_stat_t kernels = {7, 7, 7};
    mnc2_ddma_stat_t transfers;
    CHECK(mnc2_get_idma_stat(dev, &kernels) == 0 && kernels.n_dma == 0 && kernels.inst_in_ibuf == 0 && kernels.overflow == 0);
    CHECK(mnc2_get_ddma_stat(dev, &transfers) == 0 && transfers.pdm_to_host[0].active == 0 && transfers.host_to_pdm[0].n_dma == 0);
    CHECK(mnc2_exec_kernel(copy) == 0 && mnc2_exec_kernel(copy) == 0);
    mnc2_dma_handle_t receive = mnc2_async_recv(dev, out, BLOCK, BLOCK, DONE);
    CHECK(mnc2_get_idma_stat(dev, &kernels) == 0 && kernels.n_dma == 2);
    CHECK(mnc2_get_ddma_stat(dev, &transfers) == 0);
    CHECK(transfers.pdm_to_host[0].active == 1 && transfers.pdm_to_host[0].n_dma == 1 && transfers.host_to_pdm[0].active == 0);
    CHECK(mnc2_reset(dev) == 0 && mnc2_get_idma_stat(dev, &kernels) == 0 && kernels.n_dma == 0);
    CHECK(mnc2_async_wait(receive) == MNC2_ERROR_DMA);
    mnc2_async_release(receive);
    mnc2_close(dev);
    PASS();
}

/* The lower library: transfers by register set, registers, the window, a kernel. */
#include "check.h"
#include <gpfn3.h>

int main(void) {
    gpfn3_device_id_t dev = gpfn3_get_device_id(0);
    CHECK(dev != GPFN3_INVALID_DEVICE_ID);
    CHECK(gpfn3_reset_device(dev) == GPFN3_SUCCESS);
    uint64_t value = 0;
    CHECK(gpfn3_read_pio(dev, 0x40, &value) == GPFN3_SUCCESS && value == 4);
    uint64_t *host = (uint64_t *)gpfn3_allocate_dma_memory(dev, 512);
    for (int i = 0; i < 64; i++) {
        host[i] = (uint64_t)i + 1;
    }
    struct gpfn3_data_dma_kick_t kick;
    memset(&kick, 0, sizeof kick);
    kick.direction = GPFN3_DMA_DIRECTION_TO_DEVICE;
    kick.regset = 3;
    kick.channel = GPFN3_DMA_CHANNEL_CH0;
    kick.wd = 0x10;
    kick.size = 512 / 4;
    CHECK(gpfn3_kick_data_dma(dev, kick) != GPFN3_SUCCESS);
    CHECK(gpfn3_set_regset(dev, 3, host, 0) == GPFN3_SUCCESS);
    CHECK(gpfn3_kick_data_dma(dev, kick) == GPFN3_SUCCESS);
    static uint8_t kernel[4096];
    FILE *file = fopen("_build/copy.idma.dat", "rb");
    size_t size = fread(kernel, 1, sizeof kernel, file);
    fclose(file);
    CHECK(gpfn3_kick_inst_dma(dev, kernel, 127) != GPFN3_SUCCESS);
    CHECK(gpfn3_kick_inst_dma(dev, kernel, size) == GPFN3_SUCCESS);
    uint64_t *window = gpfn3_map_pdm(dev);
    CHECK(window != NULL && window[64] == 1 && window[127] == 64);
    window[0] = 77;
    CHECK(gpfn3_set_regset(dev, 4, host, 0) == GPFN3_SUCCESS);
    kick.regset = 4;
    kick.wd = 0;
    kick.direction = GPFN3_DMA_DIRECTION_FROM_DEVICE;
    CHECK(gpfn3_kick_data_dma(dev, kick) == GPFN3_SUCCESS && host[0] == 77 && host[1] == 2);
    CHECK(gpfn3_unmap_pdm(dev, window) == GPFN3_SUCCESS);
    /* DRAM of group 0, by channel 3. */
    CHECK(gpfn3_set_regset(dev, 5, host, 4096) == GPFN3_SUCCESS);
    kick.regset = 5;
    kick.channel = GPFN3_DMA_CHANNEL_CH3;
    kick.direction = GPFN3_DMA_DIRECTION_TO_DEVICE;
    CHECK(gpfn3_kick_data_dma(dev, kick) == GPFN3_SUCCESS);
    memset(host, 0, 512);
    kick.direction = GPFN3_DMA_DIRECTION_FROM_DEVICE;
    CHECK(gpfn3_kick_data_dma(dev, kick) == GPFN3_SUCCESS && host[0] == 77 && host[63] == 64);
    CHECK(gpfn3_read_pio(dev, 0x38, &value) == GPFN3_SUCCESS && (value & UINT64_C(0x401f401f401f401f)) == 0);
    CHECK(gpfn3_read_pio(dev, 0x18, &value) == GPFN3_SUCCESS && value == 0);
    CHECK(gpfn3_write_descriptor(dev, 2, 5) == GPFN3_SUCCESS);
    CHECK(gpfn3_read_pio(dev, 0x10010, &value) == GPFN3_SUCCESS && value == 5);
    CHECK(gpfn3_kick_inst_dma2(dev, 0, 1) == 14);
    CHECK(gpfn3_capture_get_inst(dev, &value) == GPFN3_SUCCESS && value > 0);
    CHECK(gpfn3_free_dma_memory(dev, host, 512) == GPFN3_SUCCESS);
    CHECK(gpfn3_close_device(dev) == GPFN3_SUCCESS);
    CHECK(gpfn3_close_device(dev) != GPFN3_SUCCESS);
    PASS();
}

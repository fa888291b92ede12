/* The lower library: transfers by register set and channel, registers. Public programs show how it is used; nobody states it.
 * guess: types, the order of fields, and the values of constants. */
#ifndef EMU2_GPFN3_H
#define EMU2_GPFN3_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int gpfn3_device_id_t;
typedef int gpfn3_error_t;

#define GPFN3_SUCCESS 0
#define GPFN3_INVALID_DEVICE_ID (-1)

enum GPFN3_DMA_DIRECTION { GPFN3_DMA_DIRECTION_TO_DEVICE = 0, GPFN3_DMA_DIRECTION_FROM_DEVICE = 1 };

enum GPFN3_DMA_CHANNEL {
    GPFN3_DMA_CHANNEL_CH0 = 0,
    GPFN3_DMA_CHANNEL_CH1 = 1,
    GPFN3_DMA_CHANNEL_CH2 = 2,
    GPFN3_DMA_CHANNEL_CH3 = 3
};

enum GPFN3_CAPTURE_SEL {
    GPFN3_CAPTURE_A = 0,
    GPFN3_CAPTURE_B = 1,
    GPFN3_CAPTURE_C = 2,
    GPFN3_CAPTURE_D = 3,
    GPFN3_CAPTURE_E = 4
};

struct gpfn3_data_dma_kick_t {
    enum GPFN3_DMA_DIRECTION direction;
    unsigned int regset;
    enum GPFN3_DMA_CHANNEL channel;
    unsigned int wd;
    size_t size; /* units of 4 bytes */
};

#if defined(__GNUC__)
#define EMU2_UNNAMED_UNION __extension__ union
#else
#define EMU2_UNNAMED_UNION union
#endif

struct gpfn3_capture_t {
    uint64_t all_nop;
    uint64_t empty_nop;
    EMU2_UNNAMED_UNION {
        uint64_t power_nop;
        uint64_t tag[256];
    };
};

#undef EMU2_UNNAMED_UNION

gpfn3_device_id_t gpfn3_get_device_id(int number);
gpfn3_error_t gpfn3_close_device(gpfn3_device_id_t dev);
gpfn3_error_t gpfn3_reset_device(gpfn3_device_id_t dev);

gpfn3_error_t gpfn3_read_pio(gpfn3_device_id_t dev, unsigned int addr, uint64_t *val);
gpfn3_error_t gpfn3_write_pio(gpfn3_device_id_t dev, unsigned int addr, uint64_t val);

/* A window on the first MiB of PDM 0. What a program writes reaches the device with its next call. */
uint64_t *gpfn3_map_pdm(gpfn3_device_id_t dev);
gpfn3_error_t gpfn3_unmap_pdm(gpfn3_device_id_t dev, uint64_t *window);

void *gpfn3_allocate_dma_memory(gpfn3_device_id_t dev, size_t size);
gpfn3_error_t gpfn3_free_dma_memory(gpfn3_device_id_t dev, void *ptr, size_t size);

gpfn3_error_t gpfn3_set_regset(gpfn3_device_id_t dev, unsigned int regset, const void *host, uint64_t pdm);
gpfn3_error_t gpfn3_kick_data_dma(gpfn3_device_id_t dev, struct gpfn3_data_dma_kick_t kick);
gpfn3_error_t gpfn3_kick_inst_dma(gpfn3_device_id_t dev, const void *ptr, size_t size);
gpfn3_error_t gpfn3_kick_inst_dma2(gpfn3_device_id_t dev, size_t dm_index, size_t dm_count);
gpfn3_error_t gpfn3_write_descriptor(gpfn3_device_id_t dev, unsigned int index, uint64_t descriptor);
gpfn3_error_t gpfn3_set_descriptor_regset(gpfn3_device_id_t dev, unsigned int regset, uint64_t *table, size_t dm_index);

gpfn3_error_t gpfn3_capture_set_inst(gpfn3_device_id_t dev, enum GPFN3_CAPTURE_SEL sel, uint64_t count);
gpfn3_error_t gpfn3_capture_read(gpfn3_device_id_t dev, enum GPFN3_CAPTURE_SEL sel, struct gpfn3_capture_t *out);
gpfn3_error_t gpfn3_capture_get_inst(gpfn3_device_id_t dev, uint64_t *count);
gpfn3_error_t gpfn3_capture_get_all_nop(gpfn3_device_id_t dev, uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif

/* Host programs for MN-Core 2: devices, transfers, kernels. Works in C99 and later and in C++.
 *
 * Functions that return int return MNC2_SUCCESS or a negative code. A call never ends the process. Messages go to stderr.
 * docs/c.md of emu2 describes each function and says what is a guess. */
#ifndef EMU2_MNC2_H
#define EMU2_MNC2_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Handles. They are looked up, never dereferenced. Public programs declare `mnc2_device_t dev` and `mnc2_device_t *dev` for the
 * same calls, so the type must be one that C converts: guess. */
typedef void *mnc2_device_t;
typedef void *mnc2_kernel_t;
typedef struct mnc2_dma_handle *mnc2_dma_handle_t;

/* Codes. */
#define MNC2_SUCCESS 0
#define MNC2_ERROR_DEVICE (-1)
#define MNC2_ERROR_DMA (-2)
#define MNC2_ERROR_PIO (-3)
#define MNC2_ERROR_IO (-4)
#define MNC2_ERROR_TIMEOUT (-5)
#define MNC2_ERROR_ENV (-6)
#define MNC2_ERROR_PARAM (-7)
#define MNC2_ERROR_KERNEL (-8)
#define MNC2_ERROR_BUSY (-9)

/* Back ends. */
#define MNC2_BACKEND_UNKNOWN (-1)
#define MNC2_BACKEND_DEVICE 0
#define MNC2_BACKEND_EMU_PROCESS 1
#define MNC2_BACKEND_EMU_LIB 2

/* Memory regions of the debugger's access. guess: the numbers. */
enum mnc2_mem_region {
    MNC2_MEM_PDM = 0,
    MNC2_MEM_DRAM = 1,
    MNC2_MEM_L2BM = 2,
    MNC2_MEM_L1BM = 3,
    MNC2_MEM_LM0 = 4,
    MNC2_MEM_LM1 = 5,
    MNC2_MEM_GRF0 = 6,
    MNC2_MEM_GRF1 = 7
};

/* A place: group 0..3, L2B 0..1, L1B 0..7, MAB 0..15, PE 0..3. A region reads only the numbers of its level. */
typedef struct {
    int chip;
    int l2b;
    int l1b;
    int mab;
    int pe;
} mnc2_loc_t;

#define MNC2_LOC_INIT {0, 0, 0, 0, 0}

typedef struct {
    int active;   /* 1: a transfer runs */
    int regset;   /* the register set in use, 0..63 */
    int overflow; /* the queue has overflowed at some time */
    int n_dma;    /* queued transfers, 0..31 */
} mnc2_ddma_ch_stat_t;

typedef struct {
    mnc2_ddma_ch_stat_t host_to_pdm[2];
    mnc2_ddma_ch_stat_t pdm_to_host[2];
} mnc2_ddma_stat_t;

typedef struct {
    int n_dma;        /* queued kernels */
    int inst_in_ibuf; /* instructions in the buffer */
    int overflow;     /* the buffer has overflowed */
} mnc2_idma_stat_t;

/* The union has no name in C11, in C++ and in the GNU dialects of older standards. */
#if defined(__GNUC__)
#define EMU2_UNNAMED_UNION __extension__ union
#else
#define EMU2_UNNAMED_UNION union
#endif

typedef struct {
    uint64_t all_nop;
    uint64_t empty_nop;
    EMU2_UNNAMED_UNION {
        uint64_t power_nop;
        uint64_t tag[256]; /* tag[0] counts all */
    };
} mnc2_capture_t;

#undef EMU2_UNNAMED_UNION

enum mnc2_capture_sel {
    MNC2_CAPTURE_A = 0, /* the counters now */
    MNC2_CAPTURE_B = 1, /* B to E: when the instruction counter reached a value */
    MNC2_CAPTURE_C = 2,
    MNC2_CAPTURE_D = 3,
    MNC2_CAPTURE_E = 4
};

/* Devices. */
mnc2_device_t mnc2_open(int device_number);
void mnc2_close(mnc2_device_t dev);
int mnc2_reset(mnc2_device_t dev);
const char *mnc2_get_backend_name(mnc2_device_t dev);
int mnc2_get_backend(void);

/* Registers of a board, and waits. */
int mnc2_read_pio(mnc2_device_t dev, uint64_t addr, uint64_t *val_out);
int mnc2_write_pio(mnc2_device_t dev, uint64_t addr, uint64_t val);
int mnc2_wait_ddma_idle(mnc2_device_t dev);
int mnc2_wait_idma_idle(mnc2_device_t dev);
int mnc2_get_ddma_kick_verify_max(mnc2_device_t dev);
int mnc2_set_ddma_kick_verify_max(mnc2_device_t dev, int cnt);
int mnc2_get_ddma_complete_max(mnc2_device_t dev);
int mnc2_set_ddma_complete_max(mnc2_device_t dev, int cnt);
int mnc2_get_idma_kick_verify_max(mnc2_device_t dev);
int mnc2_set_idma_kick_verify_max(mnc2_device_t dev, int cnt);
int mnc2_get_idma_complete_max(mnc2_device_t dev);
int mnc2_set_idma_complete_max(mnc2_device_t dev, int cnt);

/* Buffers of the host. Sizes are bytes. */
void *mnc2_alloc_host_buffer(mnc2_device_t dev, size_t size);
void mnc2_free_host_buffer(mnc2_device_t dev, void *buf, size_t size);

/* Transfers between the host and PDM of group 0. Offsets and sizes are bytes and multiples of 8; tags are 0..63, 0: none. */
int mnc2_send(mnc2_device_t dev, const void *buf, uint64_t pdm_offset, size_t size, unsigned int send_wait_tag);
int mnc2_recv(mnc2_device_t dev, void *buf, uint64_t pdm_offset, size_t size, unsigned int recv_wait_tag);

/* Byte order of transfers, 0..4; 4, 64-bit numbers, after opening. */
int mnc2_set_endian_ctrl(mnc2_device_t dev, int endian_ctrl);
int mnc2_get_endian_ctrl(const mnc2_device_t dev);

/* Kernels. */
mnc2_kernel_t mnc2_load_kernel(mnc2_device_t dev, const char *path);
int mnc2_exec_kernel(mnc2_kernel_t kernel);
void mnc2_free_kernel(mnc2_kernel_t kernel);
int mnc2_kernel_get_dma_tags(mnc2_kernel_t kernel, uint8_t *tags_wd, uint8_t *tags_mv, int max_tags, int *out_wd_count,
                             int *out_mv_count);

/* A debugger's access. Addresses and counts are long words of 8 bytes. */
int mnc2_debug_read(mnc2_device_t dev, int mem_region, const mnc2_loc_t *loc, int addr, int count, uint64_t *out);
int mnc2_debug_write(mnc2_device_t dev, int mem_region, const mnc2_loc_t *loc, int addr, int count, const uint64_t *data);

/* Status. */
int mnc2_get_ddma_stat(mnc2_device_t dev, mnc2_ddma_stat_t *out);
int mnc2_get_idma_stat(mnc2_device_t dev, mnc2_idma_stat_t *out);
int mnc2_get_wdbit_status(mnc2_device_t dev, uint64_t *wait_mask);
int mnc2_clear_wdbit(mnc2_device_t dev, unsigned int wd);

/* Counters of instructions. */
int mnc2_capture_get_inst(mnc2_device_t dev, uint64_t *inst);
int mnc2_capture_set_trigger(mnc2_device_t dev, enum mnc2_capture_sel sel, uint64_t inst_counter);
int mnc2_capture_read(mnc2_device_t dev, enum mnc2_capture_sel sel, mnc2_capture_t *out);

/* Pools. */
int mnc2_tag_alloc(mnc2_device_t dev, unsigned int *tag);
int mnc2_tag_free(mnc2_device_t dev, unsigned int tag);
int mnc2_tag_set_size(mnc2_device_t dev, unsigned int tag, uint32_t size_bytes);
int mnc2_tag_check_done(mnc2_device_t dev, unsigned int tag, int *done);
int mnc2_tag_wait(mnc2_device_t dev, unsigned int tag);
int mnc2_tag_clear(mnc2_device_t dev, unsigned int tag);
int mnc2_wd_alloc(mnc2_device_t dev, unsigned int *wd);
int mnc2_wd_free(mnc2_device_t dev, unsigned int wd);
int mnc2_wd_wait(mnc2_device_t dev, unsigned int wd);
int mnc2_wd_clear(mnc2_device_t dev, unsigned int wd);
int mnc2_regset_alloc(mnc2_device_t dev, unsigned int *regset);
int mnc2_regset_free(mnc2_device_t dev, unsigned int regset);

/* Transfers beside the caller. */
mnc2_dma_handle_t mnc2_async_send(mnc2_device_t dev, const void *buf, uint64_t pdm_offset, size_t size,
                                  unsigned int send_wait_tag);
mnc2_dma_handle_t mnc2_async_recv(mnc2_device_t dev, void *buf, uint64_t pdm_offset, size_t size,
                                  unsigned int recv_wait_tag);
int mnc2_async_poll(mnc2_dma_handle_t handle, int *done);
int mnc2_async_wait(mnc2_dma_handle_t handle);
void mnc2_async_release(mnc2_dma_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif

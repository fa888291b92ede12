/* The numbers of the chip. */
#ifndef EMU2_MNC2_HW_INFO_H
#define EMU2_MNC2_HW_INFO_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* lw: long words of 8 bytes. */
typedef struct {
    unsigned int ngroups;
    unsigned int nl2b_per_group;
    unsigned int nl1b_per_l2b;
    unsigned int nmab_per_l1b;
    unsigned int npe_per_mab;
    unsigned int total_pe;
    uint64_t pdm_size_lw;  /* of a group */
    uint64_t dram_size_lw; /* of a group */
    uint64_t l2bm_size_lw; /* of an L2B */
    unsigned int lm_size_lw;
    unsigned int grf_size_lw;
    unsigned int nlm_per_pe;
    unsigned int ngrf_per_pe;
    uint64_t pdm_size_bytes;
    unsigned int pdm_align_bytes;
    unsigned int ddma_unit_bytes;
    uint64_t ddma_max_bytes;
    unsigned int dmaid_max;
    unsigned int wd_max;
} mnc2_hw_info_t;

/* Returns 0, or -1 for NULL. */
int mnc2_get_hw_info(mnc2_hw_info_t *info);

#ifdef __cplusplus
}
#endif

#endif

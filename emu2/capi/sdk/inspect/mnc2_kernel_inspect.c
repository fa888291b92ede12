#include "mnc2_kernel_inspect.h"

enum { BLOCK = 128, MODE_AT = 1022, MODE_BITS = 2, TAG_BITS = 8 };

static const int flat_waits[] = {270, 702};
static const int auto_waits[] = {292, 596, 900};
enum { FLAT_MV = 911, AUTO_MV = 935 };

/* Bits of a block, the least significant first. */
static int bits(const uint8_t *block, int first, int count) {
    int value = 0;
    for (int k = 0; k < count; k++) {
        int at = first + k;
        value |= ((block[at / 8] >> (at % 8)) & 1) << k;
    }
    return value;
}

int mnc2_block_imode(const uint8_t block[128]) {
    if (block == NULL) {
        return -1;
    }
    int mode = bits(block, MODE_AT, MODE_BITS);
    return mode <= MNC2_IMODE_LOOP ? mode : -1;
}

/* The number of PE slots whose tags are known, and where these tags lie. */
static int slots(int mode, const int **waits) {
    switch (mode) {
    case MNC2_IMODE_FLAT:
        *waits = flat_waits;
        return (int)(sizeof flat_waits / sizeof flat_waits[0]);
    case MNC2_IMODE_AUTO:
        *waits = auto_waits;
        return (int)(sizeof auto_waits / sizeof auto_waits[0]);
    default:
        *waits = NULL;
        return 0;
    }
}

int mnc2_block_tag_wd(const uint8_t block[128], int pe_idx) {
    const int *waits;
    int count = slots(mnc2_block_imode(block), &waits);
    return pe_idx >= 0 && pe_idx < count ? bits(block, waits[pe_idx], TAG_BITS) : -1;
}

int mnc2_block_mvid(const uint8_t block[128]) {
    switch (mnc2_block_imode(block)) {
    case MNC2_IMODE_FLAT:
        return bits(block, FLAT_MV, TAG_BITS);
    case MNC2_IMODE_AUTO:
        return bits(block, AUTO_MV, TAG_BITS);
    default:
        return -1;
    }
}

static void collect(int tag, uint8_t *tags, int max_tags, int *count) {
    if (tag > 0 && *count < max_tags) {
        tags[(*count)++] = (uint8_t)tag;
    }
}

int mnc2_idma_scan_tags(const uint8_t *data, size_t data_size, uint8_t *tags_wd, uint8_t *tags_mv, int max_tags,
                        int *out_wd_count, int *out_mv_count) {
    if (data == NULL || tags_wd == NULL || tags_mv == NULL || out_wd_count == NULL || out_mv_count == NULL ||
        max_tags < 1 || data_size == 0 || data_size % BLOCK != 0) {
        return -1;
    }
    int waits = 0;
    int mvs = 0;
    for (size_t at = 0; at < data_size; at += BLOCK) {
        const int *places;
        int count = slots(mnc2_block_imode(data + at), &places);
        for (int slot = 0; slot < count; slot++) {
            collect(mnc2_block_tag_wd(data + at, slot), tags_wd, max_tags, &waits);
        }
        collect(mnc2_block_mvid(data + at), tags_mv, max_tags, &mvs);
    }
    *out_wd_count = waits;
    *out_mv_count = mvs;
    return 0;
}

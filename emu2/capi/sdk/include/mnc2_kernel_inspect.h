/* What the blocks of a packed kernel say: modes and tags. Pure functions, no device. */
#ifndef EMU2_MNC2_KERNEL_INSPECT_H
#define EMU2_MNC2_KERNEL_INSPECT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MNC2_IMODE_FLAT 0 /* two PE slots and one MV slot */
#define MNC2_IMODE_AUTO 1 /* three PE slots and one MV slot */
#define MNC2_IMODE_LOOP 2 /* a loop */

/* The mode of a block; -1 for NULL and for mode 3. */
int mnc2_block_imode(const uint8_t block[128]);

/* The tag for which a PE slot waits, 0 if for none; -1 for a slot that the mode does not have. */
int mnc2_block_tag_wd(const uint8_t block[128], int pe_idx);

/* The tag of the MV, 0 if none; -1 on errors and in loop mode. */
int mnc2_block_mvid(const uint8_t block[128]);

/* Collects the tags that are not 0, at most max_tags of each kind. Returns 0, or -1 for NULL, for a size that is no positive
 * multiple of 128, and for max_tags below 1.
 *
 * guess: a tag is stored as often as it occurs; the counts are those of stored tags; blocks in mode 3 are passed over. */
int mnc2_idma_scan_tags(const uint8_t *data, size_t data_size, uint8_t *tags_wd, uint8_t *tags_mv, int max_tags,
                        int *out_wd_count, int *out_mv_count);

#ifdef __cplusplus
}
#endif

#endif

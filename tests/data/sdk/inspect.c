/* The inspection library, which programs compile in. */
#include "check.h"
#include <mnc2_hw_info.h>
#include <mnc2_kernel_inspect.h>

int main(void) {
    static uint8_t data[1 << 16];
    uint8_t waits[64], mvs[64];
    int n_waits = 0, n_mvs = 0;
    FILE *file = fopen("_build/copy.idma.dat", "rb");
    CHECK(file != NULL);
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    CHECK(size > 0 && size % 128 == 0);
    CHECK(mnc2_idma_scan_tags(data, size, waits, mvs, 64, &n_waits, &n_mvs) == 0);
    CHECK(n_waits == 1 && waits[0] == 0x10 && n_mvs == 1 && mvs[0] == 0x1e);
    CHECK(mnc2_block_imode(data) == MNC2_IMODE_AUTO && mnc2_block_imode(NULL) == -1);
    CHECK(mnc2_block_tag_wd(data, 0) == 0x10 && mnc2_block_tag_wd(data, 3) == -1 && mnc2_block_mvid(data) == 0x1e);
    CHECK(mnc2_idma_scan_tags(data, 127, waits, mvs, 64, &n_waits, &n_mvs) == -1);
    CHECK(mnc2_idma_scan_tags(NULL, 128, waits, mvs, 64, &n_waits, &n_mvs) == -1);
    CHECK(mnc2_idma_scan_tags(data, size, waits, mvs, 0, &n_waits, &n_mvs) == -1);
    /* The other modes, by hand. */
    uint8_t block[128] = {0};
    CHECK(mnc2_block_imode(block) == MNC2_IMODE_FLAT);
    block[702 / 8] = (uint8_t)(0x2a << 702 % 8);
    block[702 / 8 + 1] = (uint8_t)(0x2a >> (8 - 702 % 8));
    block[911 / 8] = (uint8_t)(1 << 911 % 8);
    CHECK(mnc2_block_tag_wd(block, 0) == 0 && mnc2_block_tag_wd(block, 1) == 0x2a && mnc2_block_tag_wd(block, 2) == -1);
    CHECK(mnc2_block_mvid(block) == 1);
    block[127] = 0x80;
    CHECK(mnc2_block_imode(block) == MNC2_IMODE_LOOP && mnc2_block_mvid(block) == -1);
    block[127] = 0xc0;
    CHECK(mnc2_block_imode(block) == -1);
    mnc2_hw_info_t info;
    CHECK(mnc2_get_hw_info(&info) == 0 && mnc2_get_hw_info(NULL) == -1);
    CHECK(info.total_pe == 4096 && info.pdm_size_bytes == 4194304 && info.dram_size_lw == 536870912);
    CHECK(info.lm_size_lw == 2048 && info.grf_size_lw == 256 && info.nlm_per_pe == 2 && info.l2bm_size_lw == 32768);
    PASS();
}

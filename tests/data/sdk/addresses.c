/* Addresses of an assembler count half long words: $lm8 is long word 4, $lr16 is long word 8. */
#include "check.h"
#include <emu2.h>

int main(void) {
    OPEN();
    mnc2_kernel_t kernel = emu2_load_kernel_text(dev, "imm i\"5\" $r16\nimm i\"6\" $r17\nnop/3\nlpassa $lr16 $lm8\nlpassa $lr16 $ln20\nlpassa $lr16 $ls2\nnop/4\n");
    static const struct {
        int region, addr;
    } places[] = {{MNC2_MEM_GRF0, 8}, {MNC2_MEM_LM0, 4}, {MNC2_MEM_LM1, 10}, {MNC2_MEM_GRF1, 1}};
    const uint64_t expected = UINT64_C(5) << 32 | 6;
    uint64_t word = 0;
    CHECK(kernel != NULL && mnc2_exec_kernel(kernel) == 0);
    for (int at = 0; at < 4; at++) {
        mnc2_loc_t last = {3, 1, 7, 15, 3};
        CHECK(mnc2_debug_read(dev, places[at].region, &last, places[at].addr, 1, &word) == 0 && word == expected);
        CHECK(mnc2_debug_read(dev, places[at].region, NULL, places[at].addr + 1, 1, &word) == 0 && word == 0);
    }
    mnc2_close(dev);
    PASS();
}

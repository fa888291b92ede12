/* Where a packed kernel is missing, the assembled text beside it is loaded, without the lines of a host. */
#include "check.h"

int main(void) {
    OPEN();
    uint64_t data[64] = {9}, out[64];
    FILE *file = fopen("text.asm", "w");
    CHECK(file != NULL && fputs("c 0 0 i10 i00 0 0 1 05\ns nop; wait i10\ns mvp/n64i1e $p0@0 $p64@0\nf\n", file) >= 0 && fclose(file) == 0);
    mnc2_kernel_t kernel = mnc2_load_kernel(dev, "text.idma.dat");
    CHECK(kernel != NULL && mnc2_send(dev, data, 0, BLOCK, SENT) == 0 && mnc2_exec_kernel(kernel) == 0);
    CHECK(mnc2_recv(dev, out, BLOCK, BLOCK, DONE) == 0 && out[0] == 9);
    mnc2_close(dev);
    PASS();
}

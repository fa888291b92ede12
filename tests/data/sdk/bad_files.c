/* Files that hold no kernel: missing, empty, cut, of another tool, a folder. */
#include "check.h"

int main(void) {
    OPEN();
    static const char bytes[256] = {1, 2, 3};
    static const size_t sizes[] = {0, 1, 100, 128, 256};
    for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
        FILE *file = fopen("bad.idma.dat", "wb");
        CHECK(file != NULL && fwrite(bytes, 1, sizes[at], file) == sizes[at] && fclose(file) == 0);
        CHECK(mnc2_load_kernel(dev, "bad.idma.dat") == NULL);
    }
    CHECK(mnc2_load_kernel(dev, ".") == NULL && mnc2_load_kernel(dev, "") == NULL && mnc2_load_kernel(dev, "none/none.idma.dat") == NULL);
    CHECK(mnc2_load_kernel(dev, "_build/copy") == NULL);
    KERNEL(copy, "copy");
    CHECK(mnc2_exec_kernel(copy) == 0);
    mnc2_close(dev);
    PASS();
}

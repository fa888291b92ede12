/* Runs a linked kernel: KERNEL OFFSET BYTES TAG OUTPUT [OFFSET TAG INPUT]... Numbers count bytes. */
#include "check.h"
#include <stdlib.h>

enum { MOST = 1 << 18 };

int main(int argc, char **argv) {
    static char data[MOST];
    if (argc < 6 || argc % 3 != 0) {
        fprintf(stderr, "usage: %s KERNEL OFFSET BYTES TAG OUTPUT [OFFSET TAG INPUT]...\n", argv[0]);
        return 2;
    }
    OPEN();
    mnc2_kernel_t kernel = mnc2_load_kernel(dev, argv[1]);
    CHECK(kernel != NULL);
    for (int at = 6; at < argc; at += 3) {
        FILE *file = fopen(argv[at + 2], "rb");
        CHECK(file != NULL);
        size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        CHECK(mnc2_send(dev, data, strtoull(argv[at], NULL, 10), size, (unsigned)atoi(argv[at + 1])) == 0);
    }
    size_t size = strtoull(argv[3], NULL, 10);
    CHECK(size <= sizeof data && mnc2_exec_kernel(kernel) == 0);
    mnc2_free_kernel(kernel);
    CHECK(mnc2_recv(dev, data, strtoull(argv[2], NULL, 10), size, (unsigned)atoi(argv[4])) == 0);
    FILE *file = fopen(argv[5], "wb");
    CHECK(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    mnc2_close(dev);
    PASS();
}

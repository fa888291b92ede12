/* What the programs of the tests share: each prints its verdict, and exits with 0 or 1. */
#ifndef CHECK_H
#define CHECK_H

#include <mnc2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #condition);                                                          \
            return 1;                                                                                                            \
        }                                                                                                                        \
    } while (0)

#define PASS()                                                                                                                   \
    do {                                                                                                                         \
        puts("PASS");                                                                                                            \
        return 0;                                                                                                                \
    } while (0)

/* The device of most programs, and a kernel by its name. */
#define OPEN()                                                                                                                   \
    mnc2_device_t dev = mnc2_open(0);                                                                                            \
    CHECK(dev != NULL)

#define KERNEL(kernel, name)                                                                                                     \
    mnc2_kernel_t kernel = mnc2_load_kernel(dev, "_build/" name ".idma.dat");                                                    \
    CHECK(kernel != NULL)

/* Bytes of a block of 64 long words, which `copy` moves from byte 0 to byte 512, and `copy`'s tags. */
#define BLOCK 512
#define SENT 0x10
#define DONE 0x1e

#endif

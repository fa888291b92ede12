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

#endif

/* Buffers begin with zeros at a page of the host. Inner places, the stack and the heap serve, too. */
#include "check.h"
#include <emu2.h>
#include <stdlib.h>

int main(void) {
    OPEN();
    static uint64_t fixed[64];
    uint64_t *stack = fixed + 8, *heap = (uint64_t *)malloc(BLOCK), *own = (uint64_t *)mnc2_alloc_host_buffer(dev, 2 * BLOCK);
    CHECK(heap != NULL && own != NULL && (uintptr_t)own % 4096 == 0);
    for (int i = 0; i < 128; i++) {
        CHECK(own[i] == 0);
    }
    own[64] = 5;
    CHECK(mnc2_send(dev, own + 64, 0, BLOCK, 0) == 0 && mnc2_recv(dev, heap, 0, BLOCK, 0) == 0 && heap[0] == 5);
    CHECK(mnc2_recv(dev, stack, 0, 64, 0) == 0 && stack[0] == 5);
    CHECK(mnc2_send(dev, own + 64, 0, 2 * BLOCK, 0) == MNC2_ERROR_PARAM);
    mnc2_free_host_buffer(dev, own, BLOCK);
    CHECK(strstr(emu2_last_error(), "1024") != NULL);
    mnc2_free_host_buffer(dev, own, 2 * BLOCK);
    mnc2_free_host_buffer(dev, NULL, BLOCK);
    mnc2_free_host_buffer(NULL, heap, BLOCK);
    CHECK(mnc2_alloc_host_buffer(dev, (size_t)-1) == NULL);
    free(heap);
    mnc2_close(dev);
    PASS();
}

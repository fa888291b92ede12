/* Null, closed and wild handles, wrong sizes: a code and a message. */
#include "check.h"
#include <emu2.h>

int main(void) {
    uint64_t word[8] = {0};
    int number = 0;
    CHECK(strcmp(mnc2_get_backend_name(NULL), "unknown") == 0);
    CHECK(mnc2_open(-1) == NULL && mnc2_open(64) == NULL);
    mnc2_device_t dev = mnc2_open(1);
    mnc2_device_t wild = (mnc2_device_t)(uintptr_t)0x1230;
    CHECK(strcmp(mnc2_get_backend_name(dev), mnc2_get_backend() == MNC2_BACKEND_EMU_LIB ? "emu:lib" : "emu:process") == 0);
    CHECK(mnc2_send(NULL, word, 0, 8, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_send(wild, word, 0, 8, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_send(dev, NULL, 0, 8, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_send(dev, word, 0, 0, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_send(dev, word, 0, 12, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_send(dev, word, 4, 8, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_send(dev, word, 4194304, 8, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_send(dev, word, 0, 8, 64) == MNC2_ERROR_PARAM);
    CHECK(mnc2_send(dev, word, 4194240, 64, 0) == 0);
    CHECK(mnc2_recv(dev, NULL, 0, 8, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_recv(dev, (void *)(uintptr_t)64, 0, 8, 0) == MNC2_ERROR_PARAM);
    CHECK(mnc2_load_kernel(dev, "_build/none.idma.dat") == NULL);
    CHECK(strlen(emu2_last_error()) > 0);
    CHECK(mnc2_load_kernel(dev, NULL) == NULL);
    CHECK(mnc2_load_kernel(NULL, "_build/copy.idma.dat") == NULL);
    CHECK(mnc2_exec_kernel(NULL) == MNC2_ERROR_PARAM);
    CHECK(mnc2_exec_kernel(dev) == MNC2_ERROR_KERNEL);
    CHECK(mnc2_alloc_host_buffer(NULL, 8) == NULL);
    CHECK(mnc2_alloc_host_buffer(dev, 0) == NULL);
    CHECK(mnc2_get_ddma_stat(dev, NULL) == MNC2_ERROR_PARAM);
    CHECK(mnc2_get_idma_stat(dev, NULL) == MNC2_ERROR_PARAM);
    CHECK(mnc2_get_wdbit_status(dev, NULL) == MNC2_ERROR_PARAM);
    CHECK(mnc2_reset(NULL) == MNC2_ERROR_PARAM);
    CHECK(mnc2_wait_ddma_idle(NULL) == MNC2_ERROR_PARAM);
    CHECK(mnc2_wait_idma_idle(NULL) == MNC2_ERROR_PARAM);
    CHECK(mnc2_async_poll(NULL, &number) == MNC2_ERROR_PARAM);
    /* Limits: the getter gives the value, the setter the previous one. */
    CHECK(mnc2_get_ddma_kick_verify_max(dev) == 100 && mnc2_get_ddma_complete_max(dev) == 2000);
    CHECK(mnc2_get_idma_kick_verify_max(dev) == 100 && mnc2_get_idma_complete_max(dev) == 5000);
    CHECK(mnc2_set_ddma_kick_verify_max(dev, 1) == 100 && mnc2_set_ddma_complete_max(dev, 2) == 2000);
    CHECK(mnc2_set_idma_kick_verify_max(dev, 3) == 100 && mnc2_get_idma_kick_verify_max(dev) == 3);
    CHECK(mnc2_get_idma_complete_max(NULL) == -1 && mnc2_set_ddma_complete_max(NULL, 5) == -1);
    void *buffer = mnc2_alloc_host_buffer(dev, 64);
    mnc2_close(dev);
    mnc2_close(dev);
    mnc2_close(NULL);
    CHECK(mnc2_send(dev, word, 0, 8, 0) == MNC2_ERROR_PARAM);
    CHECK(strcmp(mnc2_get_backend_name(dev), "unknown") == 0);
    memset(buffer, 1, 64);
    mnc2_free_host_buffer(dev, buffer, 64);
    mnc2_free_host_buffer(dev, buffer, 64);
    for (int code = -10; code < 2; code++) {
        CHECK(strlen(emu2_strerror(code)) > 0);
    }
    CHECK(strlen(emu2_version()) > 0);
    PASS();
}

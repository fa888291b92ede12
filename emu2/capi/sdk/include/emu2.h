/* What emu2 adds to mnc2.h. */
#ifndef EMU2_EMU2_H
#define EMU2_EMU2_H

#include <mnc2.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text of a code; never NULL, never freed. */
const char *emu2_strerror(int code);

/* The message of the last error of this thread, empty if there was none. It is valid until the next error. */
const char *emu2_last_error(void);

/* The version of emu2. */
const char *emu2_version(void);

/* Loads a kernel from the text of a source. NULL on failure. */
mnc2_kernel_t emu2_load_kernel_text(mnc2_device_t dev, const char *text);

#ifdef __cplusplus
}
#endif

#endif

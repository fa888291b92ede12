/* The command-line tools for a board, in one program: the name under which it is called chooses the tool.
 *
 * Each call opens the device, so the emulator needs the variable EMU2_STATE: a file that keeps the memories from call to call. */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <errno.h>
#include <gpfn3.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDMA_STAT = 0x018, DDMA_STAT = 0x038, RESET = 0x050, WDBITS = 0x070, DESCRIPTORS = 0x10000, DESCRIPTOR_COUNT = 8192 };
enum { BLOCK = 128, WINDOW = 1 << 20, WORD = 8, UNIT = 4, MOST_CAPTURES = 4, POLLS = 5000 };
static const uint64_t DDMA_BUSY = UINT64_C(0x401f401f401f401f), IDMA_BUSY = 0x1fffff, RESET_MODULE = UINT64_C(7) << 61;
static const uint64_t VALID = UINT64_C(1) << 63;

static const char *tool;
static const char *usage;
static gpfn3_device_id_t dev = GPFN3_INVALID_DEVICE_ID;

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", tool, what);
    return 1;
}

static int wrong(void) {
    fprintf(stderr, "usage: %s %s\n", tool, usage);
    return 1;
}

/* A number in decimal, or in hexadecimal with 0x. */
static int number(const char *text, uint64_t *value) {
    char *end = NULL;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0;
}

static int open_device(int named) {
    const char *wanted = getenv("GPFN3_DEVICE"), *state = getenv("EMU2_STATE");
    uint64_t chosen = 0;
    if (named && wanted != NULL && (!number(wanted, &chosen) || chosen > 63)) {
        return fail("GPFN3_DEVICE is no device number");
    }
    if (state == NULL || *state == '\0') {
        fprintf(stderr, "%s: note: memories begin with zeros; EMU2_STATE=FILE keeps them from call to call\n", tool);
    }
    dev = gpfn3_get_device_id((int)chosen);
    return dev == GPFN3_INVALID_DEVICE_ID ? fail("the device cannot be opened") : 0;
}

/* Reads a whole stream. */
static unsigned char *slurp(FILE *file, size_t *size) {
    size_t room = 1 << 16;
    unsigned char *data = malloc(room);
    *size = 0;
    for (size_t got = 1; data != NULL && got > 0; *size += got) {
        if (room - *size < 1 << 15) {
            unsigned char *more = realloc(data, room *= 2);
            if (more == NULL) {
                free(data);
                return NULL;
            }
            data = more;
        }
        got = fread(data + *size, 1, room - *size, file);
    }
    return data;
}

/* Adds the bytes of a number, the least significant first. */
static void put(unsigned char *data, size_t *size, uint64_t value, size_t bytes) {
    for (size_t at = 0; at < bytes; at++) {
        data[(*size)++] = (unsigned char)(value >> 8 * at);
    }
}

/* One DATA word: f64:V, f32:V, bf16:V, or 0x and hexadecimal digits. */
static int word(const char *text, unsigned char *data, size_t *size) {
    char *end = NULL;
    const char *colon = strchr(text, ':');
    if (colon != NULL) {
        double value = strtod(colon + 1, &end);
        float single = (float)value;
        uint64_t bits = 0;
        uint32_t half = 0;
        memcpy(&bits, &value, sizeof bits);
        memcpy(&half, &single, sizeof half);
        if (end == colon + 1 || *end != '\0') {
            return 0;
        }
        if (strncmp(text, "f64:", 4) == 0) {
            put(data, size, bits, 8);
        } else if (strncmp(text, "f32:", 4) == 0) {
            put(data, size, half, 4);
        } else if (strncmp(text, "bf16:", 5) == 0) {
            put(data, size, half >> 16, 2);
        } else {
            return 0;
        }
        return 1;
    }
    size_t digits = strlen(text) < 3 ? 0 : strlen(text) - 2, bytes = 1;
    uint64_t value = 0;
    if (strncmp(text, "0x", 2) != 0 || digits == 0 || digits > 16 || !number(text, &value)) {
        return 0;
    }
    while (2 * bytes < digits) {
        bytes *= 2;
    }
    put(data, size, value, bytes);
    return 1;
}

/* The bytes of DATA words, or of stdin without any. */
static unsigned char *data_of(int count, char **words, size_t *size) {
    if (count == 0) {
        return slurp(stdin, size);
    }
    unsigned char *data = malloc((size_t)count * WORD);
    *size = 0;
    for (int at = 0; data != NULL && at < count; at++) {
        if (!word(words[at], data, size)) {
            fprintf(stderr, "%s: `%s` is no data word\n", tool, words[at]);
            free(data);
            return NULL;
        }
    }
    return data;
}

static int idle(unsigned reg, uint64_t busy) {
    uint64_t found = busy;
    for (int poll = 0; poll < POLLS; poll++) {
        if (gpfn3_read_pio(dev, reg, &found) != GPFN3_SUCCESS) {
            return 0;
        }
        if ((found & busy) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Moves whole long words between a buffer and the device. */
static int move(int from, int channel, void *buffer, uint64_t addr, size_t bytes) {
    struct gpfn3_data_dma_kick_t kick;
    memset(&kick, 0, sizeof kick);
    kick.direction = from ? GPFN3_DMA_DIRECTION_FROM_DEVICE : GPFN3_DMA_DIRECTION_TO_DEVICE;
    kick.channel = (enum GPFN3_DMA_CHANNEL)channel;
    kick.size = bytes / UNIT;
    return gpfn3_set_regset(dev, 0, buffer, addr) == GPFN3_SUCCESS && gpfn3_kick_data_dma(dev, kick) == GPFN3_SUCCESS &&
           idle(DDMA_STAT, DDMA_BUSY);
}

/* The channel of `--channel NAME` at the front of the arguments, or -1. */
static int channel_of(int *argc, char ***argv) {
    static const struct {
        const char *name;
        int channel;
    } names[] = {{"PDM", 0}, {"0", 0}, {"1", 1}, {"DRAM", 3}, {"3", 3}};
    if (*argc < 1 || strcmp((*argv)[0], "--channel") != 0) {
        return 0;
    }
    for (size_t at = 0; *argc > 1 && at < sizeof names / sizeof names[0]; at++) {
        if (strcmp((*argv)[1], names[at].name) == 0) {
            *argc -= 2;
            *argv += 2;
            return names[at].channel;
        }
    }
    return -1;
}

/* Sends or receives bytes at any multiple of 4: the device moves long words, so those at the ends are read first. */
static int transfer(int from, int channel, unsigned char *data, uint64_t addr, size_t size) {
    uint64_t first = addr / WORD * WORD, end = (addr + size + WORD - 1) / WORD * WORD;
    size_t bytes = (size_t)(end - first);
    unsigned char *whole = gpfn3_allocate_dma_memory(dev, bytes);
    int done = whole != NULL && addr % UNIT == 0;
    if (done && (from || bytes != size)) {
        done = move(1, channel, whole, first, bytes);
    }
    if (done && !from) {
        memcpy(whole + (addr - first), data, size);
        done = move(0, channel, whole, first, bytes);
    }
    if (done && from) {
        memcpy(data, whole + (addr - first), size);
    }
    if (whole != NULL) {
        gpfn3_free_dma_memory(dev, whole, bytes);
    }
    return done ? 0 : fail("the transfer failed");
}

static int send_dma(int argc, char **argv) {
    int channel = channel_of(&argc, &argv);
    uint64_t addr = 0;
    size_t size = 0;
    if (channel < 0 || argc < 1 || !number(argv[0], &addr)) {
        return wrong();
    }
    unsigned char *given = data_of(argc - 1, argv + 1, &size);
    if (given == NULL || size == 0) {
        free(given);
        return fail("there is no data");
    }
    size_t padded = (size + UNIT - 1) / UNIT * UNIT;
    unsigned char *data = calloc(1, padded);
    int code = data == NULL ? fail("no memory") : open_device(1);
    if (code == 0) {
        memcpy(data, given, size);
        code = transfer(0, channel, data, addr, padded);
    }
    free(given);
    free(data);
    return code;
}

static int recv_dma(int argc, char **argv) {
    int channel = channel_of(&argc, &argv);
    uint64_t addr = 0, size = 0;
    if (channel < 0 || argc != 2 || !number(argv[0], &addr) || !number(argv[1], &size) || size == 0 || size % UNIT != 0) {
        return wrong();
    }
    unsigned char *data = size > SIZE_MAX / 2 ? NULL : malloc((size_t)size);
    int code = data == NULL ? fail("no memory") : open_device(1);
    if (code == 0) {
        code = transfer(1, channel, data, addr, (size_t)size);
    }
    if (code == 0 && fwrite(data, 1, (size_t)size, stdout) != size) {
        code = fail("stdout cannot be written");
    }
    free(data);
    return code;
}

/* Copies between stdin or stdout and the window on the first MiB of the PDM. */
static int window(uint64_t addr, unsigned char *data, size_t size, int reads) {
    if (addr > WINDOW || size > WINDOW - addr) {
        return fail("the window ends at 1 MiB");
    }
    if (open_device(1) != 0) {
        return 1;
    }
    unsigned char *mapped = (unsigned char *)gpfn3_map_pdm(dev);
    uint64_t last = 0;
    if (mapped == NULL) {
        return fail("the PDM cannot be mapped");
    }
    if (reads) {
        memcpy(data, mapped + addr, size);
    } else {
        memcpy(mapped + addr, data, size);
        gpfn3_read_pio(dev, IDMA_STAT, &last);
    }
    gpfn3_unmap_pdm(dev, (uint64_t *)mapped);
    return 0;
}

static int read_pdm(int argc, char **argv) {
    uint64_t addr = 0, size = WORD;
    if (argc < 1 || argc > 2 || !number(argv[0], &addr) || (argc == 2 && !number(argv[1], &size)) || size > WINDOW) {
        return wrong();
    }
    unsigned char *data = malloc((size_t)size + 1);
    int code = data == NULL ? fail("no memory") : window(addr, data, (size_t)size, 1);
    if (code == 0 && fwrite(data, 1, (size_t)size, stdout) != size) {
        code = fail("stdout cannot be written");
    }
    free(data);
    return code;
}

static int write_pdm(int argc, char **argv) {
    uint64_t addr = 0;
    size_t size = 0;
    if (argc < 1 || !number(argv[0], &addr)) {
        return wrong();
    }
    unsigned char *data = data_of(argc - 1, argv + 1, &size);
    int code = data == NULL ? 1 : window(addr, data, size, 0);
    free(data);
    return code;
}

static int pio_read(int argc, char **argv) {
    uint64_t addr = 0, value = 0;
    if (argc != 1 || !number(argv[0], &addr)) {
        return wrong();
    }
    if (open_device(1) != 0 || gpfn3_read_pio(dev, (unsigned)addr, &value) != GPFN3_SUCCESS) {
        return fail("the register cannot be read");
    }
    printf("0x%016" PRIx64 "\n", value);
    return 0;
}

static int pio_write(int argc, char **argv) {
    uint64_t addr = 0, value = 0;
    if (argc != 2 || !number(argv[0], &addr) || !number(argv[1], &value)) {
        return wrong();
    }
    if (open_device(1) != 0 || gpfn3_write_pio(dev, (unsigned)addr, value) != GPFN3_SUCCESS) {
        return fail("the register cannot be written");
    }
    return 0;
}

static int pio(int argc, char **argv) {
    return argc == 2 ? pio_write(argc, argv) : pio_read(argc, argv);
}

static int reset(int argc, char **argv) {
    if (argc == 1 && (strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "--help") == 0)) {
        printf("usage: %s %s\n", tool, usage);
        return 0;
    }
    if (argc == 1 && strcmp(argv[0], "--explain") == 0) {
        puts("Queues and tags are emptied. Memories keep their contents. --pio-reset does the same by a register.");
        return 0;
    }
    if (argc > 1 || (argc == 1 && strcmp(argv[0], "--pio-reset") != 0)) {
        wrong();
        return 2;
    }
    if (open_device(1) != 0) {
        return 1;
    }
    int code = argc == 1 ? gpfn3_write_pio(dev, RESET, RESET_MODULE) : gpfn3_reset_device(dev);
    return code == GPFN3_SUCCESS ? 0 : fail("the reset failed");
}

static const char *capture_of(const char *text, uint64_t *at, int *which) {
    *which = toupper((unsigned char)text[0]) - 'A';
    return *which >= GPFN3_CAPTURE_B && *which <= GPFN3_CAPTURE_E && text[1] == ':' && number(text + 2, at) ? text : NULL;
}

static int set_capture(int argc, char **argv) {
    uint64_t at = 0;
    int which = argc == 2 ? argv[0][0] - 'A' : 0;
    if (argc != 2 || strlen(argv[0]) != 1 || which < GPFN3_CAPTURE_B || which > GPFN3_CAPTURE_E || !number(argv[1], &at)) {
        return wrong();
    }
    if (open_device(1) != 0 || gpfn3_capture_set_inst(dev, (enum GPFN3_CAPTURE_SEL)which, at) != GPFN3_SUCCESS) {
        return fail("the snapshot cannot be armed");
    }
    return 0;
}

#include "descriptors.h"
#include "run_idma.h"

static const struct {
    const char *name;
    int (*work)(int, char **);
    const char *usage;
} tools[] = {
    {"pio-read", pio_read, "ADDR"},
    {"pio-write", pio_write, "ADDR VALUE"},
    {"pio", pio, "ADDR [VALUE]"},
    {"send-dma", send_dma, "[--channel NAME] ADDR [DATA...]"},
    {"recv-dma", recv_dma, "[--channel NAME] ADDR LEN"},
    {"read-pdm", read_pdm, "ADDR [LEN]"},
    {"write-pdm", write_pdm, "ADDR [DATA...]"},
    {"run-idma", run_idma, "PATH.idma.dat [--no-reset] [--timeout SEC] [--capture X:N]* [WD ...]"},
    {"run-idma2", run_idma2, "PATH.idma.dat [--dram-offset OFF] [--dm-index IDX] [--no-reset]"},
    {"write-DM", write_dm, "[--invalid] [--via-dma] IDX DRAM_ADDR ENTRY_LEN"},
    {"read-DM", read_dm, "IDX [COUNT]"},
    {"set-descriptor-regset", set_descriptor_regset, "REGSET DM_INDEX [HEX ...]"},
    {"kick-idma2", kick_idma2, "DM_INDEX DM_COUNT [--no-wait]"},
    {"set-capture", set_capture, "B|C|D|E THRESHOLD"},
    {"reset", reset, "[--pio-reset | --explain | -h | --help]"},
};

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    tool = slash == NULL ? argv[0] : slash + 1;
    for (size_t at = 0; at < sizeof tools / sizeof tools[0]; at++) {
        if (strcmp(tool, tools[at].name) == 0) {
            usage = tools[at].usage;
            int code = tools[at].work(argc - 1, argv + 1);
            if (dev != GPFN3_INVALID_DEVICE_ID) {
                gpfn3_close_device(dev);
            }
            return fflush(stdout) == 0 ? code : fail("stdout cannot be written");
        }
    }
    for (size_t at = 0; at < sizeof tools / sizeof tools[0]; at++) {
        printf("%s %s\n", tools[at].name, tools[at].usage);
    }
    return 1;
}

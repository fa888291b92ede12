/* Kernels in DRAM, and the descriptors that name them. Current boards refuse to start such a kernel, and so does the emulator. */

static int refused(gpfn3_error_t code) {
    fprintf(stderr, "%s: the device refuses a start by descriptors (%d), as current boards do\n", tool, code);
    return 1;
}

static int kick_idma2(int argc, char **argv) {
    uint64_t index = 0, count = 0;
    int waits = argc == 2 || (argc == 3 && strcmp(argv[2], "--no-wait") == 0);
    if (!waits || !number(argv[0], &index) || !number(argv[1], &count)) {
        return wrong();
    }
    if (open_device(1) != 0) {
        return 1;
    }
    gpfn3_error_t code = gpfn3_kick_inst_dma2(dev, (size_t)index, (size_t)count);
    return code == GPFN3_SUCCESS ? 0 : refused(code);
}

static uint64_t descriptor(int valid, uint64_t addr, uint64_t bytes) {
    return (valid ? VALID : 0) | addr / 64 << 24 | bytes / BLOCK;
}

static int write_dm(int argc, char **argv) {
    int valid = 1;
    uint64_t index = 0, addr = 0, bytes = 0;
    for (; argc > 0 && strncmp(argv[0], "--", 2) == 0; argc--, argv++) {
        if (strcmp(argv[0], "--invalid") == 0) {
            valid = 0;
        } else if (strcmp(argv[0], "--via-dma") != 0) {
            return wrong();
        }
    }
    if (argc != 3 || !number(argv[0], &index) || !number(argv[1], &addr) || !number(argv[2], &bytes)) {
        return wrong();
    }
    if (index >= DESCRIPTOR_COUNT || addr % 64 != 0 || bytes % BLOCK != 0) {
        return fail("an index is at most 8191, an address a multiple of 64, a length one of 128");
    }
    if (open_device(1) != 0 || gpfn3_write_descriptor(dev, (unsigned)index, descriptor(valid, addr, bytes)) != GPFN3_SUCCESS) {
        return fail("the descriptor cannot be written");
    }
    return 0;
}

static int read_dm(int argc, char **argv) {
    uint64_t index = 0, count = 1, found = 0;
    if (argc < 1 || argc > 2 || !number(argv[0], &index) || (argc == 2 && !number(argv[1], &count))) {
        return wrong();
    }
    if (index >= DESCRIPTOR_COUNT || count > DESCRIPTOR_COUNT - index) {
        return fail("there are 8192 descriptors");
    }
    if (open_device(1) != 0) {
        return 1;
    }
    for (uint64_t at = index; at < index + count; at++) {
        if (gpfn3_read_pio(dev, (unsigned)(DESCRIPTORS + at * WORD), &found) != GPFN3_SUCCESS) {
            return fail("the descriptor cannot be read");
        }
        printf("%d:0x%" PRIx64 ":0x%" PRIx64 "\n", (int)(found >> 63), (found & ~VALID) >> 24 << 6, (found & 0x7fffff) * BLOCK);
    }
    return 0;
}

static int set_descriptor_regset(int argc, char **argv) {
    uint64_t set = 0, index = 0;
    size_t size = 0;
    if (argc < 2 || !number(argv[0], &set) || !number(argv[1], &index) || set > 63 || index >= DESCRIPTOR_COUNT) {
        return wrong();
    }
    unsigned char *data = data_of(argc - 2, argv + 2, &size);
    uint64_t *table = data == NULL || open_device(1) != 0 ? NULL : gpfn3_allocate_dma_memory(dev, DESCRIPTOR_COUNT * WORD);
    int code = table == NULL ? fail("there is no table") : 0;
    if (code == 0) {
        size_t room = (DESCRIPTOR_COUNT - (size_t)index) * WORD;
        memcpy(table + index, data, size < room ? size : room);
        if (gpfn3_set_descriptor_regset(dev, (unsigned)set, table, (size_t)index) != GPFN3_SUCCESS) {
            code = fail("the register set cannot be written");
        }
    }
    free(data);
    return code;
}

/* Puts a kernel into DRAM, with its descriptor, and starts it. */
static int run_idma2(int argc, char **argv) {
    const char *path = NULL;
    uint64_t offset = 0, index = 0;
    for (int at = 0; at < argc; at++) {
        if (strcmp(argv[at], "--no-reset") == 0) {
            continue;
        }
        uint64_t *value = strcmp(argv[at], "--dram-offset") == 0 ? &offset : strcmp(argv[at], "--dm-index") == 0 ? &index : NULL;
        if (value != NULL && (++at == argc || !number(argv[at], value))) {
            return wrong();
        }
        if (value == NULL && (path != NULL || argv[at][0] == '-')) {
            return wrong();
        }
        if (value == NULL) {
            path = argv[at];
        }
    }
    FILE *file = path == NULL || offset % 64 != 0 ? NULL : fopen(path, "rb");
    if (file == NULL) {
        return wrong();
    }
    size_t size = 0;
    unsigned char *data = slurp(file, &size);
    fclose(file);
    int code = data == NULL || size == 0 || size % BLOCK != 0 ? fail("the size of a kernel is a multiple of 128 bytes") : open_device(0);
    if (code == 0) {
        code = transfer(0, 3, data, offset, size);
    }
    if (code == 0) {
        gpfn3_write_descriptor(dev, (unsigned)index, descriptor(1, offset, size));
        gpfn3_error_t started = gpfn3_kick_inst_dma2(dev, (size_t)index, 1);
        code = started == GPFN3_SUCCESS ? 0 : refused(started);
    }
    free(data);
    return code;
}

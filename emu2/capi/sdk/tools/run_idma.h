/* run-idma: runs a kernel once, and says when its tags are signalled. */

static void stamp(const char *label) {
    struct timespec now;
    uint64_t steps = 0, nops = 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    gpfn3_capture_get_inst(dev, &steps);
    gpfn3_capture_get_all_nop(dev, &nops);
    printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", label, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, steps, nops);
}

/* Waits until the bits of tags fall, and prints when each does. */
static void watch(uint64_t wanted, uint64_t seconds) {
    time_t begun = time(NULL);
    uint64_t bits = 0;
    while (wanted != 0 && gpfn3_read_pio(dev, WDBITS, &bits) == GPFN3_SUCCESS) {
        for (unsigned wd = 0; wd < 64; wd++) {
            if ((wanted & ~bits) >> wd & 1) {
                char label[8];
                snprintf(label, sizeof label, "0x%02x", wd);
                stamp(label);
                wanted &= ~(UINT64_C(1) << wd);
            }
        }
        if (seconds > 0 && wanted != 0 && (uint64_t)(time(NULL) - begun) >= seconds) {
            fprintf(stderr, "%s: warning: time-out: tags 0x%016" PRIx64 " were not signalled\n", tool, wanted);
            return;
        }
    }
}

static void show_capture(int which, uint64_t at) {
    static struct gpfn3_capture_t found;
    if (gpfn3_capture_read(dev, (enum GPFN3_CAPTURE_SEL)which, &found) != GPFN3_SUCCESS) {
        return;
    }
    printf("# Capture %c snapshot (threshold=%" PRIu64 "):\n", 'A' + which, at);
    printf("#   all_nop = %" PRIu64 "\n#   empty_nop = %" PRIu64 "\n#   power_nop = %" PRIu64 "\n", found.all_nop, found.empty_nop, found.power_nop);
    for (int tag = 1; tag < 256; tag++) {
        if (found.tag[tag] != 0) {
            printf("#   tag[0x%02x] = %" PRIu64 "\n", (unsigned)tag, found.tag[tag]);
        }
    }
}

/* The value of `--name VALUE` or `--name=VALUE`; NULL for another argument. */
static const char *option(const char *name, int argc, char **argv, int *at) {
    size_t length = strlen(name);
    if (strcmp(argv[*at], name) == 0 && *at + 1 < argc) {
        return argv[++*at];
    }
    return strncmp(argv[*at], name, length) == 0 && argv[*at][length] == '=' ? argv[*at] + length + 1 : NULL;
}

static int run_idma(int argc, char **argv) {
    struct {
        int which;
        uint64_t at;
    } captures[MOST_CAPTURES];
    const char *path = NULL, *value = NULL;
    uint64_t wanted = 0, seconds = 10, wd = 0;
    int count = 0, resets = 1;
    for (int at = 0; at < argc; at++) {
        if (strcmp(argv[at], "--no-reset") == 0) {
            resets = 0;
        } else if ((value = option("--timeout", argc, argv, &at)) != NULL) {
            if (!number(value, &seconds)) {
                return wrong();
            }
        } else if ((value = option("--capture", argc, argv, &at)) != NULL) {
            if (count == MOST_CAPTURES || capture_of(value, &captures[count].at, &captures[count].which) == NULL) {
                return wrong();
            }
            count++;
        } else if (strncmp(argv[at], "--", 2) == 0) {
            return wrong();
        } else if (path == NULL) {
            path = argv[at];
        } else if (!number(argv[at], &wd) || wd > 63) {
            return wrong();
        } else {
            wanted |= UINT64_C(1) << wd;
        }
    }
    FILE *file = path == NULL ? NULL : fopen(path, "rb");
    if (path == NULL) {
        return wrong();
    }
    if (file == NULL) {
        return fail(strerror(errno));
    }
    size_t size = 0;
    unsigned char *data = slurp(file, &size);
    fclose(file);
    if (data == NULL || size == 0 || size % BLOCK != 0) {
        free(data);
        return fail("the size of a kernel is a multiple of 128 bytes");
    }
    int code = open_device(0);
    if (code == 0 && resets) {
        code = gpfn3_reset_device(dev) == GPFN3_SUCCESS ? 0 : fail("the reset failed");
    }
    for (int at = 0; code == 0 && at < count; at++) {
        gpfn3_capture_set_inst(dev, (enum GPFN3_CAPTURE_SEL)captures[at].which, captures[at].at);
    }
    if (code == 0 && wanted != 0) {
        printf("# kernel: %s\n", path);
        stamp("0xLL");
        stamp("0xKK");
    }
    if (code == 0 && gpfn3_kick_inst_dma(dev, data, size) != GPFN3_SUCCESS) {
        code = fail("the kernel cannot be started");
    }
    free(data);
    if (code != 0) {
        return code;
    }
    watch(wanted, seconds);
    if (!idle(IDMA_STAT, IDMA_BUSY)) {
        fprintf(stderr, "%s: warning: time-out: the kernel has not ended\n", tool);
    }
    for (int at = 0; at < count; at++) {
        show_capture(captures[at].which, captures[at].at);
    }
    return 0;
}

/* libmnc2.so and libgpfn3.so. They hold no code of the emulator: each function jumps to the same function of the program, if
 * the program was linked with libmnc2.a, or else of libemu2.so. So a process has one copy of the library, in whatever order a
 * build names the archive and the shared libraries.
 *
 * FORWARDED names the functions (a list that the build makes from the headers). BACKEND is the number of the back end, for
 * libgpfn3.so only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include FORWARDED

typedef const void *(*engine_t)(const char *name);

/* The program's, if it has one. */
extern const void *emu2_engine(const char *name) __attribute__((weak));

#define SLOT(name) __attribute__((used, visibility("hidden"))) const void *emu2_slot_##name;
FUNCTIONS(SLOT)

#define HEAD(name) ".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"
#define FOOT(name) ".size " #name ", .-" #name "\n"

#if defined(__x86_64__)
#define JUMP(name) __asm__(HEAD(name) "endbr64\njmp *emu2_slot_" #name "(%rip)\n" FOOT(name));
#elif defined(__aarch64__)
#define JUMP(name)                                                                                                               \
    __asm__(HEAD(name) "adrp x16, emu2_slot_" #name "\nldr x16, [x16, #:lo12:emu2_slot_" #name "]\nbr x16\n" FOOT(name));
#else
#error "no jumps for this processor"
#endif
FUNCTIONS(JUMP)

static const struct {
    const char *name;
    const void **slot;
} slots[] = {
#define ROW(name) {#name, &emu2_slot_##name},
    FUNCTIONS(ROW)};

/* Stands for every function where there is no engine. */
static long missing(void) {
    fputs("emu2: libemu2.so is missing beside libmnc2.so; install the SDK again\n", stderr);
    return 0;
}

/* The engine in the folder of this library or the one above. The path is made here, because a sanitizer that stands between
 * a program and dlopen hides where this library looks. */
static void *beside(void) {
    static const char *const names[] = {"libemu2.so", "../libemu2.so"};
    Dl_info self;
    if (dladdr((void *)slots, &self) == 0 || self.dli_fname == NULL) {
        return NULL;
    }
    const char *end = strrchr(self.dli_fname, '/');
    int folder = end == NULL ? 0 : (int)(end - self.dli_fname) + 1;
    void *library = NULL;
    for (size_t at = 0; library == NULL && at < sizeof names / sizeof names[0]; at++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%.*s%s", folder, self.dli_fname, names[at]);
        if (length > 0 && (size_t)length < sizeof path) {
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return library;
}

static engine_t engine(void) {
    if (emu2_engine != NULL) {
        return emu2_engine;
    }
    void *library = beside();
    if (library == NULL) {
        library = dlopen("libemu2.so", RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        return NULL;
    }
    void *symbol = dlsym(library, "emu2_engine");
    engine_t found;
    memcpy(&found, &symbol, sizeof found);
    return found;
}

__attribute__((constructor)) static void fill(void) {
    engine_t find = engine();
    for (size_t at = 0; at < sizeof slots / sizeof slots[0]; at++) {
        const void *function = find == NULL ? NULL : find(slots[at].name);
        *slots[at].slot = function == NULL ? (const void *)missing : function;
    }
#ifdef BACKEND
    const void *symbol = find == NULL ? NULL : find("emu2_set_backend");
    if (symbol != NULL) {
        int (*set)(int);
        memcpy(&set, &symbol, sizeof set);
        set(BACKEND);
    }
#endif
}

// fake_nvrtc.c: a library that stands in for NVRTC (DAQIRI_NVRTC=…/libfake_nvrtc.so): the C++ compiler makes
// a library for the host of the source, and its "PTX" has the kernel's entry, with the types that the
// compiler found, and the library's bytes as a comment, for fake_cuda.c.
//
// HOST_H names runtime/kernel/host.h, which has what of CUDA C the host can do.
#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUT_OF_MEMORY  1
#define INVALID_OPTION 5
#define INTERNAL       11

// What stands behind the source: the entry's types, and its call.
static const char *const wrapper =
    "\n#line 1 \"fake\"\n"
    "template <class T> struct fake_kind { enum { is = 'i' }; };\n"
    "template <class T> struct fake_kind<T *> { enum { is = 'p' }; };\n"
    "template <> struct fake_kind<float> { enum { is = 'f' }; };\n"
    "template <> struct fake_kind<double> { enum { is = 'f' }; };\n"
    "template <int... FI> struct fake_seq {};\n"
    "template <int FN, int... FI> struct fake_make : fake_make<FN - 1, FN - 1, FI...> {};\n"
    "template <int... FI> struct fake_make<0, FI...> { typedef fake_seq<FI...> seq; };\n"
    "template <class... A, int... FI> static void fake_go(void (*f)(A...), void *const *a, fake_seq<FI...>) "
    "{\n"
    "    f(*(A *)a[FI]...);\n"
    "}\n"
    "template <class... A> static void fake_call(void (*f)(A...), void *const *a) {\n"
    "    fake_go(f, a, typename fake_make<sizeof...(A)>::seq());\n"
    "}\n"
    "const char dq_types[] = {0}; // of any kernel: a constructor fills these\n"
    "static char fake_types[128];\n"
    "template <class... A> static void fake_tell(void (*)(A...)) {\n"
    "    const char kinds[] = {(char)fake_kind<A>::is..., 0};\n"
    "    const size_t bytes[] = {sizeof(A)..., 0};\n"
    "    for (int k = 0; kinds[k]; k++) {\n"
    "        fake_types[2 * k] = kinds[k];\n"
    "        fake_types[2 * k + 1] = (char)('0' + (bytes[k] < 10 ? bytes[k] : 9));\n"
    "    }\n"
    "    daqiri_kernel.types = fake_types;\n"
    "}\n"
    "static void dq_call(void *const *args) { fake_call(&FAKE_ENTRY, args); }\n"
    "__attribute__((constructor)) static void fake_begin(void) { fake_tell(&FAKE_ENTRY); }\n";

#define HEADERS 128

struct nvrtc_program_s {
    char *text, *name, *entry, *lowered, *log, *ptx;
    char *headers[HEADERS], *names[HEADERS]; // that the source may include, and how it names them
    int n_headers;
};

nvrtc_result nvrtcVersion(int *major, int *minor) {
    *major = 12;
    *minor = 99; // no version of NVIDIA's
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtc_result err) {
    return err == NVRTC_SUCCESS             ? "NVRTC_SUCCESS"
           : err == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION"
           : err == INVALID_OPTION          ? "NVRTC_ERROR_INVALID_OPTION"
           : err == OUT_OF_MEMORY           ? "NVRTC_ERROR_OUT_OF_MEMORY"
                                            : "NVRTC_ERROR_INTERNAL_ERROR";
}

nvrtc_result nvrtcGetNumSupportedArchs(int *n) {
    *n = 3;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetSupportedArchs(int *archs) {
    memcpy(archs, (int[]){52, 80, 90}, 3 * sizeof(int));
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcCreateProgram(nvrtc_program *out, const char *text, const char *name, int n_headers,
                                const char *const *headers, const char *const *names) {
    if (n_headers > HEADERS) return OUT_OF_MEMORY;
    nvrtc_program p = calloc(1, sizeof *p);
    for (; p->n_headers < n_headers; p->n_headers++) {
        p->headers[p->n_headers] = strdup(headers[p->n_headers]);
        p->names[p->n_headers] = strdup(names[p->n_headers]);
    }
    p->text = strdup(text);
    p->name = strdup(name);
    *out = p;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcDestroyProgram(nvrtc_program *p) {
    free((*p)->text);
    free((*p)->name);
    free((*p)->entry);
    free((*p)->lowered);
    free((*p)->log);
    free((*p)->ptx);
    for (int k = 0; k < (*p)->n_headers; k++) {
        free((*p)->headers[k]);
        free((*p)->names[k]);
    }
    free(*p);
    *p = NULL;
    return NVRTC_SUCCESS;
}

// The lowered name of an instance of a template is an identifier, as a mangled name is.
nvrtc_result nvrtcAddNameExpression(nvrtc_program p, const char *name) {
    p->entry = strdup(name);
    p->lowered = strdup(name);
    for (char *c = p->lowered; *c; c++)
        if (strchr("<>, :()", *c)) *c = '_';
    return NVRTC_SUCCESS;
}

// ---- files ------------------------------------------------------------------------------------------------

static char *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *text = calloc(1, *n + 1);
    *n = fread(text, 1, *n, f);
    fclose(f);
    return text;
}

// Headers go where the compiler finds them, those of a folder into one.
static int write_headers(const char *dir, const nvrtc_program p) {
    for (int k = 0; k < p->n_headers; k++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", dir, p->names[k]);
        for (char *c = path + strlen(dir) + 1; (c = strchr(c, '/')) != NULL; *c++ = '/') {
            *c = 0;
            mkdir(path, 0700);
        }
        FILE *f = fopen(path, "w");
        if (!f) return INTERNAL;
        fputs(p->headers[k], f);
        fclose(f);
    }
    return NVRTC_SUCCESS;
}

static int write_source(const char *path, const nvrtc_program p) {
    size_t n;
    char *host = read_file(HOST_H, &n);
    FILE *f = fopen(path, "w");
    if (!host || !f) return INTERNAL;
    bool fibers = p->n_headers > 0 || strstr(p->text, "__sync") || strstr(p->text, "__shfl");
    fprintf(f, "#define DQ_FIBERS %d\n#define DQ_RINGS %d\n#define FAKE_ENTRY %s\n%s%s%s", fibers,
            p->n_headers > 0, p->entry, host, p->text, wrapper);
    fclose(f);
    free(host);
    return NVRTC_SUCCESS;
}

// GCC's "file:12:5: error: …" becomes NVRTC's "file(12): error: …".
static char *as_nvrtc(char *log) {
    for (char *line = log; line && *line; line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
        char *colon = strchr(line, ':'), *rest;
        unsigned long number = colon ? strtoul(colon + 1, &rest, 10) : 0;
        if (number == 0 || *rest != ':') continue;
        strtoul(rest + 1, &rest, 10); // the column
        *colon = '(';
        char *end = colon + 1;
        while (*end >= '0' && *end <= '9')
            end++;
        *end++ = ')';
        if (*rest == ':') memmove(end, rest, strlen(rest) + 1);
    }
    return log;
}

// ---- compiling --------------------------------------------------------------------------------------------

// The entry as PTX declares it: 8 bytes are .u64, whatever they are.
static void declare(FILE *f, const char *entry, const char *types) {
    fprintf(f, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry %s(", entry);
    for (int k = 0; types[2 * k]; k++)
        fprintf(f, "%s\n\t.param .%c%d %s_param_%d", k ? "," : "", types[2 * k] == 'f' ? 'f' : 'u',
                8 * (types[2 * k + 1] - '0'), entry, k);
    fprintf(f, "\n)\n{ ret; }\n// fake library ");
}

static int make_ptx(nvrtc_program p, const char *library) {
    void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const char *const *types = lib ? dlsym(lib, "daqiri_kernel") : NULL;
    size_t n = 0, size = 0;
    char *bytes = read_file(library, &n);
    if (!types || !bytes) {
        fprintf(stderr, "fake NVRTC: %s\n", dlerror());
        return INTERNAL;
    }
    FILE *f = open_memstream(&p->ptx, &size);
    declare(f, p->lowered, *types);
    for (size_t k = 0; k < n; k++)
        fprintf(f, "%02x", (unsigned char)bytes[k]);
    fprintf(f, "\n");
    fclose(f);
    free(bytes);
    dlclose(lib);
    return NVRTC_SUCCESS;
}

static int make(nvrtc_program p, const char *dir) {
    char in[64], out[64], reply[64], command[400];
    size_t n;
    snprintf(in, sizeof in, "%s/kernel.cu", dir);
    snprintf(out, sizeof out, "%s/kernel.so", dir);
    snprintf(reply, sizeof reply, "%s/log", dir);
    int err = write_headers(dir, p);
    if (err == NVRTC_SUCCESS) err = write_source(in, p);
    if (err != NVRTC_SUCCESS) return err;
    snprintf(command, sizeof command,
             "LC_ALL=C c++ -x c++ -std=gnu++17 -O1 -fPIC -shared -w -idirafter %s -o %s %s -lm >%s 2>&1", dir,
             out, in, reply);
    err = system(command);
    p->log = as_nvrtc(read_file(reply, &n));
    err = err == 0 ? make_ptx(p, out) : NVRTC_ERROR_COMPILATION;
    return err;
}

nvrtc_result nvrtcCompileProgram(nvrtc_program p, int n, const char *const *options) {
    bool arch = false;
    for (int k = 0; k < n; k++)
        arch = arch || strcmp(options[k], "--gpu-architecture=compute_80") == 0; // the fake GPU's
    char dir[] = "/tmp/fake-nvrtc-XXXXXX";
    if (!arch) return INVALID_OPTION;
    if (!mkdtemp(dir)) return INTERNAL;
    int err = make(p, dir);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) == 0 ? err : INTERNAL;
}

nvrtc_result nvrtcGetProgramLogSize(nvrtc_program p, size_t *n) {
    *n = p->log ? strlen(p->log) + 1 : 1;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetProgramLog(nvrtc_program p, char *log) {
    strcpy(log, p->log ? p->log : "");
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetLoweredName(nvrtc_program p, const char *name, const char **lowered) {
    *lowered = p->lowered;
    return strcmp(p->entry, name) == 0 ? NVRTC_SUCCESS : INTERNAL;
}

nvrtc_result nvrtcGetPTXSize(nvrtc_program p, size_t *n) {
    *n = strlen(p->ptx) + 1;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetPTX(nvrtc_program p, char *ptx) {
    strcpy(ptx, p->ptx);
    return NVRTC_SUCCESS;
}

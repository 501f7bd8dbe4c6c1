// dqtest.h: the little that a C unit test needs: checks that print what they saw, named cases, a seeded
// generator.
//
// A test is one program: main lists its cases with DQ_RUN and returns dq_done(). Arguments select cases by
// name. Exit codes: 0 all passed, 1 a check failed, 77 skipped (DQ_SKIP). Checks may be used from several
// threads.
#ifndef DQTEST_H
#define DQTEST_H

#include "dq.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define DQ_SANITIZED 1
#elif defined __has_feature // clang
#if __has_feature(memory_sanitizer)
#define DQ_SANITIZED 1
#endif
#endif
#ifndef DQ_SANITIZED
#define DQ_SANITIZED 0
#endif

// Of n random rounds, or other repetitions, as many as there is time for: an eighth where a sanitizer or an
// emulator makes each of several instructions ten.
#ifdef __x86_64__
#define DQ_ROUNDS(n) (DQ_SANITIZED ? (n) / 8 : (n))
#else
#define DQ_ROUNDS(n) ((n) / 8)
#endif

static _Atomic int dq_failures;
static const char *dq_case = "";
static char **dq_wanted;

// Reports a failed check; the case continues. More than 20 failures end the program: the first ones suffice.
static inline void dq_failed(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, dq_case, what);
    if (atomic_fetch_add(&dq_failures, 1) >= 20) exit(1);
}

#define DQ_CHECK(cond)                                                                                       \
    do {                                                                                                     \
        if (!(cond)) dq_failed(__FILE__, __LINE__, "not true: " #cond);                                      \
    } while (0)

// Compares integers of up to 64 bits and prints both.
#define DQ_EQ(got, want)                                                                                     \
    do {                                                                                                     \
        uint64_t dq_got = (uint64_t)(got), dq_want = (uint64_t)(want);                                       \
        if (dq_got != dq_want) {                                                                             \
            char dq_text[512];                                                                               \
            snprintf(dq_text, sizeof dq_text,                                                                \
                     "%s is %" PRIu64 " (0x%" PRIx64 "), want %" PRIu64 " (0x%" PRIx64 ")", #got, dq_got,    \
                     dq_got, dq_want, dq_want);                                                              \
            dq_failed(__FILE__, __LINE__, dq_text);                                                          \
        }                                                                                                    \
    } while (0)

#define DQ_EQ_STR(got, want)                                                                                 \
    do {                                                                                                     \
        const char *dq_got = (got), *dq_want = (want);                                                       \
        if (strcmp(dq_got, dq_want) != 0) {                                                                  \
            char dq_text[1024];                                                                              \
            snprintf(dq_text, sizeof dq_text, "%s is \"%s\", want \"%s\"", #got, dq_got, dq_want);           \
            dq_failed(__FILE__, __LINE__, dq_text);                                                          \
        }                                                                                                    \
    } while (0)

// Prints n bytes where they differ from what is wanted.
#define DQ_EQ_BYTES(got, want, n)                                                                            \
    do {                                                                                                     \
        const uint8_t *dq_got = (const uint8_t *)(got), *dq_want = (const uint8_t *)(want);                  \
        bool dq_same = !(n) || !memcmp(dq_got, dq_want, n);                                                  \
        for (size_t dq_i = 0; !dq_same && dq_i < (size_t)(n); dq_i++) {                                      \
            if (dq_got[dq_i] == dq_want[dq_i]) continue;                                                     \
            char dq_text[256];                                                                               \
            snprintf(dq_text, sizeof dq_text, "%s[%zu] is 0x%02x, want 0x%02x", #got, dq_i, dq_got[dq_i],    \
                     dq_want[dq_i]);                                                                         \
            dq_failed(__FILE__, __LINE__, dq_text);                                                          \
            break;                                                                                           \
        }                                                                                                    \
    } while (0)

// True when DAQIRI_REQUIRE, a list separated by commas or spaces, names what this machine should have.
static inline bool dq_required(const char *what) {
    const char *list = getenv("DAQIRI_REQUIRE");
    size_t len = strlen(what);
    for (const char *at = list; at && *at; at += strcspn(at, ", ")) {
        at += strspn(at, ", ");
        if (strncmp(at, what, len) == 0 && (at[len] == 0 || strchr(", ", at[len]))) return true;
    }
    return false;
}

// Ends the program as skipped, saying why; a failure when a check failed before.
#define DQ_SKIP(why)                                                                                         \
    do {                                                                                                     \
        fprintf(stderr, "skip: %s\n", why);                                                                  \
        exit(atomic_load(&dq_failures) ? 1 : 77);                                                            \
    } while (0)

// Ends the program for want of something: as skipped, or as failed where DAQIRI_REQUIRE names it.
static inline void dq_lack(const char *what, const char *why) {
    if (dq_required(what)) dq_failed(__FILE__, __LINE__, why);
    fprintf(stderr, "skip: %s: %s\n", what, why);
    exit(atomic_load(&dq_failures) ? 1 : 77);
}

// Runs a case, a function without arguments, unless the command line names others.
#define DQ_RUN(fn) dq_run(#fn, fn)

static inline void dq_run(const char *name, void (*fn)(void)) {
    bool wanted = dq_wanted == NULL || *dq_wanted == NULL;
    for (char **w = dq_wanted; !wanted && *w != NULL; w++)
        wanted = strcmp(*w, name) == 0;
    if (!wanted) return;
    dq_case = name;
    int before = atomic_load(&dq_failures);
    fn();
    printf("%s %s\n", atomic_load(&dq_failures) == before ? "ok  " : "FAIL", name);
}

// Runs a case that starts no thread: it has nothing to show to the thread sanitizer, which leaves it out.
#ifdef __SANITIZE_THREAD__
#define DQ_RUN_ALONE(fn) ((void)(fn))
#else
#define DQ_RUN_ALONE(fn) DQ_RUN(fn)
#endif

static inline void dq_begin(int argc, char **argv) { dq_wanted = argc > 1 ? argv + 1 : NULL; }
static inline int dq_done(void) { return atomic_load(&dq_failures) ? 1 : 0; }

// A small generator (splitmix64): the same numbers from the same seed everywhere.
static inline uint64_t dq_rand(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

// A number in 0..n-1.
static inline uint32_t dq_below(uint64_t *state, uint32_t n) { return (uint32_t)(dq_rand(state) >> 32) % n; }

// A copy of n bytes with nothing behind it, so that the address sanitizer sees a read past the end. free()
// it.
static inline uint8_t *dq_exact(const uint8_t *p, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    if (copy == NULL) exit(1);
    if (n) memcpy(copy, p, n);
    return copy;
}

#endif

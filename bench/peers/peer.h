/* The protocol that every compiled peer speaks (see ../README.md): one JSON line at the start, then one line of JSON
 * for each line `run` on standard input. Header only, C11 and C++17, so that each peer is one compiled file.
 *
 * A peer defines its options as a table, calls peer_parse, prepares its work, and hands a function that performs one
 * timed repetition to peer_serve. */
#ifndef MULTIGRAIN_BENCH_PEER_H
#define MULTIGRAIN_BENCH_PEER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__GNUC__)
#define PEER_PRINTF(at) __attribute__((format(printf, at, at + 1)))
#define PEER_UNUSED __attribute__((unused))
#else
#define PEER_PRINTF(at)
#define PEER_UNUSED
#endif

enum { PEER_EXIT_FAILED = 1, PEER_EXIT_WRONG_REQUEST = 2, PEER_EXIT_MISSING = 3 };

/* One command-line option `--name value`; `value` holds the default until peer_parse replaces it. */
struct peer_option {
    const char *name;
    const char *value;
    const char *help;
};

/* One repetition's answer: the figure under `key` ("seconds" or "latency_ns") and further JSON members, each
 * preceded by a comma, in `more`. A repetition that failed sets `error` to a non-empty text instead. */
struct peer_answer {
    double value;
    const char *key;
    char more[256];
    char error[256];
};

static PEER_UNUSED void peer_print_json_string(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void peer_print_object(const char *key, const char *text) {
    printf("{\"%s\": ", key);
    peer_print_json_string(text);
    printf("}\n");
    fflush(stdout);
}

/* The peer cannot be used on this machine: says why and ends. */
static PEER_UNUSED PEER_PRINTF(1) void peer_missing(const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    peer_print_object("missing", text);
    exit(PEER_EXIT_MISSING);
}

/* The request makes no sense, or the work failed: says why and ends with `status`. */
static PEER_UNUSED PEER_PRINTF(2) void peer_error(int status, const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    peer_print_object("error", text);
    exit(status);
}

static PEER_UNUSED const char *peer_text(const struct peer_option *options, const char *name) {
    for (; options->name; options++)
        if (strcmp(options->name, name) == 0)
            return options->value;
    fprintf(stderr, "option --%s is not in the table\n", name);
    abort();
}

static PEER_UNUSED long peer_number(const struct peer_option *options, const char *name, long least, long most) {
    const char *text = peer_text(options, name);
    char *end = NULL;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || end == text || *end || number < least || number > most)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--%s wants a whole number from %ld to %ld, got '%s'", name, least, most,
                   text);
    return number;
}

static PEER_UNUSED void peer_help(const char *program, const struct peer_option *options) {
    printf("usage: %s [--probe] [--OPTION VALUE]...\n"
           "Then each line `run` on standard input performs one timed repetition; `quit` or the end of input ends.\n",
           program);
    for (; options->name; options++)
        printf("  --%-14s %s (default: %s)\n", options->name, options->help, options->value);
}

/* Reads `--name value` pairs into the table, which ends with a NULL name. Returns 1 if `--probe` was given. */
static PEER_UNUSED int peer_parse(int count, char **arguments, struct peer_option *options) {
    int probe = 0;
    for (int at = 1; at < count; at++) {
        if (strcmp(arguments[at], "--probe") == 0) {
            probe = 1;
            continue;
        }
        if (strcmp(arguments[at], "--help") == 0) {
            peer_help(arguments[0], options);
            exit(0);
        }
        struct peer_option *option = options;
        while (option->name && (strncmp(arguments[at], "--", 2) != 0 || strcmp(arguments[at] + 2, option->name) != 0))
            option++;
        if (!option->name)
            peer_error(PEER_EXIT_WRONG_REQUEST, "unknown option '%s'; --help lists the options", arguments[at]);
        if (at + 1 == count)
            peer_error(PEER_EXIT_WRONG_REQUEST, "%s wants a value", arguments[at]);
        option->value = arguments[++at];
    }
    return probe;
}

static PEER_UNUSED double peer_now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static PEER_UNUSED double peer_cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Libraries keep their threads spinning after a parallel region (Intel OpenMP: 200 ms), which would slow down
 * whatever is measured next. Waits until this process uses next to no processor time; gives up after 2 s and
 * returns 0. */
static PEER_UNUSED int peer_settle(void) {
    const struct timespec pause = {0, 5000000};
    double give_up = peer_now_seconds() + 2.0;
    while (peer_now_seconds() < give_up) {
        double before = peer_cpu_seconds();
        nanosleep(&pause, NULL);
        if (peer_cpu_seconds() - before < 0.0005)
            return 1;
    }
    return 0;
}

/* A peer that is asked for more threads than it may have processors would be measured unfairly, for instance when it
 * inherits the binding of the thread that started it. */
static PEER_UNUSED void peer_require_processors(long threads) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return; /* more processors than the set can name: certainly enough */
    if (CPU_COUNT(&allowed) < threads)
        peer_missing("%ld threads were asked for, but this process may run on %d processor(s) only; start it from an "
                     "unbound thread or ask for fewer threads",
                     threads, CPU_COUNT(&allowed));
}

/* Zeroed memory on a 2 MiB boundary, with `huge_pages` in huge pages where the system grants them. No page is touched
 * here, so whoever writes first decides where a page lies. Never returns NULL. */
static PEER_UNUSED void *peer_allocate(size_t bytes, int huge_pages) {
    const size_t huge = (size_t)2 << 20;
    size_t rounded = (bytes + huge - 1) / huge * huge;
    char *mapped = (char *)mmap(NULL, rounded + huge, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        peer_error(PEER_EXIT_FAILED, "cannot reserve %zu bytes of memory: %s", bytes, strerror(errno));
    char *aligned = (char *)(((uintptr_t)mapped + huge - 1) / huge * huge);
    madvise(aligned, rounded, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* advice: some kernels have none */
    return aligned;
}

static PEER_UNUSED uint32_t peer_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

/* Uniform in [-0.5, 0.5). */
static PEER_UNUSED float peer_random_float(uint64_t *state) {
    return (float)((double)peer_random(state) / 4294967296.0 - 0.5);
}

static PEER_UNUSED void peer_fill(float *data, size_t count, uint64_t seed) {
    for (size_t at = 0; at < count; at++)
        data[at] = peer_random_float(&seed);
}

static int peer_ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The answer of short operations, timed in batches: the median, and the 99th percentile. Sorts the batches, which are
 * means of nanoseconds. */
static PEER_UNUSED void peer_answer_batches(struct peer_answer *answer, double *batches, long count, long calls) {
    qsort(batches, (size_t)count, sizeof *batches, peer_ascending);
    answer->value = batches[count / 2];
    answer->key = "latency_ns";
    snprintf(answer->more, sizeof answer->more, ", \"calls\": %ld, \"p99_ns\": %.9g", calls, batches[count * 99 / 100]);
}

static PEER_UNUSED void peer_ready(const char *peer, const char *version) {
    printf("{\"ready\": true, \"peer\": ");
    peer_print_json_string(peer);
    printf(", \"version\": ");
    peer_print_json_string(version);
    printf("}\n");
    fflush(stdout);
}

/* Says ready, then performs one repetition for each line `run` until `quit` or the end of input. */
static PEER_UNUSED int peer_serve(const char *peer, const char *version, void (*repeat)(void *, struct peer_answer *),
                                  void *state) {
    char line[256];
    peer_settle();
    peer_ready(peer, version);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (strcmp(line, "quit") == 0)
            break;
        if (strcmp(line, "run") != 0) {
            peer_print_object("error", "unknown request; the requests are `run` and `quit`");
            continue;
        }
        struct peer_answer answer;
        memset(&answer, 0, sizeof answer);
        answer.key = "seconds";
        repeat(state, &answer);
        int settled = peer_settle();
        if (answer.error[0]) {
            peer_print_object("error", answer.error);
            return PEER_EXIT_FAILED;
        }
        printf("{\"peer\": ");
        peer_print_json_string(peer);
        printf(", \"version\": ");
        peer_print_json_string(version);
        printf(", \"%s\": %.9g%s%s}\n", answer.key, answer.value, answer.more, settled ? "" : ", \"unsettled\": true");
        fflush(stdout);
    }
    return 0;
}

#endif

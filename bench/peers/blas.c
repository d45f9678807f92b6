/* Times one BLAS routine of a given library: MKL (libmkl_rt), OpenBLAS, or the OpenBLAS that NumPy ships.
 *
 * The library is loaded at run time, so that one program drives them all and none is needed to compile it. Memory is
 * touched first by the library's own threads, in the library's own division of the work. */
#include "library.h"

#include <math.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

typedef void (*sgemm32)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                        int);
typedef void (*sgemm64)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                        int64_t, float, float *, int64_t);
typedef void (*sgemv32)(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void (*sgemv64)(int, int, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t, float,
                        float *, int64_t);
typedef void (*saxpy32)(int, float, const float *, int, float *, int);
typedef void (*saxpy64)(int64_t, float, const float *, int64_t, float *, int64_t);

struct library {
    void *handle;
    const char *prefix, *suffix; /* NumPy's OpenBLAS renames every symbol: scipy_cblas_sgemm64_ */
    int wide;                    /* sizes are 64-bit integers */
    void *sgemm, *sgemv, *saxpy;
};

enum work { SGEMM, SGEMV, SAXPY };

struct job {
    struct library library;
    enum work work;
    int m, n, k;
    float alpha;
    float *a, *b, *c;
    long inner; /* calls in one repetition */
};

/* Looks `name` up with the library's own prefix and suffix. POSIX lets a data pointer carry a function. */
static void *symbol(const struct library *library, const char *name) {
    char full[128];
    snprintf(full, sizeof full, "%s%s%s", library->prefix, name, library->suffix);
    return dlsym(library->handle, full);
}

static struct library open_library(const char *path) {
    static const char *const names[][2] = {{"", ""}, {"scipy_", "64_"}, {"", "64_"}, {"scipy_", ""}};
    struct library library;
    memset(&library, 0, sizeof library);
    library.handle = library_open(path);
    for (size_t at = 0; at < sizeof names / sizeof names[0]; at++) {
        library.prefix = names[at][0];
        library.suffix = names[at][1];
        library.wide = library.suffix[0] != '\0';
        library.sgemm = symbol(&library, "cblas_sgemm");
        library.sgemv = symbol(&library, "cblas_sgemv");
        library.saxpy = symbol(&library, "cblas_saxpy");
        if (library.sgemm && library.sgemv && library.saxpy)
            return library;
    }
    peer_missing("%s has no cblas_sgemm, cblas_sgemv and cblas_saxpy", path);
    return library; /* not reached */
}

/* Sets the thread count through the library's own interface and proves that it was taken. */
static void set_threads(const struct library *library, int threads) {
    int got = -1;
    if (library_is_mkl(library->handle)) {
        got = library_mkl_threads(library->handle, threads);
    } else {
        void (*set)(int) = (void (*)(int))symbol(library, "openblas_set_num_threads");
        int (*get)(void) = (int (*)(void))symbol(library, "openblas_get_num_threads");
        if (set && get) {
            set(threads);
            got = get();
        }
    }
    library_check_threads(got, threads);
}

enum { NAME_BYTES = 64 };

/* Writes the library's name (NAME_BYTES) and version (LIBRARY_VERSION_BYTES). */
static void describe(const struct library *library, char *peer, char *version) {
    if (library_is_mkl(library->handle)) {
        snprintf(peer, NAME_BYTES, "mkl");
        library_mkl_version(library->handle, version);
    } else {
        char *(*config)(void) = (char *(*)(void))symbol(library, "openblas_get_config");
        char *(*core)(void) = (char *(*)(void))symbol(library, "openblas_get_corename");
        snprintf(peer, NAME_BYTES, "openblas");
        snprintf(version, LIBRARY_VERSION_BYTES, "%s; running %s", config ? config() : "unknown",
                 core ? core() : "unknown");
    }
}

static void call_saxpy(const struct library *library, int n, float alpha, const float *x, float *y) {
    if (library->wide)
        ((saxpy64)library->saxpy)(n, alpha, x, 1, y, 1);
    else
        ((saxpy32)library->saxpy)(n, alpha, x, 1, y, 1);
}

static void call(const struct job *job) {
    const struct library *library = &job->library;
    int m = job->m, n = job->n, k = job->k;
    switch (job->work) {
    case SGEMM:
        if (library->wide)
            ((sgemm64)library->sgemm)(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1.0f, job->a, k, job->b, n, 0.0f,
                                      job->c, n);
        else
            ((sgemm32)library->sgemm)(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1.0f, job->a, k, job->b, n, 0.0f,
                                      job->c, n);
        break;
    case SGEMV:
        if (library->wide)
            ((sgemv64)library->sgemv)(ROW_MAJOR, NO_TRANSPOSE, m, n, 1.0f, job->a, n, job->b, 1, 0.0f, job->c, 1);
        else
            ((sgemv32)library->sgemv)(ROW_MAJOR, NO_TRANSPOSE, m, n, 1.0f, job->a, n, job->b, 1, 0.0f, job->c, 1);
        break;
    case SAXPY:
        call_saxpy(library, n, job->alpha, job->a, job->c);
        break;
    }
}

/* Elements touched first by the library's threads (0 + 1 * 0 leaves them zero), then filled. */
static float *array(const struct library *library, size_t elements, uint64_t seed) {
    float *data = (float *)peer_allocate(elements * sizeof(float), 1);
    const size_t most = (size_t)1 << 30;
    for (size_t at = 0; at < elements; at += most)
        call_saxpy(library, (int)(elements - at < most ? elements - at : most), 1.0f, data + at, data + at);
    if (seed)
        peer_fill(data, elements, seed);
    return data;
}

/* One result element in double precision, and the sum of the magnitudes that its error is measured against. */
static double expected(const struct job *job, size_t row, size_t column, float before, double *magnitude) {
    double sum = 0.0, all = 0.0;
    size_t terms = job->work == SGEMM ? (size_t)job->k : (size_t)job->n;
    if (job->work == SAXPY) {
        sum = (double)job->alpha * job->a[column] + before;
        *magnitude = fabs((double)job->alpha * job->a[column]) + fabs((double)before);
        return sum;
    }
    for (size_t at = 0; at < terms; at++) {
        double b = job->work == SGEMM ? job->b[at * (size_t)job->n + column] : job->b[at];
        double product = (double)job->a[row * terms + at] * b;
        sum += product;
        all += fabs(product);
    }
    *magnitude = all;
    return sum;
}

/* A peer that computes something else is no peer: compares 64 elements after one call. */
static void check(const struct job *job) {
    enum { SAMPLES = 64 };
    size_t rows = job->work == SAXPY ? 1 : (size_t)job->m;
    size_t columns = job->work == SGEMV ? 1 : (size_t)job->n;
    size_t at[SAMPLES];
    float before[SAMPLES];
    uint64_t seed = 77;
    for (int s = 0; s < SAMPLES; s++) {
        at[s] = (((uint64_t)peer_random(&seed) << 32) | peer_random(&seed)) % (rows * columns);
        before[s] = job->c[at[s]];
    }
    call(job);
    for (int s = 0; s < SAMPLES; s++) {
        double magnitude;
        double want = expected(job, at[s] / columns, at[s] % columns, before[s], &magnitude);
        double error = fabs((double)job->c[at[s]] - want);
        if (!(error <= 1e-4 * magnitude + 1e-30))
            peer_error(PEER_EXIT_FAILED, "the library's result is wrong at element %zu: %g, expected %g", at[s],
                       (double)job->c[at[s]], want);
    }
}

/* Calls in one repetition, so that it lasts at least `least_seconds`. */
static long calibrate(const struct job *job, double least_seconds) {
    for (long inner = 1;; inner *= 2) {
        double start = peer_now_seconds();
        for (long at = 0; at < inner; at++)
            call(job);
        if (peer_now_seconds() - start >= least_seconds || inner >= 1L << 24)
            return inner;
    }
}

static void repeat(void *state, struct peer_answer *answer) {
    const struct job *job = (const struct job *)state;
    if (job->inner > 1)
        call(job); /* short work: wakes the library's threads, which slept since the last repetition */
    double start = peer_now_seconds();
    for (long at = 0; at < job->inner; at++)
        call(job);
    answer->value = (peer_now_seconds() - start) / (double)job->inner;
    snprintf(answer->more, sizeof answer->more, ", \"calls\": %ld", job->inner);
}

int main(int count, char **arguments) {
    struct peer_option options[] = {
        {"library", "libopenblas.so.0", "the shared library to load"},
        {"work", "sgemm", "sgemm (C = A B), sgemv (y = A x) or saxpy (y = alpha x + y)"},
        {"m", "0", "rows of A; 0: as n"},
        {"n", "2048", "columns of B (sgemm), columns of A (sgemv), elements (saxpy)"},
        {"k", "0", "columns of A (sgemm); 0: as n"},
        {"threads", "2", "threads of the library"},
        {"least-ms", "50", "one repetition lasts at least so many milliseconds: the mean of several calls"},
        {NULL, NULL, NULL},
    };
    int probe = peer_parse(count, arguments, options);
    long threads = peer_number(options, "threads", 1, 4096);
    library_environment(threads);
    if (!probe)
        peer_require_processors(threads);

    struct job job;
    memset(&job, 0, sizeof job);
    const char *work = peer_text(options, "work");
    if (strcmp(work, "sgemm") == 0)
        job.work = SGEMM;
    else if (strcmp(work, "sgemv") == 0)
        job.work = SGEMV;
    else if (strcmp(work, "saxpy") == 0)
        job.work = SAXPY;
    else
        peer_error(PEER_EXIT_WRONG_REQUEST, "--work is sgemm, sgemv or saxpy, got '%s'", work);
    job.n = (int)peer_number(options, "n", 1, 1L << 30);
    job.m = (int)peer_number(options, "m", 0, 1L << 30);
    job.k = (int)peer_number(options, "k", 0, 1L << 30);
    job.m = job.m ? job.m : job.n;
    job.k = job.k ? job.k : job.n;
    job.alpha = 1e-3f; /* small: y grows with every call and must stay far from overflow */
    long least_ms = peer_number(options, "least-ms", 0, 60000);

    job.library = open_library(peer_text(options, "library"));
    char peer[NAME_BYTES], version[LIBRARY_VERSION_BYTES];
    describe(&job.library, peer, version);
    if (probe) {
        peer_ready(peer, version);
        return 0;
    }
    set_threads(&job.library, (int)threads);

    size_t m = (size_t)job.m, n = (size_t)job.n, k = (size_t)job.k;
    job.a = array(&job.library, job.work == SGEMM ? m * k : job.work == SGEMV ? m * n : n, 1);
    if (job.work != SAXPY)
        job.b = array(&job.library, job.work == SGEMM ? k * n : n, 2);
    job.c = array(&job.library, job.work == SGEMM ? m * n : job.work == SGEMV ? m : n, job.work == SAXPY ? 3 : 0);
    check(&job);
    job.inner = calibrate(&job, 1e-3 * (double)least_ms);
    return peer_serve(peer, version, repeat, &job);
}

/* Times the transform of a volume of complex numbers, in place, by a library with FFTW's interface: FFTW itself, planned
 * with FFTW_MEASURE, or MKL, whose libmkl_rt has the same functions.
 *
 * The library is loaded at run time, so that one program drives both and neither is needed to compile it. */
#include "library.h"

#include <math.h>

enum { FORWARD = -1, MEASURE = 0 }; /* FFTW_FORWARD and FFTW_MEASURE of fftw3.h */

typedef float complex_number[2];

struct job {
    void *plan;
    void (*execute)(void *);
    complex_number *data;
    size_t elements;
    int shape[3];
    uint64_t seed;
};

static void *library;

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    if (!found)
        peer_missing("the library has no %s", name);
    return found;
}

static void set_threads(int threads) {
    if (library_is_mkl(library))
        library_check_threads(library_mkl_threads(library, threads), threads);
    if (!((int (*)(void))symbol("fftwf_init_threads"))())
        peer_missing("the library cannot start threads");
    ((void (*)(int))symbol("fftwf_plan_with_nthreads"))(threads);
    int (*get)(void) = (int (*)(void))dlsym(library, "fftwf_planner_nthreads");
    if (get)
        library_check_threads(get(), threads);
}

static void describe(char *version) {
    const char *text = (const char *)dlsym(library, "fftwf_version");
    if (library_is_mkl(library))
        library_mkl_version(library, version);
    else
        snprintf(version, LIBRARY_VERSION_BYTES, "%s, planned with FFTW_MEASURE", text ? text : "unknown");
}

/* Results grow with every repetition; before they overflow the volume is filled anew. */
static void fill(struct job *job) { peer_fill(job->data[0], 2 * job->elements, job->seed); }

/* A peer that computes something else is no peer: compares sampled results with direct sums in double precision. */
static void check(struct job *job) {
    enum { SAMPLES = 3 };
    const int *shape = job->shape;
    int places[SAMPLES][3] = {{0, 0, 0},
                              {shape[0] - 1, shape[1] / 2, shape[2] / 3},
                              {shape[0] / 3, shape[1] - 1, shape[2] - 1}};
    double sums[SAMPLES][2], squares = 0.0;
    const double turn = 6.283185307179586;
    for (int s = 0; s < SAMPLES; s++) {
        sums[s][0] = sums[s][1] = 0.0;
        for (int x = 0; x < shape[0]; x++)
            for (int y = 0; y < shape[1]; y++) {
                const complex_number *row = job->data + ((size_t)x * (size_t)shape[1] + (size_t)y) * (size_t)shape[2];
                double angle = -turn * ((double)places[s][0] * x / shape[0] + (double)places[s][1] * y / shape[1]);
                double step = -turn * places[s][2] / shape[2], re = 0.0, im = 0.0;
                double c = 1.0, w = 0.0, cs = cos(step), ss = sin(step);
                for (int z = 0; z < shape[2]; z++) {
                    re += row[z][0] * c - row[z][1] * w;
                    im += row[z][0] * w + row[z][1] * c;
                    squares += s ? 0.0 : (double)row[z][0] * row[z][0] + (double)row[z][1] * row[z][1];
                    double next = c * cs - w * ss;
                    w = c * ss + w * cs;
                    c = next;
                }
                sums[s][0] += re * cos(angle) - im * sin(angle);
                sums[s][1] += re * sin(angle) + im * cos(angle);
            }
    }
    job->execute(job->plan);
    for (int s = 0; s < SAMPLES; s++) {
        size_t at = ((size_t)places[s][0] * (size_t)shape[1] + (size_t)places[s][1]) * (size_t)shape[2];
        const float *found = job->data[at + (size_t)places[s][2]];
        double error = hypot(found[0] - sums[s][0], found[1] - sums[s][1]) / sqrt(squares);
        if (!(error <= 1e-5))
            peer_error(PEER_EXIT_FAILED, "the library's result is wrong: sample %d is off by %g", s, error);
    }
}

static void repeat(void *state, struct peer_answer *answer) {
    struct job *job = (struct job *)state;
    fill(job);
    job->execute(job->plan); /* wakes the library's threads, which slept since the last repetition */
    double start = peer_now_seconds();
    job->execute(job->plan);
    job->execute(job->plan);
    answer->value = (peer_now_seconds() - start) / 2.0;
    snprintf(answer->more, sizeof answer->more, ", \"calls\": 2");
}

int main(int count, char **arguments) {
    struct peer_option options[] = {
        {"library", "libfftw3f_threads.so.3", "the shared library to load"},
        {"x", "256", "length of the slowest axis"},
        {"y", "256", "length of the middle axis"},
        {"z", "256", "length of the fastest axis"},
        {"threads", "2", "threads of the library"},
        {NULL, NULL, NULL},
    };
    int probe = peer_parse(count, arguments, options);
    long threads = peer_number(options, "threads", 1, 4096);
    char version[LIBRARY_VERSION_BYTES];
    library_environment(threads);
    if (!probe)
        peer_require_processors(threads);
    library = library_open(peer_text(options, "library"));
    describe(version);
    const char *name = library_is_mkl(library) ? "mkl" : "fftw";
    if (probe) {
        peer_ready(name, version);
        return 0;
    }
    struct job job;
    memset(&job, 0, sizeof job);
    job.seed = 1;
    job.shape[0] = (int)peer_number(options, "x", 1, 1L << 20);
    job.shape[1] = (int)peer_number(options, "y", 1, 1L << 20);
    job.shape[2] = (int)peer_number(options, "z", 1, 1L << 20);
    job.elements = (size_t)job.shape[0] * (size_t)job.shape[1] * (size_t)job.shape[2];
    set_threads((int)threads);
    job.data = (complex_number *)peer_allocate(job.elements * sizeof(complex_number), 1);
    job.execute = (void (*)(void *))symbol("fftwf_execute");
    void *(*plan)(int, int, int, complex_number *, complex_number *, int, unsigned) =
        (void *(*)(int, int, int, complex_number *, complex_number *, int, unsigned))symbol("fftwf_plan_dft_3d");
    job.plan = plan(job.shape[0], job.shape[1], job.shape[2], job.data, job.data, FORWARD, MEASURE);
    if (!job.plan)
        peer_error(PEER_EXIT_FAILED, "the library makes no plan for this volume");
    fill(&job);
    check(&job);
    return peer_serve(name, version, repeat, &job);
}

/* What a barrier, a sum of floats in its place, and a whole parallel region cost among OpenMP threads: nanoseconds an
 * operation. The same program serves both runtimes: compiled for GNU's, and under LLVM's by preloading it, which speaks
 * GNU's interface. */
#include "peer.h"

#include <omp.h>

enum { BATCH = 32, ELEMENTS_MAX = 4096 };

struct job {
    int reduce;
    int region;
    long calls;
    long elements;
    int threads;
    double *batches;
};

static float result[ELEMENTS_MAX];

/* Sums of what each thread contributes, as OpenMP programs write them; contributions are written anew each time. */
static void sum(long elements, long call, float *own) {
    for (long i = 0; i < elements; i++)
        own[i] = (float)(call + i);
#pragma omp for schedule(static) reduction(+ : result[:elements])
    for (int t = 0; t < omp_get_num_threads(); t++)
        for (long i = 0; i < elements; i++)
            result[i] += own[i];
}

static void perform(struct job *job, long batches) {
#pragma omp parallel num_threads(job->threads)
    {
        float own[ELEMENTS_MAX];
        for (long batch = 0; batch < batches; batch++) {
            double start = peer_now_seconds();
            for (long call = 0; call < BATCH; call++) {
                if (job->reduce) {
                    sum(job->elements, call, own);
                } else {
#pragma omp barrier
                }
            }
            if (omp_get_thread_num() == 0)
                job->batches[batch] = (peer_now_seconds() - start) / BATCH * 1e9;
        }
    }
}

/* A parallel region for each operation, as a program has that shares one loop after the other. */
static void regions(struct job *job, long batches) {
    for (long batch = 0; batch < batches; batch++) {
        double start = peer_now_seconds();
        for (long call = 0; call < BATCH; call++) {
#pragma omp parallel num_threads(job->threads)
            __asm__ volatile("" ::: "memory");
        }
        job->batches[batch] = (peer_now_seconds() - start) / BATCH * 1e9;
    }
}

static void repeat(void *state, struct peer_answer *answer) {
    struct job *job = (struct job *)state;
    long batches = job->calls / BATCH;
    void (*work)(struct job *, long) = job->region ? regions : perform;
    work(job, batches < 8 ? batches : 8); /* wakes the threads */
    work(job, batches);
    peer_answer_batches(answer, job->batches, batches, job->calls);
}

int main(int count, char **arguments) {
    struct peer_option options[] = {
        {"work", "barrier", "barrier, reduce (a reduction clause over an array of floats) or region (a parallel region)"},
        {"calls", "20000", "operations in one repetition; the figure is the median of batches of 32"},
        {"elements", "32", "floats of a reduction"},
        {"threads", "2", "threads"},
        {"runtime", "libgomp", "the name of the runtime"},
        {NULL, NULL, NULL},
    };
    int probe = peer_parse(count, arguments, options);
    const char *work = peer_text(options, "work");
    struct job job = {0};
    job.reduce = strcmp(work, "reduce") == 0;
    job.region = strcmp(work, "region") == 0;
    if (!job.reduce && !job.region && strcmp(work, "barrier") != 0)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--work is barrier, reduce or region, got '%s'", work);
    job.calls = peer_number(options, "calls", BATCH, 100000000);
    job.elements = peer_number(options, "elements", 1, ELEMENTS_MAX);
    job.threads = (int)peer_number(options, "threads", 1, 4096);
    job.batches = (double *)calloc((size_t)(job.calls / BATCH), sizeof *job.batches);
    if (!job.batches)
        peer_error(PEER_EXIT_FAILED, "no memory for %ld samples", job.calls / BATCH);
    const char *name = peer_text(options, "runtime");
    char version[64];
    snprintf(version, sizeof version, "%s, OpenMP %d", name, _OPENMP);
    if (probe) {
        peer_ready(name, version);
        return 0;
    }
    return peer_serve(name, version, repeat, &job);
}

/* Direct N-body as it is written by hand for speed: AVX-512, the approximate reciprocal square root and one Newton step,
 * blocks of targets in registers, every source broadcast; two of the loops below run, one on each thread.
 *
 *   gravity --n 8192 --steps 100 --threads 2
 *
 * A repetition is so many steps of velocity Verlet on a Plummer sphere, all in single precision; before the first, forces
 * are compared with sums in double precision. */
#include "peer.h"
#include <math.h>
#include <pthread.h>

#if defined(__x86_64__) && defined(__AVX512F__)
#include <immintrin.h>

enum { BLOCK = 4, LANES = 16, THREADS_MAX = 256 };

struct bodies {
    size_t n;
    float *mass, *x[3], *v[3], *a[3];
    float softening2, dt;
};

struct job {
    struct bodies bodies;
    long threads, steps;
    double force_error;
    pthread_barrier_t start, done;
    pthread_t thread[THREADS_MAX];
    unsigned arrived, turn;
};

struct seat {
    struct job *job;
    long number;
};

/* Accelerations of targets from..to, a whole number of blocks. */
static void forces(const struct bodies *b, size_t from, size_t to) {
    const __m512 softening2 = _mm512_set1_ps(b->softening2), half = _mm512_set1_ps(0.5f), three_halves = _mm512_set1_ps(1.5f);
    for (size_t i = from; i < to; i += BLOCK * LANES) {
        __m512 x[BLOCK], y[BLOCK], z[BLOCK], ax[BLOCK], ay[BLOCK], az[BLOCK];
        for (int k = 0; k < BLOCK; k++) {
            x[k] = _mm512_load_ps(b->x[0] + i + LANES * k);
            y[k] = _mm512_load_ps(b->x[1] + i + LANES * k);
            z[k] = _mm512_load_ps(b->x[2] + i + LANES * k);
            ax[k] = ay[k] = az[k] = _mm512_setzero_ps();
        }
        for (size_t j = 0; j < b->n; j++) {
            __m512 sx = _mm512_set1_ps(b->x[0][j]), sy = _mm512_set1_ps(b->x[1][j]), sz = _mm512_set1_ps(b->x[2][j]);
            __m512 m = _mm512_set1_ps(b->mass[j]);
#pragma GCC unroll 4
            for (int k = 0; k < BLOCK; k++) {
                __m512 dx = _mm512_sub_ps(sx, x[k]), dy = _mm512_sub_ps(sy, y[k]), dz = _mm512_sub_ps(sz, z[k]);
                __m512 r2 = _mm512_fmadd_ps(dz, dz, softening2);
                r2 = _mm512_fmadd_ps(dy, dy, r2);
                r2 = _mm512_fmadd_ps(dx, dx, r2);
                __m512 r = _mm512_rsqrt14_ps(r2);
                r = _mm512_mul_ps(r, _mm512_fnmadd_ps(_mm512_mul_ps(r2, half), _mm512_mul_ps(r, r), three_halves));
                __m512 s = _mm512_mul_ps(_mm512_mul_ps(m, r), _mm512_mul_ps(r, r));
                ax[k] = _mm512_fmadd_ps(s, dx, ax[k]);
                ay[k] = _mm512_fmadd_ps(s, dy, ay[k]);
                az[k] = _mm512_fmadd_ps(s, dz, az[k]);
            }
        }
        for (int k = 0; k < BLOCK; k++) {
            _mm512_store_ps(b->a[0] + i + LANES * k, ax[k]);
            _mm512_store_ps(b->a[1] + i + LANES * k, ay[k]);
            _mm512_store_ps(b->a[2] + i + LANES * k, az[k]);
        }
    }
}

/* All threads meet; they spin, since a step is short. */
static void meet(struct job *job) {
    unsigned turn = __atomic_load_n(&job->turn, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&job->arrived, 1, __ATOMIC_ACQ_REL) == (unsigned)job->threads) {
        __atomic_store_n(&job->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&job->turn, turn + 1, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(&job->turn, __ATOMIC_ACQUIRE) == turn)
            _mm_pause();
    }
}

static void simulate(struct job *job, long number) {
    struct bodies *b = &job->bodies;
    size_t blocks = b->n / (BLOCK * LANES);
    size_t from = blocks * (size_t)number / (size_t)job->threads * (BLOCK * LANES);
    size_t to = blocks * (size_t)(number + 1) / (size_t)job->threads * (BLOCK * LANES);
    float half = 0.5f * b->dt;
    for (long step = 0; step < job->steps; step++) {
        for (int d = 0; d < 3; d++)
            for (size_t i = from; i < to; i++) {
                b->v[d][i] += half * b->a[d][i];
                b->x[d][i] += b->dt * b->v[d][i];
            }
        meet(job);
        forces(b, from, to);
        for (int d = 0; d < 3; d++)
            for (size_t i = from; i < to; i++)
                b->v[d][i] += half * b->a[d][i];
        meet(job);
    }
}

static void *work(void *argument) {
    struct seat *seat = (struct seat *)argument;
    for (;;) {
        pthread_barrier_wait(&seat->job->start);
        simulate(seat->job, seat->number);
        pthread_barrier_wait(&seat->job->done);
    }
    return NULL;
}

/* A Plummer sphere in standard units. */
static void plummer(struct bodies *b) {
    uint64_t seed = 1;
    double scale = 3.0 * M_PI / 16.0;
    for (size_t i = 0; i < b->n; i++) {
        double u[6];
        for (int k = 0; k < 6; k++)
            u[k] = (peer_random(&seed) + 0.5) / 4294967296.0;
        double r = 1.0 / sqrt(pow(0.999 * u[0], -2.0 / 3.0) - 1.0), q, height;
        do {
            q = (peer_random(&seed) + 0.5) / 4294967296.0;
            height = 0.1 * (peer_random(&seed) + 0.5) / 4294967296.0;
        } while (height > q * q * pow(1.0 - q * q, 3.5));
        double speed = q * sqrt(2.0 / sqrt(1.0 + r * r)) / sqrt(scale);
        double c = 2.0 * u[1] - 1.0, p = 2.0 * M_PI * u[2], e = 2.0 * u[3] - 1.0, f = 2.0 * M_PI * u[4];
        double way[3] = {sqrt(1 - c * c) * cos(p), sqrt(1 - c * c) * sin(p), c};
        double going[3] = {sqrt(1 - e * e) * cos(f), sqrt(1 - e * e) * sin(f), e};
        b->mass[i] = 1.0f / (float)b->n;
        for (int d = 0; d < 3; d++) {
            b->x[d][i] = (float)(scale * r * way[d]);
            b->v[d][i] = (float)(speed * going[d]);
        }
    }
}

/* Largest error of a force relative to the force itself; a peer that computes something else is no peer. */
static double check(const struct bodies *b) {
    double worst = 0.0;
    for (size_t i = 0; i < b->n; i++) {
        double exact[3] = {0, 0, 0}, error = 0, norm = 0;
        for (size_t j = 0; j < b->n; j++) {
            double d[3], r2 = b->softening2;
            for (int k = 0; k < 3; k++) {
                d[k] = (double)b->x[k][j] - (double)b->x[k][i];
                r2 += d[k] * d[k];
            }
            for (int k = 0; k < 3; k++)
                exact[k] += b->mass[j] / (r2 * sqrt(r2)) * d[k];
        }
        for (int k = 0; k < 3; k++) {
            error += (b->a[k][i] - exact[k]) * (b->a[k][i] - exact[k]);
            norm += exact[k] * exact[k];
        }
        worst = fmax(worst, sqrt(error / norm));
    }
    if (!(worst < 1e-4))
        peer_error(PEER_EXIT_FAILED, "the forces are wrong by %g", worst);
    return worst;
}

static void repeat(void *state, struct peer_answer *answer) {
    struct job *job = (struct job *)state;
    double start = peer_now_seconds();
    pthread_barrier_wait(&job->start);
    pthread_barrier_wait(&job->done);
    answer->value = peer_now_seconds() - start;
    snprintf(answer->more, sizeof answer->more, ", \"max_relative_error\": %.3g", job->force_error);
}

static float *array(size_t n) {
    float *data = (float *)aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
    if (!data)
        peer_error(PEER_EXIT_FAILED, "no memory");
    memset(data, 0, n * sizeof(float));
    return data;
}
#endif

int main(int count, char **arguments) {
    struct peer_option options[] = {
        {"n", "8192", "particles, a multiple of 64"},
        {"steps", "100", "steps of one repetition"},
        {"threads", "2", "threads"},
        {NULL, NULL, NULL},
    };
    int probe = peer_parse(count, arguments, options);
#if defined(__x86_64__) && defined(__AVX512F__)
    if (!__builtin_cpu_supports("avx512f"))
        peer_missing("this processor has no AVX-512");
    const char *peer = "rsqrt14", *version = "AVX-512 rsqrt14 and one Newton step, " __VERSION__;
    if (probe) {
        peer_ready(peer, version);
        return 0;
    }
    static struct job job;
    job.threads = peer_number(options, "threads", 1, THREADS_MAX);
    job.steps = peer_number(options, "steps", 1, 1L << 30);
    peer_require_processors(job.threads);
    struct bodies *b = &job.bodies;
    b->n = (size_t)peer_number(options, "n", BLOCK * LANES, 1L << 24);
    if (b->n % (BLOCK * LANES))
        peer_error(PEER_EXIT_WRONG_REQUEST, "--n is a multiple of %d", BLOCK * LANES);
    b->softening2 = 1e-4f;
    b->dt = 1e-3f;
    b->mass = array(b->n);
    for (int d = 0; d < 3; d++) {
        b->x[d] = array(b->n);
        b->v[d] = array(b->n);
        b->a[d] = array(b->n);
    }
    plummer(b);
    forces(b, 0, b->n);
    job.force_error = check(b);
    pthread_barrier_init(&job.start, NULL, (unsigned)job.threads + 1);
    pthread_barrier_init(&job.done, NULL, (unsigned)job.threads + 1);
    static struct seat seats[THREADS_MAX];
    for (long t = 0; t < job.threads; t++) {
        seats[t].job = &job;
        seats[t].number = t;
        if (pthread_create(&job.thread[t], NULL, work, &seats[t]))
            peer_error(PEER_EXIT_FAILED, "a thread could not be started");
    }
    return peer_serve(peer, version, repeat, &job);
#else
    (void)probe;
    peer_missing("this compiler makes no AVX-512 for this processor");
#endif
}

/* What collective operations cost among MPI processes in shared memory: nanoseconds an operation. Started by
 * mpi_collectives.sh; the first process talks, and tells the others what to do. */
#include "peer.h"

#include <mpi.h>

enum { BATCH = 32 };

enum work { BARRIER, BCAST, REDUCE, ALLREDUCE };

struct job {
    enum work work;
    long calls;
    int elements;
    float *own, *result;
    double *batches;
    int rank;
};

static void perform(struct job *job, long batches) {
    for (long batch = 0; batch < batches; batch++) {
        double start = peer_now_seconds();
        for (long call = 0; call < BATCH; call++) {
            if (job->work != BARRIER) /* buffers are written anew each time */
                for (int i = 0; i < job->elements; i++)
                    job->own[i] = (float)(call + i);
            switch (job->work) {
            case BARRIER: MPI_Barrier(MPI_COMM_WORLD); break;
            case BCAST: MPI_Bcast(job->own, job->elements, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
            case REDUCE:
                MPI_Reduce(job->own, job->result, job->elements, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
                break;
            case ALLREDUCE:
                MPI_Allreduce(job->own, job->result, job->elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                break;
            }
        }
        job->batches[batch] = (peer_now_seconds() - start) / BATCH * 1e9;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Tells the others whether there is another repetition. */
static void tell(int go) {
    MPI_Request request;
    MPI_Ibcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void repeat(void *state, struct peer_answer *answer) {
    struct job *job = (struct job *)state;
    long batches = job->calls / BATCH;
    tell(1);
    perform(job, batches < 8 ? batches : 8);
    perform(job, batches);
    peer_answer_batches(answer, job->batches, batches, job->calls);
}

int main(int count, char **arguments) {
    struct peer_option options[] = {
        {"work", "barrier", "barrier, bcast, reduce or allreduce (of floats, sum)"},
        {"calls", "20000", "operations in one repetition; the figure is the median of batches of 32"},
        {"elements", "32", "floats of a message"},
        {"threads", "2", "processes; taken by mpi_collectives.sh"},
        {NULL, NULL, NULL},
    };
    MPI_Init(&count, &arguments);
    int probe = peer_parse(count, arguments, options);
    static const char *const works[] = {"barrier", "bcast", "reduce", "allreduce"};
    struct job job = {0};
    int found = 0;
    for (int i = 0; i < 4; i++)
        if (strcmp(peer_text(options, "work"), works[i]) == 0) {
            job.work = (enum work)i;
            found = 1;
        }
    if (!found)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--work is barrier, bcast, reduce or allreduce, got '%s'",
                   peer_text(options, "work"));
    job.calls = peer_number(options, "calls", BATCH, 100000000);
    job.elements = (int)peer_number(options, "elements", 1, 100000000);
    job.own = (float *)calloc((size_t)job.elements, sizeof(float));
    job.result = (float *)calloc((size_t)job.elements, sizeof(float));
    job.batches = (double *)calloc((size_t)(job.calls / BATCH), sizeof(double));
    if (!job.own || !job.result || !job.batches)
        peer_error(PEER_EXIT_FAILED, "no memory for messages of %d floats", job.elements);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0, status = 0, go = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    if (probe) {
        if (job.rank == 0)
            peer_ready("openmpi", version);
    } else if (job.rank == 0) {
        status = peer_serve("openmpi", version, repeat, &job);
        tell(0);
    } else {
        for (;;) {
            long batches = job.calls / BATCH;
            /* Waits without a processor: a broadcast would poll, and disturb whoever has its turn. */
            MPI_Request request;
            int arrived = 0;
            MPI_Ibcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
            while (MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), !arrived) {
                const struct timespec pause = {0, 1000000};
                nanosleep(&pause, NULL);
            }
            if (!go)
                break;
            perform(&job, batches < 8 ? batches : 8);
            perform(&job, batches);
        }
    }
    MPI_Finalize();
    return status;
}

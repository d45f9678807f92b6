/* What StarPU costs for a task that does nothing: nanoseconds per task. */
#include "peer.h"

#include <starpu.h>

enum work { STREAM, SUBMIT_WAIT };

struct job {
    enum work work;
    long calls;
};

static void nothing(void *buffers[], void *argument) {
    (void)buffers;
    (void)argument;
}

static struct starpu_codelet codelet = {
    .cpu_funcs = {nothing},
    .cpu_funcs_name = {"nothing"},
    .nbuffers = 0,
    .name = "nothing",
};

/* Submits one empty task; returns 0, or StarPU's negative error number. */
static int submit(int synchronous) {
    struct starpu_task *task = starpu_task_create();
    task->cl = &codelet;
    task->synchronous = synchronous ? 1 : 0;
    return starpu_task_submit(task);
}

static int perform(enum work work, long calls) {
    for (long at = 0; at < calls; at++) {
        int status = submit(work == SUBMIT_WAIT);
        if (status)
            return status;
    }
    return starpu_task_wait_for_all();
}

static void repeat(void *state, struct peer_answer *answer) {
    const struct job *job = (const struct job *)state;
    starpu_resume();
    int status = perform(job->work, job->calls < 1000 ? job->calls : 1000);
    double start = peer_now_seconds();
    if (!status)
        status = perform(job->work, job->calls);
    answer->value = (peer_now_seconds() - start) / (double)job->calls * 1e9;
    starpu_pause(); /* workers without tasks poll for as long as they are not paused */
    answer->key = "latency_ns";
    snprintf(answer->more, sizeof answer->more, ", \"calls\": %ld", job->calls);
    if (status)
        snprintf(answer->error, sizeof answer->error, "StarPU refused a task: %s", strerror(-status));
}

/* StarPU keeps calibration files in the home directory; they belong beside this program instead. */
static void keep_files_beside(const char *program) {
    char path[4096];
    const char *slash = strrchr(program, '/');
    if (getenv("STARPU_HOME") || !slash)
        return;
    if (snprintf(path, sizeof path, "%.*s/starpu", (int)(slash - program), program) < (int)sizeof path)
        setenv("STARPU_HOME", path, 1);
}

int main(int count, char **arguments) {
    struct peer_option options[] = {
        {"work", "stream", "stream (submit all, then wait) or submit-wait (wait for each task)"},
        {"calls", "0", "tasks in one repetition; 0: 100000 in a stream, 10000 with a wait for each"},
        {"threads", "2", "threads, the submitting one among them; at least one worker"},
        {"workers", "0", "StarPU workers; 0: threads - 1, at least 1"},
        {NULL, NULL, NULL},
    };
    int probe = peer_parse(count, arguments, options);
    long threads = peer_number(options, "threads", 1, 4096);
    long workers = peer_number(options, "workers", 0, 4096);
    struct job job = {STREAM, peer_number(options, "calls", 0, 100000000)};
    const char *work = peer_text(options, "work");
    if (strcmp(work, "submit-wait") == 0)
        job.work = SUBMIT_WAIT;
    else if (strcmp(work, "stream") != 0)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--work is stream or submit-wait, got '%s'", work);

    if (job.calls == 0)
        job.calls = job.work == STREAM ? 100000 : 10000;

    int numbers[3];
    char version[64];
    starpu_get_version(&numbers[0], &numbers[1], &numbers[2]);
    snprintf(version, sizeof version, "StarPU %d.%d.%d", numbers[0], numbers[1], numbers[2]);
    if (probe) {
        peer_ready("starpu", version);
        return 0;
    }
    peer_require_processors(threads);
    keep_files_beside(arguments[0]);
    setenv("STARPU_SILENT", "1", 0);

    struct starpu_conf configuration;
    starpu_conf_init(&configuration);
    configuration.ncpus = (int)(workers ? workers : threads > 1 ? threads - 1 : 1);
    configuration.ncuda = 0;
    configuration.nopencl = 0;
    int status = starpu_init(&configuration);
    if (status)
        peer_missing("StarPU does not start: %s", strerror(-status));
    starpu_pause();
    int result = peer_serve("starpu", version, repeat, &job);
    starpu_resume();
    starpu_shutdown();
    return result;
}

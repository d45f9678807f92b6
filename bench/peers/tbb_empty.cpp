// What oneTBB costs for work that does nothing: nanoseconds per call.
#include "peer.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

namespace {

enum class Work { RunWait, Stream, ParallelFor };

struct Job {
    Work work;
    long calls;
    long chunk;
};

// A task that the compiler may not remove.
inline void nothing() { asm volatile("" ::: "memory"); }

void perform(const Job &job, long calls) {
    switch (job.work) {
    case Work::RunWait: {
        tbb::task_group group;
        for (long at = 0; at < calls; at++) {
            group.run([] { nothing(); });
            group.wait();
        }
        break;
    }
    case Work::Stream: {
        tbb::task_group group;
        for (long done = 0; done < calls; done += job.chunk) {
            long chunk = calls - done < job.chunk ? calls - done : job.chunk;
            for (long at = 0; at < chunk; at++)
                group.run([] { nothing(); });
            group.wait();
        }
        break;
    }
    case Work::ParallelFor:
        for (long at = 0; at < calls; at++)
            tbb::parallel_for(0, 2, [](int) { nothing(); });
        break;
    }
}

void repeat(void *state, peer_answer *answer) {
    const Job &job = *static_cast<const Job *>(state);
    perform(job, job.chunk); // wakes the workers, which slept since the last repetition
    double start = peer_now_seconds();
    perform(job, job.calls);
    answer->value = (peer_now_seconds() - start) / static_cast<double>(job.calls) * 1e9;
    answer->key = "latency_ns";
    snprintf(answer->more, sizeof answer->more, ", \"calls\": %ld", job.calls);
}

} // namespace

int main(int count, char **arguments) {
    peer_option options[] = {
        {"work", "stream",
         "run-wait (task_group: run and wait of one task), stream (run of a chunk of tasks, then wait) or "
         "parallel-for (parallel_for over 0..2)"},
        {"calls", "1000000", "tasks, or calls of parallel_for, in one repetition"},
        {"chunk", "1000", "tasks between two waits in a stream"},
        {"threads", "2", "threads, the calling one among them"},
        {nullptr, nullptr, nullptr},
    };
    bool probe = peer_parse(count, arguments, options) != 0;
    long threads = peer_number(options, "threads", 1, 4096);
    Job job{};
    job.calls = peer_number(options, "calls", 1, 1000000000);
    job.chunk = peer_number(options, "chunk", 1, 1000000000);
    const char *work = peer_text(options, "work");
    if (strcmp(work, "run-wait") == 0)
        job.work = Work::RunWait;
    else if (strcmp(work, "stream") == 0)
        job.work = Work::Stream;
    else if (strcmp(work, "parallel-for") == 0)
        job.work = Work::ParallelFor;
    else
        peer_error(PEER_EXIT_WRONG_REQUEST, "--work is run-wait, stream or parallel-for, got '%s'", work);

    char version[64];
    snprintf(version, sizeof version, "oneTBB %s", TBB_runtime_version());
    if (probe) {
        peer_ready("tbb", version);
        return 0;
    }
    peer_require_processors(threads);
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
    return peer_serve("tbb", version, repeat, &job);
}

// What oneTBB costs for work that does nothing, and for independent jobs with a source: nanoseconds per call or job.
#include "peer.h"

#include <cstdint>
#include <vector>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

namespace {

enum class Work { RunWait, Stream, ParallelFor, Pipeline };

struct Job {
    Work work;
    long calls;
    long chunk;
    std::vector<uint64_t> input;
};

// The stream of splitmix64 at one place.
inline uint64_t mixed(uint64_t counter) {
    uint64_t z = counter * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// A job as in bench/peers/jobs: the input combined with a stream of its own, and the sum of that; or the job's number.
uint64_t execute(const std::vector<uint64_t> &input, uint64_t job) {
    static thread_local std::vector<uint64_t> output;
    if (input.empty()) {
        asm volatile("" : "+r"(job));
        return job;
    }
    output.resize(input.size());
    for (size_t at = 0; at < input.size(); at++)
        output[at] = input[at] ^ mixed(job * input.size() + at);
    uint64_t *words = output.data();
    asm volatile("" : "+r"(words) : : "memory");
    uint64_t sum = 0;
    for (size_t at = 0; at < input.size(); at++)
        sum += words[at];
    return sum;
}

// Jobs from a source, in parallel, to a sink in order; 8192 in flight.
uint64_t pipeline(const Job &job, long jobs) {
    uint64_t sum = 0;
    long next = 0;
    auto source = tbb::make_filter<void, uint64_t>(tbb::filter_mode::serial_in_order, [&](tbb::flow_control &control) {
        if (next == jobs)
            control.stop();
        return static_cast<uint64_t>(next < jobs ? next++ : 0);
    });
    auto work = tbb::make_filter<uint64_t, uint64_t>(tbb::filter_mode::parallel,
                                                     [&](uint64_t number) { return execute(job.input, number); });
    auto sink = tbb::make_filter<uint64_t, void>(tbb::filter_mode::serial_in_order, [&](uint64_t result) { sum += result; });
    tbb::parallel_pipeline(8192, source & work & sink);
    return sum;
}

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
    case Work::Pipeline:
        pipeline(job, calls);
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
         "run-wait (task_group: run and wait of one task), stream (run of a chunk of tasks, then wait), "
         "parallel-for (parallel_for over 0..2) or pipeline (parallel_pipeline of jobs)"},
        {"bytes", "0", "bytes of a job of the pipeline"},
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
    else if (strcmp(work, "pipeline") == 0)
        job.work = Work::Pipeline;
    else
        peer_error(PEER_EXIT_WRONG_REQUEST, "--work is run-wait, stream, parallel-for or pipeline, got '%s'", work);
    for (long at = 0; at < peer_number(options, "bytes", 0, 1 << 30) / 8; at++)
        job.input.push_back(mixed(static_cast<uint64_t>(at)));

    char version[64];
    snprintf(version, sizeof version, "oneTBB %s", TBB_runtime_version());
    if (probe) {
        peer_ready("tbb", version);
        return 0;
    }
    // Jobs are also measured with more threads than processors.
    if (job.work != Work::Pipeline)
        peer_require_processors(threads);
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
    if (job.work == Work::Pipeline) {
        uint64_t expected = 0;
        for (long at = 0; at < job.calls; at++)
            expected += execute(job.input, static_cast<uint64_t>(at));
        if (pipeline(job, job.calls) != expected)
            peer_error(1, "the sum of the results is wrong");
    }
    return peer_serve("tbb", version, repeat, &job);
}

/* The rate at which a disk moves a mixture of reads and writes: the ceiling for programs that only stream files.
 *
 * Direct I/O in whole blocks, sequential in each file, the mixture spread evenly over the run, `depth` threads with one
 * block each in flight. With `--read`, the files given are read, in turns where there are several: the rate of one file
 * may differ by a sixth from that of another on the same disk (how it was written, where it lies, what is cached below
 * a virtual disk), so who compares must read the same. Else a file is written for it once, and removed from the
 * directory before the first repetition, so that nothing stays behind however the program ends. With `--write over`, writes overwrite what is
 * already allocated: nothing but moving the bytes is left to time. With `--write new`, each repetition makes, allocates
 * and writes a new file, as a program must whose results appear whole or not at all; a file system has to mark each
 * block as written, so this takes longer. The buffers lie in huge pages: a 1 MiB block in small pages is 256
 * separate pieces of memory, more than many disks take in one request.
 *
 * Nothing looks at the bytes, unless `--look yes` asks that a processor reads each block that was read, as every
 * program does that reads for a purpose. Two more threads then keep `depth` operations in flight meanwhile, so the disk
 * waits for no processor; on a machine whose disk is moved by the same processors or memory it is slower all the same. */
#include "peer.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Threads that look while the others have an operation in flight. */
enum { LOOKERS = 2 };
/* Files of `--read`. */
enum { FILES_MAX = 8 };

struct job {
    int read_file[FILES_MAX]; /* block b of the reads is block b / read_files of file b % read_files */
    long read_files;
    int write_file;
    long read_blocks, write_blocks;
    size_t block_bytes;
    long depth;
    int sync;
    int fresh; /* every repetition writes a file of its own, as a program that makes a result does */
    const char *directory;
    char **buffers; /* one a thread */
    int huge_pages; /* granted, not only asked for */
    int look;
    long threads; /* `depth` of them have an operation in flight */
};

struct run {
    const struct job *job;
    atomic_long next;
    atomic_int error; /* errno of the first failure */
    sem_t in_flight;
};

struct worker {
    pthread_t thread;
    struct run *run;
    char *buffer;
};

static int move_block(int file, int writing, char *buffer, size_t bytes, off_t offset) {
    for (size_t done = 0; done < bytes;) {
        ssize_t moved = writing ? pwrite(file, buffer + done, bytes - done, offset + (off_t)done)
                                : pread(file, buffer + done, bytes - done, offset + (off_t)done);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return moved < 0 ? errno : EIO; /* no block ends beyond the file */
        done += (size_t)moved;
    }
    return 0;
}

/* Reads every number of a block; the sum keeps the compiler from leaving it out. */
static void look_at(const char *buffer, size_t bytes) {
    const uint64_t *numbers = (const uint64_t *)buffer;
    uint64_t sums[8] = {0};
    for (size_t at = 0; at + 8 <= bytes / sizeof *numbers; at += 8)
        for (size_t lane = 0; lane < 8; lane++)
            sums[lane] += numbers[at + lane];
    volatile uint64_t kept = 0;
    for (size_t lane = 0; lane < 8; lane++)
        kept += sums[lane];
    (void)kept;
}

/* Operation `at` of `reads + writes` is a write whenever the evenly spread count of writes grows there. */
static void *work(void *argument) {
    struct worker *worker = (struct worker *)argument;
    struct run *run = worker->run;
    const struct job *job = run->job;
    long total = job->read_blocks + job->write_blocks;
    long at;
    for (;;) {
        if (job->look)
            while (sem_wait(&run->in_flight) != 0) /* interrupted */
                continue;
        at = atomic_fetch_add(&run->next, 1);
        if (at >= total || atomic_load(&run->error)) {
            if (job->look)
                sem_post(&run->in_flight);
            break;
        }
        long writes = (long)((__int128)at * job->write_blocks / total);
        int writing = (long)((__int128)(at + 1) * job->write_blocks / total) > writes;
        long reads = at - writes;
        int file = writing ? job->write_file : job->read_file[reads % job->read_files];
        long block = writing ? writes : reads / job->read_files;
        int error =
            move_block(file, writing, worker->buffer, job->block_bytes, (off_t)block * (off_t)job->block_bytes);
        if (error)
            atomic_store(&run->error, error);
        if (job->look) {
            sem_post(&run->in_flight);
            if (!writing)
                look_at(worker->buffer, job->block_bytes);
        }
    }
    return NULL;
}

static int new_file(const char *directory);

static int perform(struct job *job) {
    if (job->fresh && job->write_blocks > 0) {
        job->write_file = new_file(job->directory);
        if (job->write_file < 0)
            return errno;
        if (fallocate(job->write_file, 0, 0, (off_t)job->write_blocks * (off_t)job->block_bytes) != 0)
            return errno;
    }
    struct run run = {.job = job};
    struct worker *workers = (struct worker *)calloc((size_t)job->threads, sizeof *workers);
    long started = 0;
    int error = workers ? 0 : ENOMEM;
    if (sem_init(&run.in_flight, 0, (unsigned)job->depth) != 0)
        error = errno;
    for (; !error && started < job->threads; started++) {
        workers[started].run = &run;
        workers[started].buffer = job->buffers[started];
        error = pthread_create(&workers[started].thread, NULL, work, &workers[started]);
        if (error)
            break;
    }
    for (long at = 0; at < started; at++)
        pthread_join(workers[at].thread, NULL);
    free(workers);
    sem_destroy(&run.in_flight);
    if (!error)
        error = atomic_load(&run.error);
    if (!error && job->sync && job->write_blocks > 0 && fdatasync(job->write_file) != 0)
        error = errno;
    return error;
}

static void repeat(void *state, struct peer_answer *answer) {
    struct job *job = (struct job *)state;
    if (job->fresh && job->write_file >= 0) {
        close(job->write_file); /* it has no name: its space is free again, before the time begins */
        job->write_file = -1;
    }
    double start = peer_now_seconds();
    int error = perform(job);
    answer->value = peer_now_seconds() - start;
    double mib = (double)(job->read_blocks + job->write_blocks) * (double)job->block_bytes / 1048576.0;
    snprintf(answer->more, sizeof answer->more, ", \"mib_per_second\": %.6g, \"huge_pages\": %s", mib / answer->value,
             job->huge_pages ? "true" : "false");
    if (error)
        snprintf(answer->error, sizeof answer->error, "direct I/O failed: %s", strerror(error));
}

/* Bytes of this process that lie in huge pages: the system may refuse them at any time. */
static size_t huge_page_bytes(void) {
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "AnonHugePages: %zu kB", &kib) == 1)
            break;
    fclose(file);
    return kib * 1024;
}

/* An empty file for direct I/O without a name, or -1 and errno. */
static int new_file(const char *directory) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/.disk-rate-XXXXXX", directory) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int file = mkostemp(path, O_CLOEXEC);
    if (file < 0)
        return -1;
    unlink(path);
    int flags = fcntl(file, F_GETFL);
    if (flags < 0 || fcntl(file, F_SETFL, flags | O_DIRECT) != 0) {
        int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    return file;
}

/* A file of `blocks` blocks of numbers that neither compress nor repeat, already without a name. */
static int make_file(const char *directory, long blocks, size_t block_bytes, char *buffer) {
    int file = new_file(directory);
    if (file < 0)
        peer_missing("cannot create a file for direct I/O in %s: %s", directory, strerror(errno));
    uint64_t seed = 9;
    for (long block = 0; block < blocks; block++) {
        for (size_t at = 0; at < block_bytes; at += sizeof(uint32_t)) {
            uint32_t number = peer_random(&seed);
            memcpy(buffer + at, &number, sizeof number);
        }
        int error = move_block(file, 1, buffer, block_bytes, (off_t)block * (off_t)block_bytes);
        if (error)
            peer_missing("cannot write %ld blocks of %zu bytes in %s with direct I/O: %s", blocks, block_bytes,
                         directory, strerror(error));
    }
    if (fdatasync(file) != 0)
        peer_missing("cannot flush a file in %s: %s", directory, strerror(errno));
    return file;
}

/* Opens the files of `--read`, separated by colons, each at least as long as its share of the blocks. */
static void open_files(struct job *job, const char *paths) {
    char *names = strdup(paths), *rest = names;
    for (char *name; (name = strsep(&rest, ":"));) {
        if (job->read_files == FILES_MAX)
            peer_error(PEER_EXIT_WRONG_REQUEST, "--read takes at most %d files", FILES_MAX);
        int file = open(name, O_RDONLY | O_DIRECT | O_CLOEXEC);
        if (file < 0)
            peer_missing("cannot open %s for direct I/O: %s", name, strerror(errno));
        job->read_file[job->read_files++] = file;
    }
    free(names);
    for (long at = 0; at < job->read_files; at++) {
        off_t blocks = (job->read_blocks - at + job->read_files - 1) / job->read_files;
        if (lseek(job->read_file[at], 0, SEEK_END) < blocks * (off_t)job->block_bytes)
            peer_error(PEER_EXIT_WRONG_REQUEST, "--read: a file is shorter than its share of --read-mib");
    }
}

int main(int count, char **arguments) {
    struct peer_option options[] = {
        {"directory", ".", "a directory on the disk to measure"},
        {"read", "", "files to read, separated by colons, instead of one written for it"},
        {"read-mib", "256", "MiB read in one repetition"},
        {"write-mib", "128", "MiB written in one repetition"},
        {"block-kib", "1024", "KiB of one operation"},
        {"depth", "4", "operations in flight"},
        {"pages", "huge", "huge or small: pages of the buffers; a disk moves one piece of memory faster than 256"},
        {"sync", "no", "yes: a repetition ends when the disk has confirmed the writes (fdatasync)"},
        {"look", "no", "yes: a processor reads every block that was read, while `depth` operations stay in flight"},
        {"write", "over", "over: each repetition overwrites one file; new: it writes a new file, allocated beforehand"},
        {"threads", "0", "ignored: `depth` decides; accepted so that every peer can be started alike"},
        {NULL, NULL, NULL},
    };
    int probe = peer_parse(count, arguments, options);
    const char *directory = peer_text(options, "directory");
    const char *sync = peer_text(options, "sync");
    const char *version = "pread and pwrite, O_DIRECT";
    struct job job;
    memset(&job, 0, sizeof job);
    job.block_bytes = (size_t)peer_number(options, "block-kib", 4, 65536) * 1024;
    if (job.block_bytes % 4096)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--block-kib wants a multiple of 4");
    job.depth = peer_number(options, "depth", 1, 1024);
    job.read_blocks = peer_number(options, "read-mib", 0, 1L << 24) * 1048576 / (long)job.block_bytes;
    job.write_blocks = peer_number(options, "write-mib", 0, 1L << 24) * 1048576 / (long)job.block_bytes;
    if (job.read_blocks + job.write_blocks == 0)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--read-mib and --write-mib are less than one block together");
    job.sync = strcmp(sync, "yes") == 0;
    if (!job.sync && strcmp(sync, "no") != 0)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--sync is yes or no, got '%s'", sync);
    const char *look = peer_text(options, "look");
    job.look = strcmp(look, "yes") == 0;
    if (!job.look && strcmp(look, "no") != 0)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--look is yes or no, got '%s'", look);
    job.threads = job.depth + (job.look ? LOOKERS : 0);
    const char *write = peer_text(options, "write");
    job.fresh = strcmp(write, "new") == 0;
    if (!job.fresh && strcmp(write, "over") != 0)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--write is over or new, got '%s'", write);
    job.directory = directory;
    const char *pages = peer_text(options, "pages");
    int huge_pages = strcmp(pages, "huge") == 0;
    if (!huge_pages && strcmp(pages, "small") != 0)
        peer_error(PEER_EXIT_WRONG_REQUEST, "--pages is huge or small, got '%s'", pages);
    if (probe) {
        peer_ready("disk", version);
        return 0;
    }

    struct statvfs space;
    if (statvfs(directory, &space) != 0)
        peer_missing("--directory %s: %s", directory, strerror(errno));
    struct statfs system;
    if (statfs(directory, &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC))
        peer_missing("--directory %s lies in main memory, not on a disk", directory);
    int own = *peer_text(options, "read") == '\0';
    unsigned long long want =
        (unsigned long long)((own ? job.read_blocks : 0) + job.write_blocks) * job.block_bytes;
    unsigned long long free_bytes = (unsigned long long)space.f_bavail * space.f_frsize;
    if (want > free_bytes)
        peer_missing("the files need %llu bytes in %s, which has %llu free", want, directory, free_bytes);

    job.buffers = (char **)calloc((size_t)job.threads, sizeof *job.buffers);
    if (!job.buffers)
        peer_error(PEER_EXIT_FAILED, "no memory for %ld buffers", job.threads);
    for (long at = 0; at < job.threads; at++) {
        job.buffers[at] = (char *)peer_allocate(job.block_bytes, huge_pages);
        memset(job.buffers[at], 0, job.block_bytes);
    }
    job.huge_pages = huge_pages && huge_page_bytes() >= (size_t)job.threads * job.block_bytes;
    const char *read = peer_text(options, "read");
    if (*read) {
        open_files(&job, read);
    } else {
        job.read_file[0] = make_file(directory, job.read_blocks, job.block_bytes, job.buffers[0]);
        job.read_files = 1;
    }
    job.write_file = job.fresh ? -1 : make_file(directory, job.write_blocks, job.block_bytes, job.buffers[0]);
    return peer_serve("disk", version, repeat, &job);
}

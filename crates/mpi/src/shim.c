/* What is called of MPI, by an interface of plain pointers and numbers. Handles are pointers in one implementation and
   integers in the other, and constants are addresses in one and numbers in the other; here the C compiler with the right
   mpi.h is who knows. Communicators, requests and windows are behind pointers to memory of our own. Every function but
   those that cannot fail gives MPI's error code. */

#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

/* So often a rank looks for its messages before it lets others have its processor: some 50 us. */
enum { MG_LOOKS = 1000 };

static int mg_levels(int level) {
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    return levels[level];
}

int mg_start(int wanted, int *level) {
    int given, code = MPI_Init_thread(NULL, NULL, mg_levels(wanted), &given);
    if (code != MPI_SUCCESS) return code;
    for (*level = 3; *level > 0 && mg_levels(*level) > given; --*level) {}
    return MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

/* Whether it was started, and not ended, by anybody in this process. */
int mg_started(void) {
    int started = 0;
    MPI_Initialized(&started);
    return started;
}

int mg_finish(void) { return MPI_Finalize(); }

/* A launcher that is told of the end may drop what it has not yet read of this process's messages: MPICH's did, 5 times of
   150. So those come first; but nobody is waited for who reads nothing for a second. */
static void mg_heard(void) {
    const struct timespec pause = {0, 1000000};
    for (int pauses = 1000, left = 0; pauses && ioctl(2, FIONREAD, &left) == 0 && left > 0; pauses--) nanosleep(&pause, NULL);
}

void mg_abort(int status) {
    mg_heard();
    MPI_Abort(MPI_COMM_WORLD, status);
    _Exit(status);
}

/* From here on whoever asks this process to end is not heard: it does. */
void mg_deaf(void) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

int mg_text_bytes(void) { return MPI_MAX_ERROR_STRING > MPI_MAX_LIBRARY_VERSION_STRING ? MPI_MAX_ERROR_STRING : MPI_MAX_LIBRARY_VERSION_STRING; }

/* Texts: 0 what an error code means, 1 the library's version, 2 the name of this node. */
int mg_text(int which, int code, char *text, int *bytes) {
    switch (which) {
    case 0: return MPI_Error_string(code, text, bytes);
    case 1: return MPI_Get_library_version(text, bytes);
    default: return MPI_Get_processor_name(text, bytes);
    }
}

static int mg_keep(int code, MPI_Comm comm, void **kept) {
    if (code != MPI_SUCCESS) return code;
    MPI_Comm *place = malloc(sizeof *place);
    if (!place) return MPI_ERR_NO_MEM;
    *place = comm;
    *kept = place;
    return MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

/* The same ranks again: no message of one communicator is taken for one of another. Null: the world. */
int mg_comm_again(void *comm, void **kept) {
    MPI_Comm again;
    int code = MPI_Comm_dup(comm ? *(MPI_Comm *)comm : MPI_COMM_WORLD, &again);
    return mg_keep(code, again, kept);
}

/* Those of the same colour, or of the same node. */
int mg_comm_split(void *comm, int colour, int key, int node, void **kept) {
    MPI_Comm part;
    int code = node ? MPI_Comm_split_type(*(MPI_Comm *)comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &part)
                    : MPI_Comm_split(*(MPI_Comm *)comm, colour, key, &part);
    return mg_keep(code, part, kept);
}

void mg_comm_free(void *comm) {
    MPI_Comm_free((MPI_Comm *)comm);
    free(comm);
}

int mg_comm_place(void *comm, int *rank, int *size) {
    int code = MPI_Comm_rank(*(MPI_Comm *)comm, rank);
    return code != MPI_SUCCESS ? code : MPI_Comm_size(*(MPI_Comm *)comm, size);
}

/* Messages that are under way, with the bytes that each is to have if it comes in. */
typedef struct {
    int room, used;
    MPI_Request *requests;
    MPI_Status *statuses;
    int *expected;
} mg_flights;

void *mg_flights_new(void) { return calloc(1, sizeof(mg_flights)); }

void mg_flights_free(void *of) {
    mg_flights *flights = of;
    free(flights->requests);
    free(flights->statuses);
    free(flights->expected);
    free(flights);
}

/* Room for so many more; on failure nothing is under way that was not before. */
int mg_flights_room(void *of, int more) {
    mg_flights *flights = of;
    int room = flights->used + more;
    if (room <= flights->room) return MPI_SUCCESS;
    MPI_Request *requests = realloc(flights->requests, room * sizeof *requests);
    if (requests) flights->requests = requests;
    MPI_Status *statuses = realloc(flights->statuses, room * sizeof *statuses);
    if (statuses) flights->statuses = statuses;
    int *expected = realloc(flights->expected, room * sizeof *expected);
    if (expected) flights->expected = expected;
    if (!requests || !statuses || !expected) return MPI_ERR_NO_MEM;
    flights->room = room;
    return MPI_SUCCESS;
}

int mg_send_begin(void *of, void *comm, const void *data, int bytes, int to, int tag) {
    mg_flights *flights = of;
    flights->expected[flights->used] = -1;
    return MPI_Isend(data, bytes, MPI_BYTE, to, tag, *(MPI_Comm *)comm, &flights->requests[flights->used++]);
}

int mg_receive_begin(void *of, void *comm, void *data, int bytes, int from, int tag) {
    mg_flights *flights = of;
    flights->expected[flights->used] = bytes;
    return MPI_Irecv(data, bytes, MPI_BYTE, from, tag, *(MPI_Comm *)comm, &flights->requests[flights->used++]);
}

/* Waits for all. Of a message that was too short: who sent it, and how many bytes came of how many; else from is -1. */
int mg_wait(void *of, int *from, int *came, int *expected) {
    mg_flights *flights = of;
    int used = flights->used;
    *from = -1;
    /* Not MPI_Waitall: that of Open MPI 4.1 waits for ever for a message that was cut off. */
    int code, over = 0;
    for (int looks = 0;; ++looks) {
        code = MPI_Testall(used, flights->requests, &over, flights->statuses);
        if (code != MPI_SUCCESS || over) break;
        /* Where there are more ranks than processors, the one that is waited for may want this one. */
        if (looks >= MG_LOOKS) sched_yield();
    }
    if (code == MPI_ERR_IN_STATUS) {
        for (int i = 0; i < used; ++i) {
            int each = flights->statuses[i].MPI_ERROR;
            if (each != MPI_SUCCESS && each != MPI_ERR_PENDING) return each;
        }
    }
    if (code != MPI_SUCCESS) return code;
    flights->used = 0;
    for (int i = 0; i < used; ++i) {
        if (flights->expected[i] < 0) continue;
        int bytes;
        MPI_Get_count(&flights->statuses[i], MPI_BYTE, &bytes);
        if (bytes != flights->expected[i]) {
            *from = flights->statuses[i].MPI_SOURCE;
            *came = bytes;
            *expected = flights->expected[i];
        }
    }
    return MPI_SUCCESS;
}

/* A message from anybody that can be received now: from is -1 if there is none. */
int mg_probe(void *comm, int *from, int *bytes) {
    MPI_Status status;
    int there, code = MPI_Iprobe(MPI_ANY_SOURCE, 0, *(MPI_Comm *)comm, &there, &status);
    *from = -1;
    if (code != MPI_SUCCESS || !there) return code;
    *from = status.MPI_SOURCE;
    return MPI_Get_count(&status, MPI_BYTE, bytes);
}

/* Receives it. */
int mg_receive(void *comm, void *data, int bytes, int from) {
    return MPI_Recv(data, bytes, MPI_BYTE, from, 0, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
}

/* A message that is sent while others are: its request, or null without memory for it. */
void *mg_letter_new(void) { return calloc(1, sizeof(MPI_Request)); }

int mg_letter_send(void *of, void *comm, const void *data, int bytes, int to) {
    return MPI_Isend(data, bytes, MPI_BYTE, to, 0, *(MPI_Comm *)comm, (MPI_Request *)of);
}

int mg_letter_sent(void *of, int *sent) { return MPI_Test((MPI_Request *)of, sent, MPI_STATUS_IGNORE); }

void mg_letter_free(void *of) { free(of); }

/* MPI's own collective operations, on bytes. */
int mg_barrier(void *comm) { return MPI_Barrier(*(MPI_Comm *)comm); }

int mg_broadcast(void *comm, void *data, int bytes, int root) {
    return MPI_Bcast(data, bytes, MPI_BYTE, root, *(MPI_Comm *)comm);
}

int mg_allgather(void *comm, void *data, int bytes) {
    return MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, bytes, MPI_BYTE, *(MPI_Comm *)comm);
}

int mg_alltoall(void *comm, const void *from, void *into, int bytes) {
    return MPI_Alltoall(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, *(MPI_Comm *)comm);
}

/* The sum, in an order that MPI chooses: 0 of doubles, 1 of unsigned integers of eight bytes. */
int mg_sum(void *comm, const void *from, void *into, int count, int kind) {
    MPI_Datatype type = kind == 0 ? MPI_DOUBLE : MPI_UINT64_T;
    return MPI_Allreduce(from, into, count, type, MPI_SUM, *(MPI_Comm *)comm);
}

/* Memory that others reach: locked for all from its beginning to its end. */
typedef struct {
    MPI_Win window;
} mg_window;

int mg_window_new(void *comm, long long bytes, void **base, void **kept) {
    mg_window *window = malloc(sizeof *window);
    if (!window) return MPI_ERR_NO_MEM;
    int code = MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, *(MPI_Comm *)comm, base, &window->window);
    if (code == MPI_SUCCESS) code = MPI_Win_set_errhandler(window->window, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Win_lock_all(MPI_MODE_NOCHECK, window->window);
    if (code == MPI_SUCCESS) *kept = window;
    else free(window);
    return code;
}

void mg_window_free(void *of) {
    mg_window *window = of;
    MPI_Win_unlock_all(window->window);
    MPI_Win_free(&window->window);
    free(window);
}

int mg_get(void *of, void *into, int bytes, int from, long long offset) {
    return MPI_Get(into, bytes, MPI_BYTE, from, offset, bytes, MPI_BYTE, ((mg_window *)of)->window);
}

int mg_put(void *of, const void *data, int bytes, int to, long long offset) {
    return MPI_Put(data, bytes, MPI_BYTE, to, offset, bytes, MPI_BYTE, ((mg_window *)of)->window);
}

/* Until all gets and puts with a rank are over at both ends. */
int mg_flush(void *of, int rank) { return MPI_Win_flush(rank, ((mg_window *)of)->window); }

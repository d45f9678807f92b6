/* A library of others that a peer loads at run time, so that one program drives several and none is needed to compile
 * it: how it is opened, whether it is MKL, and what MKL asks for. */
#ifndef MULTIGRAIN_BENCH_LIBRARY_H
#define MULTIGRAIN_BENCH_LIBRARY_H

#include "peer.h"

#include <dlfcn.h>

enum { LIBRARY_VERSION_BYTES = 512 };

/* What libraries read when they are loaded: the number of threads, and the OpenMP runtime that MKL comes with. */
static void library_environment(long threads) {
    char number[32];
    snprintf(number, sizeof number, "%ld", threads);
    setenv("MKL_NUM_THREADS", number, 1);
    setenv("MKL_DYNAMIC", "FALSE", 1);
    setenv("MKL_THREADING_LAYER", "INTEL", 1);
    setenv("OMP_NUM_THREADS", number, 1);
    setenv("OPENBLAS_NUM_THREADS", number, 1);
}

/* Loads a library. Intel's OpenMP runtime lies beside MKL but outside the search path of a program that is not installed
 * with it: it is loaded first. Other libraries do without. */
static void *library_open(const char *path) {
    const char *slash = strrchr(path, '/');
    char beside[4096];
    if (slash && snprintf(beside, sizeof beside, "%.*s/libiomp5.so", (int)(slash - path), path) < (int)sizeof beside)
        dlopen(beside, RTLD_NOW | RTLD_GLOBAL);
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        peer_missing("cannot load the library: %s", dlerror());
    return library;
}

static int library_is_mkl(void *library) { return dlsym(library, "MKL_Set_Num_Threads") != NULL; }

/* Writes MKL's version, of LIBRARY_VERSION_BYTES, without the spaces at its end. */
static void library_mkl_version(void *library, char *version) {
    void (*get)(char *, int) = (void (*)(char *, int))dlsym(library, "MKL_Get_Version_String");
    memset(version, 0, LIBRARY_VERSION_BYTES);
    if (get)
        get(version, LIBRARY_VERSION_BYTES - 1);
    for (size_t end = strlen(version); end > 0 && version[end - 1] == ' '; end--)
        version[end - 1] = '\0';
}

/* Sets MKL's thread count; the count that it then says it uses, or -1 where it does not say. */
static int library_mkl_threads(void *library, int threads) {
    void (*dynamic)(int) = (void (*)(int))dlsym(library, "MKL_Set_Dynamic");
    void (*set)(int) = (void (*)(int))dlsym(library, "MKL_Set_Num_Threads");
    int (*get)(void) = (int (*)(void))dlsym(library, "MKL_Get_Max_Threads");
    if (dynamic)
        dynamic(0);
    set(threads);
    return get ? get() : -1;
}

/* A peer on fewer threads than asked for is no peer. */
static void library_check_threads(int got, int threads) {
    if (got != threads)
        peer_missing("the library was asked for %d threads and says it uses %d (-1: it does not say)", threads, got);
}

#endif

"""The protocol that every Python peer speaks (see ../README.md); the twin of peer.h.

A peer parses its options with `parser`, calls `configure` before it imports a numerical library, and hands a function
that performs one timed repetition to `serve`.
"""

import argparse
import json
import os
import sys
import threading
import time

EXIT_FAILED, EXIT_WRONG_REQUEST, EXIT_MISSING = 1, 2, 3


class RepetitionFailed(Exception):
    """A repetition could not be performed or gave a wrong result; the text says what was found."""


def say(**members):
    print(json.dumps(members), flush=True)


def missing(why):
    """The peer cannot be used on this machine: says why and ends."""
    say(missing=why)
    sys.exit(EXIT_MISSING)


def wrong_request(why):
    """The request makes no sense: says why and ends."""
    say(error=why)
    sys.exit(EXIT_WRONG_REQUEST)


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        wrong_request(message)


def parser(description):
    """An option parser with the options that every peer has."""
    options = _Parser(description=description, allow_abbrev=False)
    options.add_argument("--probe", action="store_true", help="say whether the peer is ready, and end")
    options.add_argument("--threads", type=positive, default=2, help="threads (default: 2)")
    return options


def positive(text):
    """A whole number of at least 1, for argparse."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"wants a whole number of at least 1, got {text!r}")
    return number


def configure(blas_threads):
    """Sets the thread count of BLAS libraries, which read it once, when they are loaded."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(blas_threads)


def require_processors(threads):
    """A peer with fewer processors than threads would be measured unfairly, for instance when it inherits the
    binding of the thread that started it."""
    allowed = len(os.sched_getaffinity(0))
    if allowed < threads:
        missing(
            f"{threads} threads were asked for, but this process may run on {allowed} processor(s) only; "
            "start it from an unbound thread or ask for fewer threads"
        )


def _settle():
    """Waits until this process uses next to no processor time, at most 2 s: threads of libraries keep spinning for a
    while after their work and would slow down whatever is measured next."""
    give_up = time.monotonic() + 2.0
    while time.monotonic() < give_up:
        before = time.process_time()
        time.sleep(0.005)
        if time.process_time() - before < 0.0005:
            return True
    return False


class Memory:
    """The peak resident memory of one repetition, as a context manager.

    `peak_rss_bytes` counts pages of mapped files, as the system does; `peak_anonymous_bytes` counts only what the
    system could not take back by dropping or writing out such pages (sampled every 20 ms).
    """

    def __enter__(self):
        self.peak_anonymous_bytes = 0
        self._stop = threading.Event()
        try:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")  # sets the high-water mark back to the present size
        except OSError:
            pass  # the mark then covers the whole life of the process: an upper bound
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        return self

    def _sample(self):
        while True:
            self.peak_anonymous_bytes = max(self.peak_anonymous_bytes, _status_bytes("RssAnon"))
            if self._stop.wait(0.02):
                return

    def __exit__(self, *_):
        self._stop.set()
        self._sampler.join()
        self.peak_rss_bytes = _status_bytes("VmHWM")


def _status_bytes(key):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    return 0


def forget_cached(*paths):
    """Writes back and drops the page cache of files, so that the next read comes from the disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def load_matrix(numpy, path):
    """A float32 matrix in C order as a read-only memory map; ValueError says what the file holds instead."""
    try:
        matrix = numpy.load(path, mmap_mode="r")
    except OSError as error:
        raise ValueError(error.strerror) from error
    if matrix.dtype != numpy.float32 or matrix.ndim != 2 or not matrix.flags.c_contiguous:
        raise ValueError(f"wanted a float32 matrix in C order, found {matrix.dtype} of shape {matrix.shape}")
    return matrix


def serve(peer, version, repeat):
    """Says ready, then performs one repetition for each line `run` until `quit` or the end of input.

    `repeat()` returns the members of its answer, among them `seconds`.
    """
    _settle()
    say(ready=True, peer=peer, version=version)
    for line in sys.stdin:
        request = line.strip()
        if request == "quit":
            break
        if request != "run":
            say(error="unknown request; the requests are `run` and `quit`")
            continue
        try:
            answer = repeat()
        except (RepetitionFailed, OSError, ValueError, MemoryError) as error:
            say(error=f"{type(error).__name__}: {error}")
            sys.exit(EXIT_FAILED)
        if not _settle():
            answer["unsettled"] = True
        say(peer=peer, version=version, **answer)

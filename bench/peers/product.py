"""What the peers that multiply matrices from files share: options, cold inputs, the check of the result."""

import gc
import os
import time

import peer


def parser(description):
    options = peer.parser(description)
    options.add_argument("--a", help="float32 .npy matrix")
    options.add_argument("--b", help="float32 .npy matrix")
    options.add_argument("--c", help="file for the result; replaced by each repetition, removed at the end")
    options.add_argument("--block", type=peer.positive, default=4096, help="rows and columns of a block (4096)")
    options.add_argument("--warm", action="store_true", help="leave the inputs in the page cache between repetitions")
    return options


def _load(numpy, path, flag):
    try:
        return peer.load_matrix(numpy, path)
    except ValueError as error:
        peer.wrong_request(f"{flag} {path}: {error}")


def _sampled_error(numpy, a, b, path, samples=16):
    """The largest error of sampled elements of the product, relative to the sum of their terms' magnitudes."""
    result = numpy.load(path, mmap_mode="r")
    if result.shape != (a.shape[0], b.shape[1]) or result.dtype != numpy.float32:
        raise peer.RepetitionFailed(f"{path}: {result.dtype} of shape {result.shape} is not the product")
    random = numpy.random.default_rng(7)
    worst = 0.0
    for _ in range(samples):
        row, column = int(random.integers(a.shape[0])), int(random.integers(b.shape[1]))
        terms = a[row].astype(numpy.float64) * b[:, column].astype(numpy.float64)
        worst = max(worst, abs(float(result[row, column]) - terms.sum()) / max(numpy.abs(terms).sum(), 1e-300))
    if not worst <= 1e-4:
        raise peer.RepetitionFailed(f"{path}: sampled elements are off by {worst:g} relative to their terms")
    return worst


def _remove(path):
    if os.path.exists(path):
        os.remove(path)


def serve(name, version, arguments, numpy, multiply):
    """Serves `multiply(a, b, path, block)`, which reads two memory maps and leaves the product in the file `path`."""
    if arguments.probe:
        peer.say(ready=True, peer=name, version=version)
        return
    if not (arguments.a and arguments.b and arguments.c):
        peer.wrong_request("--a, --b and --c are needed")
    if os.path.realpath(arguments.c) in (os.path.realpath(arguments.a), os.path.realpath(arguments.b)):
        peer.wrong_request(f"--c {arguments.c} is one of the inputs")
    peer.require_processors(arguments.threads)
    shapes = [_load(numpy, path, flag).shape for path, flag in ((arguments.a, "--a"), (arguments.b, "--b"))]
    if shapes[0][1] != shapes[1][0]:
        peer.wrong_request(f"shapes {shapes[0]} and {shapes[1]} do not multiply")

    def repeat():
        _remove(arguments.c)
        if not arguments.warm:
            gc.collect()  # pages of a map that is still open cannot be dropped
            peer.forget_cached(arguments.a, arguments.b)
        with peer.Memory() as memory:
            start = time.perf_counter()
            a, b = peer.load_matrix(numpy, arguments.a), peer.load_matrix(numpy, arguments.b)
            multiply(a, b, arguments.c, arguments.block)
            seconds = time.perf_counter() - start
        return {
            "seconds": seconds,
            "peak_rss_bytes": memory.peak_rss_bytes,
            "peak_anonymous_bytes": memory.peak_anonymous_bytes,
            "max_relative_error": _sampled_error(numpy, a, b, arguments.c),
        }

    try:
        peer.serve(name, version, repeat)
    finally:
        _remove(arguments.c)

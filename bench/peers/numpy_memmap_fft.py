"""The transform of a volume in a .npy file into another: NumPy memory maps, planes by planes, then columns by columns,
with NumPy's own transforms in single precision. The result is on the disk when a repetition ends."""

import gc
import os
import time

import peer

options = peer.parser(__doc__)
options.add_argument("--input", help="complex64 .npy volume")
options.add_argument("--output", help="file for the result; replaced by each repetition, removed at the end")
options.add_argument("--block-mib", type=peer.positive, default=128, help="MiB that are transformed at once (128)")
arguments = options.parse_args()
peer.configure(blas_threads=arguments.threads)
try:
    import numpy
except ImportError as error:
    peer.missing(f"{error}; bench/install-peers.sh installs it")

version = f"NumPy {numpy.__version__}, numpy.fft on one thread"


def transform(path, result):
    volume = numpy.load(path, mmap_mode="r")
    out = numpy.lib.format.open_memmap(result, mode="w+", dtype=numpy.complex64, shape=volume.shape)
    bytes_at_once = arguments.block_mib << 20
    planes = max(1, bytes_at_once // volume[0].nbytes)
    for x in range(0, volume.shape[0], planes):
        out[x : x + planes] = numpy.fft.fft2(volume[x : x + planes])
    rows = max(1, bytes_at_once // out[:, 0].nbytes)
    for y in range(0, volume.shape[1], rows):
        # Copied out of the map first: a page is read once a block and not once a column.
        out[:, y : y + rows] = numpy.fft.fft(numpy.ascontiguousarray(out[:, y : y + rows]), axis=0)
    out.flush()
    return volume, out


def sampled_error(volume, out, samples=2):
    """The largest error of sampled results, relative to the norm of the volume, by direct sums in double precision."""
    random = numpy.random.default_rng(7)
    places = [tuple(int(random.integers(n)) for n in volume.shape) for _ in range(samples)]
    roots = [
        [numpy.exp(-2j * numpy.pi * k * numpy.arange(n) / n) for k, n in zip(place, volume.shape)] for place in places
    ]
    sums, squares = [0.0] * samples, 0.0
    for x in range(volume.shape[0]):
        plane = volume[x].astype(numpy.complex128)
        squares += float(numpy.vdot(plane, plane).real)
        for s, (along_x, along_y, along_z) in enumerate(roots):
            sums[s] += along_x[x] * (along_y @ (plane @ along_z))
    worst = max(abs(complex(out[place]) - total) for place, total in zip(places, sums)) / max(squares, 1e-300) ** 0.5
    if not worst <= 1e-5:
        raise peer.RepetitionFailed(f"sampled results are off by {worst:g}")
    return worst


def remove():
    if os.path.exists(arguments.output):
        os.remove(arguments.output)


checked = None


def repeat():
    global checked
    remove()
    gc.collect()  # pages of a map that is still open cannot be dropped
    peer.forget_cached(arguments.input)
    with peer.Memory() as memory:
        start = time.perf_counter()
        volume, out = transform(arguments.input, arguments.output)
        seconds = time.perf_counter() - start
    if checked is None:
        checked = sampled_error(volume, out)
    return {
        "seconds": seconds,
        "peak_rss_bytes": memory.peak_rss_bytes,
        "peak_anonymous_bytes": memory.peak_anonymous_bytes,
        "max_relative_error": checked,
    }


if arguments.probe:
    peer.say(ready=True, peer="numpy-memmap-fft", version=version)
else:
    if not (arguments.input and arguments.output):
        peer.wrong_request("--input and --output are needed")
    if os.path.realpath(arguments.input) == os.path.realpath(arguments.output):
        peer.wrong_request(f"--output {arguments.output} is the input")
    try:
        volume = numpy.load(arguments.input, mmap_mode="r")
    except (OSError, ValueError) as error:
        peer.wrong_request(f"--input {arguments.input}: {error}")
    if volume.dtype != numpy.complex64 or volume.ndim != 3:
        peer.wrong_request(f"--input {arguments.input}: wanted complex64 of 3 dimensions, found {volume.dtype}, {volume.ndim}")
    del volume
    try:
        peer.serve("numpy-memmap-fft", version, repeat)
    finally:
        remove()

"""OpenCV's filter2D on a float32 image in memory, with zeros beyond the border."""

import time

import peer

options = peer.parser(__doc__)
options.add_argument("--input", help="image, a float32 .npy matrix (default: random numbers of --rows by --cols)")
options.add_argument("--kernel", help="kernel, a float32 .npy matrix (default: random numbers of --size by --size)")
options.add_argument("--rows", type=peer.positive, default=8192)
options.add_argument("--cols", type=peer.positive, default=4096)
options.add_argument("--size", type=peer.positive, default=9, help="rows and columns of a random kernel, odd")
arguments = options.parse_args()

peer.configure(blas_threads=1)
try:
    import cv2
    import numpy
except ImportError as error:
    peer.missing(f"{error}; bench/install-peers.sh installs it")

version = f"OpenCV {cv2.__version__}"
if arguments.probe:
    peer.say(ready=True, peer="opencv", version=version)
    raise SystemExit(0)

peer.require_processors(arguments.threads)
cv2.setNumThreads(arguments.threads)
if cv2.getNumThreads() != arguments.threads:
    peer.missing(f"OpenCV was asked for {arguments.threads} threads and uses {cv2.getNumThreads()}")

random = numpy.random.default_rng(1)


def matrix(path, flag, shape):
    if path:
        try:
            return numpy.array(peer.load_matrix(numpy, path))
        except ValueError as error:
            peer.wrong_request(f"{flag} {path}: {error}")
    return random.random(shape, dtype=numpy.float32) - numpy.float32(0.5)


image = matrix(arguments.input, "--input", (arguments.rows, arguments.cols))
kernel = matrix(arguments.kernel, "--kernel", (arguments.size, arguments.size))
if kernel.shape[0] % 2 == 0 or kernel.shape[1] % 2 == 0:
    peer.wrong_request(f"the kernel wants odd sizes, found {kernel.shape}")
result = numpy.empty_like(image)


def repeat():
    start = time.perf_counter()
    cv2.filter2D(image, cv2.CV_32F, kernel, dst=result, borderType=cv2.BORDER_CONSTANT)
    return {"seconds": time.perf_counter() - start}


def check():
    """Compares sampled pixels, the four corners among them, with sums in double precision."""
    rows, cols = image.shape
    high, wide = kernel.shape
    places = [(0, 0), (0, cols - 1), (rows - 1, 0), (rows - 1, cols - 1)]
    places += [(int(random.integers(rows)), int(random.integers(cols))) for _ in range(60)]
    for row, col in places:
        top, left = row - high // 2, col - wide // 2
        window = image[max(top, 0) : top + high, max(left, 0) : left + wide].astype(numpy.float64)
        part = kernel[max(-top, 0) : rows - top, max(-left, 0) : cols - left].astype(numpy.float64)
        want, magnitude = (window * part).sum(), numpy.abs(window * part).sum()
        if not abs(float(result[row, col]) - want) <= 1e-4 * magnitude + 1e-30:
            peer.say(error=f"filter2D's result is wrong at ({row}, {col}): {result[row, col]}, expected {want}")
            raise SystemExit(peer.EXIT_FAILED)


repeat()
check()
peer.serve("opencv", version, repeat)

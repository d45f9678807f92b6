"""C = A B between .npy files larger than the memory one wants to spend: NumPy memory maps, block by block, with the
OpenBLAS that NumPy ships. The result is on the disk when a repetition ends."""

import peer
import product

arguments = product.parser(__doc__).parse_args()
peer.configure(blas_threads=arguments.threads)
try:
    import numpy
except ImportError as error:
    peer.missing(f"{error}; bench/install-peers.sh installs it")


def multiply(a, b, path, block):
    """Blocks are copied out of the maps first: BLAS then works on dense memory, and a page is read once a block and
    not once a panel."""
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    c = numpy.lib.format.open_memmap(path, mode="w+", dtype=numpy.float32, shape=(m, n))
    for i in range(0, m, block):
        for j in range(0, n, block):
            total = None
            for p in range(0, k, block):
                left = numpy.ascontiguousarray(a[i : i + block, p : p + block])
                right = numpy.ascontiguousarray(b[p : p + block, j : j + block])
                if total is None:
                    total = left @ right
                else:
                    total += left @ right
            c[i : i + block, j : j + block] = total
    c.flush()


blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
version = f"NumPy {numpy.__version__}, {blas.get('name')} {blas.get('version')}"
product.serve("numpy-memmap", version, arguments, numpy, multiply)

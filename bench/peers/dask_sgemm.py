"""C = A B between .npy files with dask.array on its threaded scheduler: inputs as memory maps, one BLAS thread a task.
The result is on the disk when a repetition ends."""

import peer
import product

arguments = product.parser(__doc__).parse_args()
peer.configure(blas_threads=1)
try:
    import dask
    import dask.array
    import numpy
except ImportError as error:
    peer.missing(f"{error}; bench/install-peers.sh installs it")


def multiply(a, b, path, block):
    # name=False: a random name in place of a hash over all the data.
    left = dask.array.from_array(a, chunks=(block, block), name=False)
    right = dask.array.from_array(b, chunks=(block, block), name=False)
    c = numpy.lib.format.open_memmap(path, mode="w+", dtype=numpy.float32, shape=(a.shape[0], b.shape[1]))
    # lock=False: tasks write disjoint parts of the map.
    dask.array.store(left @ right, c, lock=False, scheduler="threads", num_workers=arguments.threads)
    c.flush()


product.serve("dask", f"dask {dask.__version__}, NumPy {numpy.__version__}", arguments, numpy, multiply)

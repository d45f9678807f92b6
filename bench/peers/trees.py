"""Maximum-likelihood trees by another program, files to files: one search, or bootstrap replicates.

RAxML: the sequential builds (raxmlHPC-AVX2, raxmlHPC-AVX, raxmlHPC-SSE3) where there is one and one thread is asked for;
otherwise the one with threads, which has two at least and lets them spin. Its processor time says nothing about one thread
then; the figure is its time on the clock, which is less than what one thread would take."""

import os
import re
import resource
import shutil
import subprocess
import tempfile
import time

import peer

options = peer.parser(__doc__)
options.add_argument("--program", choices=["raxml", "iqtree"], required=True)
options.add_argument("--alignment", help="alignment of DNA in PHYLIP or FASTA; the model is GTR+F+G4")
options.add_argument("--work", choices=["search", "bootstraps"], default="search")
options.add_argument("--replicates", type=peer.positive, default=10, help="bootstraps (default: 10)")
options.add_argument("--figure", choices=["cpu", "wall"], default="wall", help="which seconds are the figure")
arguments = options.parse_args()

THREADED = ["raxmlHPC-PTHREADS-AVX2", "raxmlHPC-PTHREADS-AVX", "raxmlHPC-PTHREADS-SSE3"]
SEQUENTIAL = ["raxmlHPC-AVX2", "raxmlHPC-AVX", "raxmlHPC-SSE3"]


def first_of(names):
    return next((found for found in map(shutil.which, names) if found), None)


def find():
    """The program, its threads, its version."""
    if arguments.program == "iqtree":
        found = first_of(["iqtree2", "iqtree"])
        if found is None:
            peer.missing("no iqtree2 (package iqtree); bench/install-peers.sh installs it")
        text = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
        version = re.search(r"IQ-TREE .*?version ([\w.]+)", text)
        return found, arguments.threads, f"IQ-TREE {version.group(1) if version else '?'}, {arguments.threads} thread(s)"
    found, threads = (first_of(SEQUENTIAL), 1) if arguments.threads == 1 else (None, arguments.threads)
    if found is None:
        found, threads = first_of(THREADED), max(2, arguments.threads)
    if found is None:
        peer.missing("no raxmlHPC (package raxml); bench/install-peers.sh installs it")
    text = subprocess.run([found, "-v"], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    version = re.search(r"RAxML version ([\w.]+)", text)
    name = os.path.basename(found)
    return found, threads, f"{name} {version.group(1) if version else '?'}, {threads} thread(s)"


program, threads, version = find()


def command(folder):
    alignment = os.path.abspath(arguments.alignment)
    if arguments.program == "iqtree":
        words = [program, "-s", alignment, "-m", "GTR+F+G4", "-T", str(threads), "-seed", "1", "-quiet"]
        words += ["-pre", os.path.join(folder, "out")]
        return words + (["--bonly", str(arguments.replicates)] if arguments.work == "bootstraps" else [])
    words = [program, "-s", alignment, "-m", "GTRGAMMA", "-p", "1", "-n", "out", "-w", folder]
    words += ["-T", str(threads)] if "PTHREADS" in program else []
    return words + (["-b", "1", "-N", str(arguments.replicates)] if arguments.work == "bootstraps" else ["-f", "d"])


def log_likelihood(folder):
    """Of the best tree, from the program's report."""
    name, pattern = {
        "iqtree": ("out.iqtree", r"Log-likelihood of the tree: (-?[\d.]+)"),
        "raxml": ("RAxML_info.out", r"Final GAMMA-based Score of best tree (-?[\d.]+)"),
    }[arguments.program]
    with open(os.path.join(folder, name)) as report:
        found = re.search(pattern, report.read())
    if found is None:
        raise peer.RepetitionFailed(f"{name} names no log-likelihood")
    return float(found.group(1))


def replicates(folder):
    """How many trees of replicates were written."""
    name = {"iqtree": "out.boottrees", "raxml": "RAxML_bootstrap.out"}[arguments.program]
    with open(os.path.join(folder, name)) as trees:
        return sum(1 for line in trees if line.strip())


def repeat():
    with tempfile.TemporaryDirectory(prefix="multigrain-bench-") as folder:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ended = subprocess.run(command(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if ended.returncode != 0:
            why = (ended.stderr or ended.stdout).strip()[-200:]
            raise peer.RepetitionFailed(why or f"status {ended.returncode}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        # More threads than asked for: they share what one would have to do.
        figure = cpu if arguments.figure == "cpu" and threads == arguments.threads else wall
        answer = {"seconds": figure, "cpu_seconds": cpu, "wall_seconds": wall}
        if arguments.work == "search":
            return answer | {"log_likelihood": log_likelihood(folder)}
        found = replicates(folder)
        if found != arguments.replicates:
            raise peer.RepetitionFailed(f"{found} trees of {arguments.replicates} replicates")
        return answer | {"replicates": found}


if arguments.probe:
    peer.say(ready=True, peer=arguments.program, version=version)
elif not arguments.alignment:
    peer.wrong_request("--alignment is needed")
else:
    peer.require_processors(arguments.threads)
    peer.serve(arguments.program, version, repeat)

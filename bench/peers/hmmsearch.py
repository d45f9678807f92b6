"""HMMER's hmmsearch, with its filters or without: profiles against a database of protein sequences, files to table.
Alignments are not written: that would be work which Multigrain does not do."""

import os
import shutil
import subprocess
import time

import peer

options = peer.parser(__doc__)
options.add_argument("--profile", help="profiles in HMMER's format")
options.add_argument("--database", help="sequences in FASTA, gzipped or not")
options.add_argument("--table", help="file for the table; replaced by each repetition, removed at the end")
options.add_argument("--filters", choices=["on", "off"], default="on", help="off is hmmsearch --max")
arguments = options.parse_args()

program = shutil.which("hmmsearch")
if program is None:
    peer.missing("no hmmsearch (package hmmer); bench/install-peers.sh installs it")
help_text = subprocess.run([program, "-h"], capture_output=True, text=True).stdout
version = next((line[2:].split(";")[0] for line in help_text.splitlines() if line.startswith("# HMMER")), "HMMER")


def repeat():
    # One worker thread a processor; the thread that reads the database is besides them, as hmmsearch has it.
    command = [program, "--cpu", str(arguments.threads), "--noali", "-o", os.devnull]
    if arguments.filters == "off":
        command.append("--max")
    command += ["--tblout", arguments.table, arguments.profile, arguments.database]
    start = time.perf_counter()
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if ended.returncode != 0:
        raise peer.RepetitionFailed((ended.stderr or ended.stdout).strip()[-200:] or f"status {ended.returncode}")
    with open(arguments.table) as table:
        hits = sum(1 for line in table if not line.startswith("#"))
    return {"seconds": seconds, "hits": hits}


if arguments.probe:
    peer.say(ready=True, peer="hmmsearch", version=version)
elif not (arguments.profile and arguments.database and arguments.table):
    peer.wrong_request("--profile, --database and --table are needed")
else:
    peer.require_processors(arguments.threads)
    try:
        repeat()
        peer.serve("hmmsearch", version, repeat)
    except peer.RepetitionFailed as error:
        peer.say(error=str(error))
        raise SystemExit(peer.EXIT_FAILED)
    finally:
        if os.path.exists(arguments.table):
            os.remove(arguments.table)

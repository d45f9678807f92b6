#!/usr/bin/env bash
# Starts mpi_collectives (the program named first) with as many processes as --threads says.
set -euo pipefail
program=$1
shift
processes=2
for ((at = 1; at < $#; at++)); do
    if [[ ${!at} == --threads ]]; then
        next=$((at + 1))
        processes=${!next}
    fi
done
if ! command -v mpirun >/dev/null; then
    echo '{"missing": "no mpirun (package openmpi-bin)"}'
    exit 3
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bind=(--bind-to core)
if ((processes > $(nproc))); then bind=(--bind-to none --oversubscribe --mca mpi_yield_when_idle 1); fi
exec mpirun --mca btl self,vader -n "$processes" "${bind[@]}" "$program" "$@"

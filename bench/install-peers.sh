#!/usr/bin/env bash
# Installs the programs that Multigrain is compared with, and the small drivers that run them; see bench/README.md.
#
#   bench/install-peers.sh            install what is missing, then print a table of what is there
#   bench/install-peers.sh --status   only the table
#
# Everything but distribution packages goes into the folder MULTIGRAIN_PEERS (default: target/peers in the repository).
# Every peer is optional: what cannot be had is skipped with the reason. Running it again is safe.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
sources=$here/peers
peers=${MULTIGRAIN_PEERS:-$(dirname "$here")/target/peers}
skipped=()
missing_packages=()
answer=

say() { printf '%s\n' "$*" >&2; }

# Remembers why peer $1 is not built, for the table: the first reason is the root cause.
skip() {
    local entry
    for entry in ${skipped[@]+"${skipped[@]}"}; do
        [[ ${entry%%$'\t'*} != "$1" ]] || return 0
    done
    skipped+=("$1"$'\t'"$2")
    say "skipped $1: $2"
}

reason_for() {
    local entry
    for entry in ${skipped[@]+"${skipped[@]}"}; do
        if [[ ${entry%%$'\t'*} == "$1" ]]; then
            printf '%s' "${entry#*$'\t'}"
            return
        fi
    done
    printf 'not installed; run bench/install-peers.sh'
}

# --- distribution packages -------------------------------------------------------------------------------------------

package_present() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

install_packages() {
    local wanted=(gcc g++ libc6-dev pkg-config python3 python3-venv libopenblas0-pthread libopenblas-pthread-dev
        libfftw3-single3 libtbb-dev libstarpu-dev libomp5 libopenmpi-dev openmpi-bin hmmer
        libhmsbeagle-dev raxml iqtree x264 ffmpeg libopenh264-dev)
    local package
    command -v dpkg-query >/dev/null || {
        say "no Debian package manager: using the compilers and libraries that are there"
        return
    }
    for package in "${wanted[@]}"; do
        # A compiler or Python from elsewhere serves as well.
        case $package in
        gcc | g++ | pkg-config) ! command -v "$package" >/dev/null || continue ;;
        python3) ! command -v python3 >/dev/null || continue ;;
        python3-venv) ! python3 -c 'import ensurepip, venv' 2>/dev/null || continue ;;
        esac
        package_present "$package" || missing_packages+=("$package")
    done
    if ((${#missing_packages[@]} == 0)); then
        return
    fi
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        say "not installed, for lack of root or apt-get: ${missing_packages[*]}"
        say "    an administrator would say: apt-get install ${missing_packages[*]}"
        return
    fi
    say "installing packages: ${missing_packages[*]}"
    apt-get update -qq >&2 || say "the package lists could not be renewed; trying with the old ones"
    # One by one: a package that cannot be had must not keep the others away.
    for package in "${missing_packages[@]}"; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
            say "package $package could not be installed"
    done
}

# --- Python ----------------------------------------------------------------------------------------------------------

# Installs the packages $2... at the versions of constraints.txt, for peer $1.
python_packages() {
    local peer=$1
    shift
    "$peers/python/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
        -c "$sources/constraints.txt" "$@" >"$peers/pip-$peer.log" 2>&1 ||
        skip "$peer" "pip could not install $*: see $peers/pip-$peer.log"
}

install_python() {
    local peer stamp
    stamp=$(sha256sum <"$sources/constraints.txt")
    if [[ -f $peers/python/complete && $(<"$peers/python/complete") == "$stamp" ]]; then
        return
    fi
    if ! python3 -m venv "$peers/python" >"$peers/venv.log" 2>&1; then
        for peer in mkl mkl-fft openblas-numpy opencv numpy-memmap numpy-memmap-fft dask; do
            skip "$peer" "no Python environment could be made: see $peers/venv.log"
        done
        return
    fi
    say "installing Python packages into $peers/python"
    python_packages numpy-memmap numpy
    python_packages mkl mkl
    python_packages opencv opencv-python-headless
    python_packages dask 'dask[array]'
    if ((${#skipped[@]} == 0)); then
        printf '%s\n' "$stamp" >"$peers/python/complete"
    fi
}

# --- drivers in C and C++ --------------------------------------------------------------------------------------------

# Compiles program $3 from source $4 with compiler $2 and flags $5... for the peers named in $1.
build() {
    local names=$1 compiler=$2 program=$3 source=$4 name
    shift 4
    if ! command -v "$compiler" >/dev/null; then
        for name in $names; do skip "$name" "no $compiler"; done
        return
    fi
    if ! "$compiler" -O2 -Wall -Wextra -o "$peers/bin/$program.new" "$sources/$source" "$@" \
        >"$peers/build-$program.log" 2>&1; then
        rm -f "$peers/bin/$program.new" "$peers/bin/$program"
        for name in $names; do skip "$name" "$source does not compile here: see $peers/build-$program.log"; done
        return
    fi
    mv "$peers/bin/$program.new" "$peers/bin/$program"
}

build_drivers() {
    local starpu_flags=() starpu_libraries=() beagle_flags=()
    build "mkl openblas openblas-numpy" gcc blas blas.c -std=gnu11 -ldl -lm
    build "fftw mkl-fft" gcc fft fft.c -std=gnu11 -ldl -lm
    build disk gcc disk_rate disk_rate.c -std=gnu11 -pthread
    build m-queens gcc queens queens.c -std=gnu11 -O3 -march=native
    build rsqrt14 gcc gravity gravity.c -std=gnu11 -march=native -pthread -lm
    if printf '#include <oneapi/tbb/version.h>\n' | g++ -std=c++17 -fsyntax-only -x c++ - 2>/dev/null; then
        build tbb g++ tbb_empty tbb_empty.cpp -std=c++17 -ltbb
    else
        skip tbb "no oneTBB headers (package libtbb-dev) or no g++"
    fi
    if pkg-config --exists starpu-1.3 2>/dev/null; then
        read -ra starpu_flags < <(pkg-config --cflags starpu-1.3)
        read -ra starpu_libraries < <(pkg-config --libs starpu-1.3)
        build starpu gcc starpu_empty starpu_empty.c -std=gnu11 "${starpu_flags[@]}" "${starpu_libraries[@]}"
    else
        skip starpu "no StarPU 1.3 (package libstarpu-dev) or no pkg-config"
    fi
    if pkg-config --exists hmsbeagle-1 2>/dev/null; then
        read -ra beagle_flags < <(pkg-config --cflags --libs hmsbeagle-1)
        build beagle gcc beagle beagle.c -std=gnu11 "${beagle_flags[@]}" -lm
    else
        skip beagle "no BEAGLE (package libhmsbeagle-dev) or no pkg-config"
    fi
    if pkg-config --exists openh264 2>/dev/null; then
        build openh264 gcc openh264 openh264.c -std=gnu11 -lopenh264
    else
        skip openh264 "no openh264 (package libopenh264-dev) or no pkg-config"
    fi
    build "libgomp libomp" gcc omp_collectives omp_collectives.c -std=gnu11 -fopenmp
    build openmpi mpicc mpi_collectives mpi_collectives.c -std=gnu11
    local crate
    for crate in hurdles rayon jobs rusty-h264; do
        if ! command -v cargo >/dev/null; then
            skip $crate "no cargo"
        elif cargo build --quiet --release --manifest-path "$sources/$crate/Cargo.toml" --target-dir "$peers/$crate" \
            >"$peers/build-$crate.log" 2>&1; then
            cp "$peers/$crate/release/$crate-peer" "$peers/bin/$crate-peer"
        else
            skip $crate "the crate cannot be built here: see $peers/build-$crate.log"
        fi
    done
}

# --- what is there ---------------------------------------------------------------------------------------------------

json_string() {
    local text=$1
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "$text"
}

# Prints the first file that exists among its arguments (unmatched patterns among them), else the first argument.
first_file() {
    local file
    for file in "$@"; do
        if [[ -e $file ]]; then
            printf '%s' "$file"
            return
        fi
    done
    printf '%s' "$1"
}

# Sets `answer` to what the command $2... for peer $1 says to --probe, or to the reason why it cannot say anything.
probe() {
    local name=$1 why
    shift
    answer=
    if [[ -x $1 ]]; then
        answer=$("$@" --probe </dev/null 2>/dev/null | head -n 1) || true
    fi
    if [[ $answer != '{"ready"'* && $answer != '{"missing"'* ]]; then
        why=$(reason_for "$name")
        answer="{\"missing\": $(json_string "$why")}"
    fi
}

# Asks peer $1, started as $2..., and adds it to the table and to peers.json.
report() {
    local name=$1 word
    local command=() text
    shift
    probe "$name" "$@"
    for word in "$@"; do command+=("$(json_string "$word")"); done
    text=$(IFS=,; printf '%s' "${command[*]}")
    # Members of the answer follow the name and the command in one object.
    entries+=("  {\"name\": \"$name\", \"command\": [${text//\",\"/\", \"}], ${answer#\{}")
    if [[ $answer == '{"ready"'* ]]; then
        text=${answer##*\"version\": \"}
        printf '%-16s yes  %s\n' "$name" "${text%\"\}}"
    else
        text=${answer#*\"missing\": \"}
        printf '%-16s no   %s\n' "$name" "${text%\"\}}"
    fi
}

report_all() {
    local entries=() python=$peers/python/bin/python separator=
    local openblas numpy_blas libomp entry
    openblas=$(first_file /usr/lib/*/openblas-pthread/libopenblas.so.0 /usr/lib*/libopenblasp.so.0 libopenblas.so.0)
    numpy_blas=$(first_file "$peers"/python/lib/python*/site-packages/numpy.libs/libscipy_openblas*.so)
    fftw=$(first_file /usr/lib/*/libfftw3f_threads.so.3 /usr/lib*/libfftw3f_threads.so.3 libfftw3f_threads.so.3)
    # Neither pattern matched: let the loader search.
    [[ -e $openblas ]] || openblas=libopenblas.so.0
    report mkl "$peers/bin/blas" --library "$peers/python/lib/libmkl_rt.so.2"
    report openblas "$peers/bin/blas" --library "$openblas"
    report openblas-numpy "$peers/bin/blas" --library "$numpy_blas"
    report opencv "$python" "$sources/opencv_filter2d.py"
    report numpy-memmap "$python" "$sources/numpy_memmap_sgemm.py"
    report dask "$python" "$sources/dask_sgemm.py"
    report tbb "$peers/bin/tbb_empty"
    report starpu "$peers/bin/starpu_empty"
    report fftw "$peers/bin/fft" --library "$fftw"
    report mkl-fft "$peers/bin/fft" --library "$peers/python/lib/libmkl_rt.so.2"
    report numpy-memmap-fft "$python" "$sources/numpy_memmap_fft.py"
    report disk "$peers/bin/disk_rate"
    report rsqrt14 "$peers/bin/gravity"
    report m-queens "$peers/bin/queens"
    report hmmsearch "$python" "$sources/hmmsearch.py"
    report libgomp "$peers/bin/omp_collectives"
    # LLVM's runtime speaks GNU's interface, so the same program runs on it when it is loaded first.
    libomp=$(first_file /usr/lib/*/libomp.so.5 /usr/lib/llvm-*/lib/libomp.so.5 /usr/lib64/libomp.so)
    if [[ -e $libomp ]]; then
        report libomp /usr/bin/env "LD_PRELOAD=$libomp" "$peers/bin/omp_collectives" --runtime libomp
    else
        skip libomp "no LLVM OpenMP runtime (package libomp5)"
        report libomp "$libomp"
    fi
    report beagle "$peers/bin/beagle"
    report raxml "$python" "$sources/trees.py" --program raxml
    report iqtree "$python" "$sources/trees.py" --program iqtree
    report openh264 "$peers/bin/openh264"
    report rusty-h264 "$peers/bin/rusty-h264-peer"
    report hurdles "$peers/bin/hurdles-peer"
    report rayon "$peers/bin/rayon-peer"
    report jobs "$peers/bin/jobs-peer"
    report openmpi "$sources/mpi_collectives.sh" "$peers/bin/mpi_collectives"
    {
        printf '[\n'
        for entry in "${entries[@]}"; do
            printf '%s%s' "$separator" "$entry"
            separator=$',\n'
        done
        printf '\n]\n'
    } >"$peers/peers.json.new"
    mv "$peers/peers.json.new" "$peers/peers.json"
    say "how to start each: $peers/peers.json"
}

case ${1-} in
'')
    mkdir -p "$peers/bin"
    peers=$(cd "$peers" && pwd)
    install_packages
    install_python
    build_drivers
    report_all
    ;;
--status)
    mkdir -p "$peers"
    peers=$(cd "$peers" && pwd)
    report_all
    ;;
-h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" ;;
*)
    say "unknown argument '$1'; --help says what there is"
    exit 2
    ;;
esac

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scans.sh: scans with their neighbours, as groups and one by one, beside an elementwise group of the same bytes.
#
#   sh bench/scans.sh build/tools/weft [ROWSxCOLUMNS…]      times in microseconds, of f32 and bf16, 1 and 2 threads
#
#   gated   y = cumsum(exp(x) * g) * h          limit: y = x * g + h
#   top_p   y = cumsum(softmax x) < 0.9         limit: y = x < 0.9
set -e
weft=$1
shift
file=${TMPDIR:-/tmp}/scans-$$.weft
trap 'rm -f "$file"' EXIT

# graph NAME TYPE: a line for each node, T being the type of all
graph() {
    printf 'weft 1\n'
    case $1 in
    gated) printf 'graph @g(%%x: T, %%g: T, %%h: T) {\n %%e: T = exp %%x\n %%v: T = mul %%e, %%g\n'
           printf ' %%s: T = cumsum %%v axis=1\n %%y: T = mul %%s, %%h\n return %%y\n}\n' ;;
    top_p) printf 'graph @g(%%x: T) {\n %%q: T = softmax %%x axis=1\n %%s: T = cumsum %%q axis=1\n'
           printf ' %%c: T = const value=0.9\n %%y: B = lt %%s, %%c\n return %%y\n}\n' ;;
    gated_limit) printf 'graph @g(%%x: T, %%g: T, %%h: T) {\n %%v: T = mul %%x, %%g\n'
           printf ' %%y: T = add %%v, %%h\n return %%y\n}\n' ;;
    top_p_limit) printf 'graph @g(%%x: T) {\n %%c: T = const value=0.9\n %%y: B = lt %%x, %%c\n return %%y\n}\n' ;;
    esac | sed "s/\bT\b/$2[$3]/g; s/\bB\b/bool[$3]/g"
}

# one NAME TYPE EXTENTS THREADS: "group one-by-one"
one() {
    graph "$1" "$2" "$3" > "$file"
    "$weft" bench "$file" --threads "$4" --seconds "${SECONDS_EACH:-0.5}" --no-verify --json |
        sed 's/.*"median_ms": *\([0-9.]*\).*"unfused_ms": *\([0-9.a-z]*\).*/\1 \2/' |
        awk '{ printf "%.0f %s", 1e3 * $1, $2 == "null" ? "-" : sprintf("%.0f", 1e3 * $2) }'
}

printf '%-8s %-5s %-10s %s\n' what type shape "threads: group, one by one, limit [us]"
for shape in "${@:-8x65536}"; do
    extents=$(echo "$shape" | tr x ,)
    for what in gated top_p; do
        for type in f32 bf16; do
            line=$(printf '%-8s %-5s %-10s' $what $type "$shape")
            for threads in 1 2; do
                times=$(one $what $type "$extents" $threads)
                limit=$(one ${what}_limit $type "$extents" $threads)
                line="$line  $threads: $times ${limit%% *}"
            done
            echo "$line"
        done
    done
done

#!/usr/bin/env bash
# Runs every fuzz target of the tree for a short time, one after the other: tools/fuzz.sh [TIME] [PATTERN]
# A crash leaves its input under the package's testdata/fuzz: commit it as a seed with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s} pattern=${2:-.}
go=${GO:-go}

# file:function, one a line, in a stable order.
targets=$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | grep -v '^./tools/' | sed 's/func //; s#^\./##' | grep -E "$pattern" | sort || true)
[ -n "$targets" ] || { echo 'there is no fuzz target'; exit 0; }

total=$(wc -l <<<"$targets") n=0 failed=0
while IFS=: read -r file name; do
  n=$((n + 1))
  pkg=./$(dirname "$file")
  printf '[%d/%d] %s %s\n' "$n" "$total" "$pkg" "$name"
  "$go" test "$pkg" -run '^$' -fuzz "^$name\$" -fuzztime "$time" </dev/null || failed=$((failed + 1))
done <<<"$targets"
[ "$failed" -eq 0 ] || { echo "$failed of $total fuzz targets failed"; exit 1; }
echo "$total fuzz targets passed"

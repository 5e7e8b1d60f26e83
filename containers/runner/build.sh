#!/bin/sh
# Builds the runner into build/runner/{amd64,arm64}/argosy-runner: one static file for each architecture.
#   containers/runner/build.sh      from .venv, which has the certificates; `make runner` calls it
#   RUNNER_PYTHON=/path/to/python containers/runner/build.sh      with those of that Python, as `cdk deploy` does
#
# Go is the one on PATH if it is new enough, else that of PyPI, in .venv-runner. GO=/path/to/go names another. The same
# Go gives the same bytes: neither this folder's name nor the time nor a revision is in them.
set -eu
cd "$(dirname "$0")/../.."
target=build/runner
python=${RUNNER_PYTHON:-.venv/bin/python}
unset GOFLAGS GOROOT GOARCH GOOS
export CGO_ENABLED=0 GOTOOLCHAIN=local GOPROXY=off GOWORK=off GOENV=off GOAMD64=v1 GOARM64=v8.0
export GOCACHE="${GOCACHE:-$PWD/$target/cache}"

is_new_enough() {
    command -v "$1" >/dev/null || return
    "$1" env GOVERSION 2>/dev/null | grep -qE '^go1\.(2[5-9]|[3-9][0-9])'
}

go=${GO:-go}
if ! is_new_enough "$go"; then
    [ -z "${GO:-}" ] || { echo "$GO is no Go from 1.25 on." >&2; exit 1; }
    go=$PWD/.venv-runner/bin/go
    if ! [ .venv-runner/.installed -nt requirements/runner.txt ]; then
        ENVIRONMENT=.venv-runner COMMAND=no requirements/install.sh requirements/runner.txt
        touch .venv-runner/.installed
    fi
    is_new_enough "$go" || { echo "The runner needs Go from 1.25 on, and there is none: PyPI's does not run here." >&2; exit 1; }
fi

# A copy, in which the certificates are next to the sources.
source=$target/source
rm -rf "$source"
mkdir -p "$source"
cp containers/runner/*.go containers/runner/go.mod "$source"
cp "$("$python" -c 'import certifi; print(certifi.where())')" "$source/roots.pem"

echo "Building the runner with $("$go" env GOVERSION) (the first time takes a minute)." >&2
# It runs on Linux alone, but is built anywhere.
[ "$("$go" env GOHOSTOS)" != linux ] || (cd "$source" && "$go" test -count=1 -tags roots . >&2)
for architecture in amd64 arm64; do
    mkdir -p "$target/$architecture"
    (cd "$source" && GOOS=linux GOARCH=$architecture "$go" build -o "../$architecture/argosy-runner.part" \
        -tags roots -trimpath -buildvcs=false -ldflags '-s -w' .)
    chmod 755 "$target/$architecture/argosy-runner.part"
    mv "$target/$architecture/argosy-runner.part" "$target/$architecture/argosy-runner"
done
rm -rf "$source"
"$python" -c '
import hashlib, sys
for path in sys.argv[1:]:
    print(hashlib.sha256(open(path, "rb").read()).hexdigest(), path)
' "$target/amd64/argosy-runner" "$target/arm64/argosy-runner"

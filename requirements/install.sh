#!/bin/sh
# Installs hashed requirement files and the `argosy` command into .venv, which it makes first if need be.
#
#   requirements/install.sh requirements/local.txt
#   ENVIRONMENT=.venv-tensorflow requirements/install.sh requirements/local.txt requirements/tensorflow.txt
#   ENVIRONMENT=.venv-checkov COMMAND=no requirements/install.sh requirements/checkov.txt     (without the command)
#   ENVIRONMENT=.venv-pytorch FROM=/usr/bin/python3 COMMAND=no requirements/install.sh ...    (on top of that Python's own)
#   PYTHON=/usr/bin/python3 requirements/install.sh requirements/dev.txt          (with that Python, if it is new enough)
#
# The installer is uv when there is one, else uv from PyPI inside .venv, else pip; INSTALLER=pip asks for pip. Every
# package is checked against its hash. Nothing outside the environment is touched.
set -eu
cd "$(dirname "$0")/.."
environment=${ENVIRONMENT:-.venv}
python=$environment/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_WARN_SCRIPT_LOCATION=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1
unset VIRTUAL_ENV PYTHONHOME PYTHONPATH

say() { printf '%s\n' "$*" >&2; }

find_python() {
    for name in ${FROM:-} ${PYTHON:-} python3.13 python3.12 python3.11 python3 python; do
        # Asked, not only looked for: a version manager's stand-in may be on PATH for a Python that is not there.
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            "$name" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    say "Argosy needs Python 3.11 or newer; no python3.13, python3.12, python3.11 or python3 on PATH is one."
    return 1
}

find_uv() {
    [ "${INSTALLER:-uv}" = uv ] || return 0
    for name in uv "$environment/bin/uv" .venv/bin/uv; do
        if "$name" --version >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
}

make_environment() {
    found=$(find_python) || exit 1
    say "Making $environment with $("$found" --version)."
    rm -rf "$environment"
    if [ -n "$uv" ]; then
        "$uv" venv --quiet ${FROM:+--system-site-packages} --python "$found" "$environment"
    elif ! "$found" -m venv ${FROM:+--system-site-packages} "$environment" >&2; then
        say "This Python cannot make an environment (on Debian and Ubuntu: install python3-venv), and there is no uv."
        exit 1
    fi
}

with_pip() {
    for file; do
        "$python" -m pip install --quiet --require-hashes --requirement "$file" || return
    done
}

uv=$(find_uv)
"$python" -c '' 2>/dev/null || make_environment
if [ -z "$uv" ] && [ "${INSTALLER:-uv}" = uv ] && with_pip requirements/install.txt 2>/dev/null; then
    uv=$environment/bin/uv
fi

command="the argosy command"
[ "${COMMAND:-yes}" = yes ] || command="no command"
say "Installing $* and $command into $environment (the first time takes from seconds to two minutes)."
if [ -n "$uv" ]; then
    for file; do
        "$uv" pip install --quiet --python "$python" --require-hashes --requirement "$file"
    done
else
    with_pip "$@"
fi
[ "${COMMAND:-yes}" = yes ] || exit 0
if [ -n "$uv" ]; then
    "$uv" pip install --quiet --python "$python" --no-deps --no-build-isolation --editable .
else
    "$python" -m pip install --quiet --no-deps --no-build-isolation --editable .
fi
